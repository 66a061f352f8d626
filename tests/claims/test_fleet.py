"""What the documents' users have on disk: the manifest and the day of document 001, the settings of document 003."""

from datetime import UTC, datetime, timedelta
from textwrap import dedent

import pytest

from tests.claims.desk import MINUTE, SECOND
from tests.claims.test_001 import DAY
from wakeful.core.lifecycle import Position
from wakeful.core.windows import parse_window
from wakeful.fleet import FleetFile, check_file, load_fleet

RUN = "agent --print"

LIFECYCLE = """
    #+START: wake_add
    * wake_add
    :PROPERTIES:
    :KIND: wake
    :REPEAT: 3
    :NEXT: wake_audit
    :END:
    * wake_audit
    :PROPERTIES:
    :KIND: wake
    :NEXT: rem
    :END:
    * rem
    :PROPERTIES:
    :KIND: rem
    :NEXT: wake_plan
    :MIN-INTERVAL: 10m
    :END:
    * wake_plan
    :PROPERTIES:
    :KIND: wake
    :NEXT: wake_add
    :END:
"""

MANIFEST = """
    * wren
    :PROPERTIES:
    :DEF: defs/writer.org
    :LIFECYCLE: lifecycle.org
    :INTERVAL: 10m
    :END:
    * moss
    :PROPERTIES:
    :DEF: defs/editor.org
    :INTERVAL: 20m
    :END:
"""

CONFIG = """
    coordination:
      max_concurrent_pulse_sessions: 3
      wake_guardrails:
        cooldown_seconds: 600
        max_daily_session_minutes: 90
        max_wakes_per_day: 6
        max_wakes_per_pair_per_day: 2
    pulse_enabled: true
    pulse_interval_minutes: 30
    pulse_offset_minutes: 4
    pulse_blackouts:
      - {type: recurring, label: night, start_time: "23:00", end_time: "07:00"}
    pulse_one_offs:
      - "2026-03-04T09:00:00Z"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "defs").mkdir()
    for name in ("writer", "editor"):
        (tmp_path / "defs" / f"{name}.org").write_text("You are at a newspaper.")
    write(tmp_path, "lifecycle.org", LIFECYCLE)
    return tmp_path


def write(folder, name, text):
    path = folder / name
    path.write_text(dedent(text).lstrip())
    return path


def load(path):
    loaded = load_fleet(path, run=RUN)
    assert loaded.fleet is not None, [str(diagnostic) for diagnostic in loaded.diagnostics]
    return loaded.fleet


def told(path):
    return "\n".join(str(diagnostic) for diagnostic in check_file(path, run=RUN).diagnostics)


def test_the_documents_lifecycle_loads_unchanged(folder):
    assert check_file(folder / "lifecycle.org").diagnostics == ()
    fleet = load(write(folder, "fleet.org", MANIFEST))
    assert fleet.agent("wren").lifecycle == DAY


def test_the_documents_manifest_loads_unchanged(folder):
    fleet = load(write(folder, "fleet.org", MANIFEST))
    wren, moss = fleet.agents
    assert (wren.name, moss.name) == ("wren", "moss")
    assert (wren.cadence.interval, moss.cadence.interval) == (10 * MINUTE, 20 * MINUTE)
    assert wren.definition.endswith("defs/writer.org") and moss.definition.endswith("defs/editor.org")
    assert len(moss.lifecycle.states) == 1


def test_a_live_agents_day_changes_shape_without_a_restart(folder, desk):
    file = FleetFile(write(folder, "fleet.org", MANIFEST), run=RUN)
    desk.store.declare(file.fleet, desk.now)

    def beat():
        desk.until(desk.standing("wren").due_at)
        for order in desk.begin():
            desk.end(order)
        return desk.standing("wren").position

    assert beat() == Position("wake_add", 1)
    write(folder, "lifecycle.org", LIFECYCLE.replace(":REPEAT: 3", ":REPEAT: 2"))
    assert file.refresh()
    desk.store.declare(file.fleet, desk.now)
    assert beat() == Position("wake_audit", 0)


def test_a_half_saved_file_keeps_the_last_good_fleet(folder):
    file = FleetFile(write(folder, "fleet.org", MANIFEST), run=RUN)
    good = file.fleet
    write(folder, "lifecycle.org", LIFECYCLE[: len(LIFECYCLE) // 2])
    assert not file.refresh()
    assert (file.broken, file.fleet) == (True, good)
    assert any("lifecycle.org:" in str(diagnostic) for diagnostic in file.diagnostics)
    (folder / "lifecycle.org").unlink()
    assert not file.refresh()
    assert file.fleet == good
    # And at the start, nothing is an error, not a fleet without agents.
    missing = FleetFile(folder / "nothing.org", run=RUN)
    assert (missing.broken, missing.fleet) == (True, None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (":NEXT: rem", ":NEXT: rest", "rest"),
        (":REPEAT: 3", ":REPEAT: 0", "REPEAT"),
        (":NEXT: wake_plan\n", ":NEXT: wake_add\n", "wake_plan"),
        (":MIN-INTERVAL: 10m", ":MIN-INTERVAL: 10", "10"),
    ],
    ids=["dangling NEXT", "REPEAT below 1", "unreachable state", "a duration without a unit"],
)
def test_a_broken_lifecycle_is_reported_before_it_is_adopted(folder, old, new, reason):
    assert old in LIFECYCLE
    path = write(folder, "lifecycle.org", LIFECYCLE.replace(old, new))
    line = next(line for line in told(path).splitlines() if reason in line)
    assert line.startswith(f"{path}:")
    assert all(part.isdigit() for part in line.removeprefix(f"{path}:").split(":")[:2])


def test_a_missing_start_means_the_first_heading(folder):
    write(folder, "lifecycle.org", LIFECYCLE.replace("#+START: wake_add\n", "").replace("wake_add", "zz_add"))
    fleet = load(write(folder, "fleet.org", MANIFEST))
    assert fleet.agent("wren").lifecycle.start == "zz_add"


@pytest.mark.parametrize("name", ["../wren", "a/b", "..", "-wren", "Wren bird", "w" * 80])
def test_names_are_plain_words(folder, name):
    path = write(folder, "fleet.org", MANIFEST.replace("* wren", f"* {name}"))
    assert load_fleet(path, run=RUN).fleet is None
    assert f"{path}:1:" in told(path)


def test_the_documents_configuration_loads_unchanged(folder):
    (finn,) = load(write(folder, "config.yml", CONFIG)).agents
    limits = finn.limits
    assert (limits.sessions, limits.cooldown) == (3, 600 * SECOND)
    assert (limits.minutes_per_day, limits.wakes_per_day, limits.wakes_per_pair) == (90, 6, 2)
    assert (finn.enabled, finn.cadence.interval, finn.cadence.offset) == (True, 30 * MINUTE, 4 * MINUTE)
    (night,) = limits.quiet_hours
    assert (night.start_minute, night.end_minute) == (23 * 60, 7 * 60)


def test_a_one_off_with_a_z_is_an_aware_instant(folder):
    (finn,) = load(write(folder, "config.yml", CONFIG)).agents
    assert finn.one_offs == (datetime(2026, 3, 4, 9, tzinfo=UTC),)
    assert finn.one_offs[0].utcoffset() == timedelta()


def test_both_spellings_of_a_blackout_load_and_2300_is_not_a_number(folder):
    written = parse_window("2026-12-24T18:00:00Z/2026-12-27T08:00:00Z")
    recurring = 'type: recurring, label: night, start_time: "23:00", end_time: "07:00"'
    one_offs = [
        'type: one-off, start: "2026-12-24T18:00:00Z", end: "2026-12-27T08:00:00Z"',
        'type: one_off, start_time: "2026-12-24T18:00:00Z", end_time: "2026-12-27T08:00:00Z"',
    ]
    for spelling in one_offs:
        (finn,) = load(write(folder, "config.yml", CONFIG.replace(recurring, spelling))).agents
        (window,) = finn.limits.quiet_hours
        assert (window.start, window.end) == (written.start, written.end)
    # Without quotes it is still a time; what another reader made of it is refused, with the time it was.
    bare = CONFIG.replace('"23:00"', "23:00")
    (finn,) = load(write(folder, "config.yml", bare)).agents
    assert finn.limits.quiet_hours[0].start_minute == 23 * 60
    assert '"23:00"' in told(write(folder, "config.yml", CONFIG.replace('"23:00"', "1380")))
