"""`wakeful doctor`: each thing that can be wrong is found, and said with what to do."""

import json
import os
from types import SimpleNamespace

import pytest

from tests.cli.office import Served, now, wakeful
from wakeful.cli import defaults, findings
from wakeful.cli.findings import Level
from wakeful.cli.place import Place


def found(name):
    answer = json.loads(wakeful("doctor", "--json").stdout)
    (finding,) = [finding for finding in answer["findings"] if finding["name"] == name]
    return finding


def test_a_sound_installation_has_no_failure_and_exits_0(office):
    wakeful("token")
    result = wakeful("doctor", "--json")
    answer = json.loads(result.stdout)
    failed = [finding for finding in answer["findings"] if finding["level"] == "fail"]
    assert (failed, answer["ok"], result.exit_code) == ([], True, 0)
    assert [finding["name"] for finding in answer["findings"]] == [name for name, _ in findings.LOOKS]


def test_files_that_were_refused_are_worth_knowing(office):
    assert found("drop")["level"] == "ok"
    folder = office.data / "drop" / "refused"
    folder.mkdir(parents=True)
    assert found("drop")["level"] == "ok"
    for name in ("a.json", "a.json.why.txt"):
        (folder / name).touch()
    assert (found("drop")["level"], found("drop")["said"]) == ("warn", "1 file refused, in .wakeful/drop")


def test_a_drop_folder_that_cannot_be_worked_is_a_failure(office):
    (office.data / "drop").touch()
    assert found("drop")["level"] == "fail"


@pytest.mark.parametrize("where", ["", ".taken/0"])
def test_a_dropped_file_that_an_engine_does_not_deal_with_is_a_failure(office, monkeypatch, where):
    (office.data / "drop" / "refused").mkdir(parents=True)
    (office.data / "drop" / where).mkdir(parents=True, exist_ok=True)
    (office.data / "drop" / where / "a.json").touch()
    monkeypatch.setattr(findings, "is_held", lambda place: True)
    place = Place(data=str(office.data))
    assert findings.drop(place)[0] is Level.ok
    monkeypatch.setattr("wakeful.sources.drop.OVERDUE", -1.0)
    assert findings.drop(place)[:2] == (
        Level.fail,
        f"1 file in {office.data / 'drop'} cannot be dealt with, first 'a.json'",
    )


def test_it_leaves_no_trace(office):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in office.data.iterdir())
    wakeful("doctor")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in office.data.iterdir()) == before


def test_each_finding_is_a_line_with_its_advice(office):
    lines = wakeful("doctor").stdout.splitlines()
    assert "warn  secrets     there is no token yet (wakeful token makes it)" in lines
    assert all(line.split()[0] in ("ok", "warn", "fail") for line in lines)


def test_others_in_the_folder_are_a_failure(office):
    office.data.chmod(0o750)
    assert (found("folder")["level"], found("folder")["remedy"]) == ("fail", "chmod 700 .wakeful")
    assert wakeful("doctor").exit_code == 1


def test_a_token_that_others_can_read_is_a_failure(office):
    wakeful("token")
    (office.data / "token").chmod(0o644)
    assert found("secrets")["level"] == "fail"


def test_a_torn_store_is_a_failure(office):
    database = office.data / "wakeful.db"
    content = bytearray(database.read_bytes())
    content[8_192:16_384] = b"\xff" * 8_192
    database.write_bytes(content)
    assert found("store")["level"] == "fail"
    assert "damaged" in found("store")["said"]


def test_a_store_that_is_being_written_is_looked_at_beside_its_writer(office):
    with office.store() as store:
        store.set("wren", {"wakes_per_day": 3}, "operator", now())
        assert (office.data / "wakeful.db-wal").stat().st_size > 0
        assert findings.store(Place(str(office.data)))[0] is Level.ok


def test_a_broken_fleet_file_is_a_failure_and_a_warning_is_one(office):
    (office.folder / "fleet.org").write_text("* wren\n:PROPERTIES:\n:INTERVAL: 10\n:END:\n")
    assert found("fleet")["level"] == "fail"
    (office.folder / "fleet.org").write_text("* wren\n")
    assert found("fleet")["level"] == "warn"


def test_an_engine_that_turns_is_well_and_one_that_does_not_is_not(office):
    serving = Served(office)
    try:
        assert found("engine")["level"] == "ok"
        serving.beside.sickness = {"ready": False, "why_not": "the loop has not moved for 90 s"}
        assert (found("engine")["level"], wakeful("doctor").exit_code) == ("fail", 1)
        assert "the loop has not moved for 90 s" in found("engine")["said"]
    finally:
        serving.close()
    assert found("engine")["level"] == "warn"


def test_a_clock_behind_the_store_is_a_failure(office):
    ahead = now().timestamp() + 7_200
    os.utime(office.data / "wakeful.db", (ahead, ahead))
    assert found("clock")["level"] == "fail"


@pytest.mark.parametrize(("free", "level"), [(5 * 10**10, "ok"), (5 * 10**8, "warn"), (10**7, "fail")])
def test_little_room_is_a_warning_and_none_a_failure(office, monkeypatch, free, level):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    assert findings.disk(Place(str(office.data)))[0] == level


def test_without_a_way_to_end_a_tree_at_one_stroke_the_kill_is_best_effort(office, monkeypatch):
    monkeypatch.setattr("wakeful.runners.cage.available", dict)
    finding = found("killing")
    assert finding["level"] == "warn"
    assert "as well as can be" in finding["said"] and "cgroup v2" in finding["remedy"]


def test_an_old_sqlite_is_a_failure(monkeypatch):
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.51.2")
    assert findings.sqlite(Place(""))[0] is Level.fail


def test_low_limits_of_the_kernel_are_a_warning(monkeypatch):
    monkeypatch.setattr(findings, "_kernel", lambda name: 10)
    assert findings.inotify(Place(""))[0] is Level.warn


def test_a_look_that_fails_is_a_finding(office, monkeypatch):
    def broken(place):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(findings, "LOOKS", (("python", broken),))
    assert found("python") == {
        "name": "python",
        "level": "fail",
        "said": "cannot be looked at: no such thing",
        "remedy": "",
    }


def test_open_tasks_that_nobody_can_take_are_worth_knowing(served):
    assert found("tasks")["level"] == "ok"
    for _ in range(2):
        wakeful("task", "add", "t", "--role", "ghosts")
    told = found("tasks")
    assert (told["level"], told["said"]) == ("warn", "2 open tasks that nobody can take: 2 for role ghosts")
    assert "2 open tasks that nobody can take: 2 for role ghosts" in wakeful("status").stdout


@pytest.mark.parametrize(
    ("wide", "level", "words"),
    [
        ("", "ok", "only this machine"),
        ("https://0.0.0.0:7717", "ok", "by TLS"),
        ("http://0.0.0.0:7717", "warn", "without TLS"),
    ],
)
def test_who_can_reach_the_engine_is_told(office, monkeypatch, wide, level, words):
    about = {"url": "http://127.0.0.1:7717"} | ({"wide": wide} if wide else {})
    (office.data / "engine.json").write_text(json.dumps(about))
    monkeypatch.setattr(defaults, "is_held", lambda place: True)
    found, said, *_ = defaults.reach(Place(data=str(office.data)))
    assert (found.value, words in said) == (level, True)


def test_a_webhook_that_nobody_can_open_is_told(office, monkeypatch):
    assert (found("hooks")["level"], found("hooks")["said"]) == ("ok", "none is declared")
    fleet = office.data.parent / "fleet.org"
    told = ":ON: webhook://ci?secret=CI_SECRET webhook://shut?secret=SHUT_SECRET"
    fleet.write_text(f"* wren\n:PROPERTIES:\n:RUN: true\n{told}\n:END:\n")
    monkeypatch.setenv("CI_SECRET", "hush")
    monkeypatch.delenv("SHUT_SECRET", raising=False)
    shut = found("hooks")
    assert shut["level"] == "warn" and "the webhook shut is closed: SHUT_SECRET is not set here" in shut["said"]
    assert "hush" not in str(shut)
    monkeypatch.setenv("SHUT_SECRET", "hush")
    assert (found("hooks")["level"], found("hooks")["said"]) == ("ok", "2 webhooks, each with a secret")


def test_defaults_that_a_fleet_switches_off_are_told_by_name(office):
    assert (found("rights")["level"], found("guards")["level"]) == ("ok", "ok")
    fleet = office.data.parent / "fleet.org"
    agents = "".join(f"* fern{n}\n:PROPERTIES:\n:RUN: true\n:GRANT: wake\n:COOLDOWN: 0s\n:END:\n" for n in range(7))
    fleet.write_text(f"* wren\n:PROPERTIES:\n:RUN: true\n:END:\n{agents}")
    for name, words in (("rights", "(GRANT)"), ("guards", "(COOLDOWN 0)")):
        assert found(name)["level"] == "warn" and words in found(name)["said"]
        assert found(name)["said"].startswith("fern0, fern1, fern2, fern3, fern4 and 2 more agents")
