"""The log and the hints: one line for each state change, none of it obeyed by a terminal; and files that change."""

import io
import json
import logging
import sys
from functools import partial

import pytest

from tests.engine.stage import heading, lived
from wakeful.engine import telling
from wakeful.engine.clock import Nudge
from wakeful.engine.logs import JsonLines, Words, hide, set_up
from wakeful.engine.telling import UNTOLD
from wakeful.engine.watching import Watch
from wakeful.testing.loop import passes
from wakeful.testing.runner import done, failed


def told(caplog):
    return [(record.getMessage(), record.fields) for record in caplog.records if record.name == "wakeful.event"]


@lived
async def test_each_event_is_told_once_in_order_with_its_own_fields(stage, caplog):
    caplog.set_level(logging.INFO, "wakeful")
    stage.canonical()
    stage.all_end(done("wrote a page"))
    await stage.up()
    started = stage.store.events(limit=10_000)[-1].id
    await stage.minutes(30)
    events = stage.store.events(after=started, limit=10_000)
    lines = told(caplog)
    assert [kind for kind, _ in lines] == [event.kind.value for event in events]
    assert [fields.get("run") for _, fields in lines] == [event.run for event in events]
    decided, begun, ended = lines[:3]
    assert (decided[1]["agent"], decided[1]["cause"], decided[1]["verdict"]) == ("wren", "timer", "admit")
    assert (begun[1]["state"], begun[1]["epoch"]) == ("wake_add", 1)
    assert (ended[1]["outcome"], ended[1]["stands"]) == ("done", ["wake_add", 1])
    assert not UNTOLD & {name for _, fields in lines for name in fields}


@lived
async def test_the_next_engine_does_not_tell_what_was_told(stage, caplog):
    caplog.set_level(logging.INFO, "wakeful")
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.minutes(5)
    before = told(caplog)
    await stage.crash()
    caplog.clear()
    await stage.up()
    await stage.minutes(5)
    assert len(before) == 3
    assert told(caplog) == []


@lived
async def test_failures_and_pauses_are_loud(stage, caplog):
    caplog.set_level(logging.INFO, "wakeful")
    stage.declare(heading("wren", interval="1m", max_failures="2"))
    stage.all_end(failed())
    await stage.up()
    await stage.minutes(10)
    loud = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sorted(loud) == ["ended", "ended", "paused"]


@lived
async def test_much_at_once_is_told_in_pages_and_whole(stage, caplog, monkeypatch):
    monkeypatch.setattr(telling, "PAGE", 20)
    caplog.set_level(logging.INFO, "wakeful.event")
    stage.declare(*(heading(f"agent-{n}", interval="1h") for n in range(3)))
    await stage.up()
    await stage.minutes(1)
    caplog.clear()
    now = stage.now
    await stage.access.write(
        lambda store: [store.set("agent-0", {"max_failures": n + 1}, "ada", now) for n in range(47)]
    )
    await passes(1)
    assert [fields["settings"]["max_failures"] for kind, fields in told(caplog) if kind == "set"] == list(range(1, 48))


# ---- how it looks


def record(message="ended", **fields):
    made = logging.LogRecord("wakeful.event", logging.INFO, __file__, 1, "%s", (message,), None)
    made.fields = fields
    return made


def test_for_a_machine_a_line_is_one_json_object():
    line = JsonLines().format(record(agent="wren", run=7, stands=["wake_add", 1], summary="two\nlines \x1b[31m"))
    assert "\n" not in line
    assert "\x1b" not in line
    read = json.loads(line)
    assert (read["event"], read["level"], read["agent"], read["run"]) == ("ended", "info", "wren", 7)
    assert read["summary"] == "two\nlines \x1b[31m"
    assert read["at"].endswith("Z")


def test_for_a_person_a_line_is_short_and_nothing_in_it_is_obeyed():
    line = Words().format(record(agent="wren", run=7, summary="red \x1b[31m text", reason="a\n12:00:00 forged", x="\a"))
    assert "wren" in line
    assert "run=7" in line
    assert line.count("\n") == 0
    assert all(sign.isprintable() for sign in line)


def test_an_error_is_told_with_where_it_came_from():
    try:
        raise ValueError("no such page")
    except ValueError:
        made = logging.LogRecord("wakeful.engine", logging.ERROR, __file__, 1, "it failed", None, sys.exc_info())
    assert "no such page" in json.loads(JsonLines().format(made))["error"]
    assert "ValueError: no such page" in Words().format(made)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shape"), [(io.StringIO, JsonLines), (Terminal, Words)])
def test_a_terminal_gets_words_and_anything_else_gets_json(stream, shape):
    root, ours = logging.getLogger(), logging.getLogger("wakeful")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    try:
        out = stream()
        set_up(out)
        (handler,) = root.handlers
        assert isinstance(handler.formatter, shape)
        ours.info("begun")
        logging.getLogger("elsewhere").info("not ours")
        assert "begun" in out.getvalue()
        assert "not ours" not in out.getvalue()
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


# ---- hints

INOTIFY = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@INOTIFY
@lived
async def test_whoever_listens_to_a_folder_is_told_of_its_changes_and_of_no_others(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    heard: list[str] = []
    watch = Watch()
    watch.folders([here], lambda: heard.append("here"))
    await watch.start()
    assert watch.hears
    (there / "file").touch()
    await passes(1)
    assert heard == []
    for change in (
        lambda: (here / "file").write_text("x"),
        lambda: (here / "file").rename(here / "other"),
        lambda: (here / "other").unlink(),
        lambda: (here / "folder").mkdir(),
    ):
        heard.clear()
        change()
        await passes(1)
        assert set(heard) == {"here"}
    await watch.stop()
    await watch.stop()
    assert not watch.hears


@INOTIFY
@lived
async def test_a_listener_may_move_to_another_folder_and_a_folder_may_go_and_come_back(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    heard: list[str] = []

    def told():
        heard.append(1)

    watch = Watch()
    await watch.start()
    watch.folders([here, there], told)
    there.mkdir()
    # A folder that was not there is watched from the next listing on.
    watch.folders([there], told)
    (there / "file").touch()
    await passes(1)
    assert heard
    heard.clear()
    (here / "file").touch()
    await passes(1)
    assert heard == []
    (there / "file").unlink()
    there.rmdir()
    await passes(1)
    there.mkdir()
    watch.folders([there], told)
    heard.clear()
    (there / "file").touch()
    await passes(1)
    assert heard
    await watch.stop()


@INOTIFY
@lived
async def test_of_many_listeners_those_are_told_whose_folder_has_changed(tmp_path):
    heard: list[str] = []
    watch = Watch()
    await watch.start()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        for number in range(2):
            watch.folders([tmp_path / name], partial(heard.append, f"{name} {number}"))
    (tmp_path / "there" / "file").touch()
    await passes(1)
    assert set(heard) == {"there 0", "there 1"}
    await watch.stop()


@INOTIFY
@lived
async def test_where_the_kernel_has_lost_count_everybody_is_told(tmp_path):
    from asyncinotify import Event, Mask

    watch = Watch()
    await watch.start()
    bells = [Nudge(), Nudge()]
    for number, bell in enumerate(bells):
        watch.folders([tmp_path / str(number)], bell.ring)
    assert watch._concerned(Event(None, Mask.Q_OVERFLOW, 0, None)) == {bell.ring for bell in bells}
    await watch.stop()


@INOTIFY
@lived
async def test_a_folder_that_was_moved_away_is_no_longer_heard_and_takes_up_nothing(tmp_path):
    here, away = tmp_path / "here", tmp_path / "away"
    here.mkdir()
    heard: list[str] = []
    watch = Watch()
    await watch.start()
    watch.folders([here], partial(heard.append, "here"))
    here.rename(away)
    await passes(1)
    assert heard
    heard.clear()
    (away / "file").touch()
    await passes(1)
    assert heard == []
    assert watch._inotify._watches == {}
    await watch.stop()


@INOTIFY
@lived
async def test_two_paths_to_one_folder_are_both_told_and_one_may_leave(tmp_path):
    here, link = tmp_path / "here", tmp_path / "link"
    here.mkdir()
    link.symlink_to(here)
    heard: list[str] = []
    by_path, by_link = partial(heard.append, "path"), partial(heard.append, "link")
    watch = Watch()
    await watch.start()
    watch.folders([here], by_path)
    watch.folders([link], by_link)
    (here / "file").touch()
    await passes(1)
    assert set(heard) == {"path", "link"}
    heard.clear()
    watch.folders([], by_path)
    (here / "file").unlink()
    await passes(1)
    assert set(heard) == {"link"}
    watch.folders([], by_link)
    await passes(1)
    assert watch._inotify._watches == {} == watch._told
    await watch.stop()


@INOTIFY
@lived
async def test_who_begins_to_listen_hears_of_the_folder_that_the_path_leads_to_now(tmp_path):
    here = tmp_path / "above" / "here"
    here.mkdir(parents=True)
    heard: list[str] = []
    watch = Watch()
    await watch.start()
    watch.folders([here], partial(heard.append, "first"))
    # Nobody is told of a folder above.
    (tmp_path / "above").rename(tmp_path / "elsewhere")
    here.mkdir(parents=True)
    watch.folders([here], partial(heard.append, "second"))
    (here / "file").touch()
    await passes(1)
    assert set(heard) == {"first", "second"}
    assert len(watch._inotify._watches) == 1
    await watch.stop()


@pytest.mark.parametrize("person", [True, False])
def test_no_line_holds_a_secret_once_it_is_known_what_is_one(person):
    class Stream(io.StringIO):
        def isatty(self):
            return person

    out, root = Stream(), logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        set_up(out)
        hide(lambda text: text.replace("sk-live", "[redacted]"))
        log = logging.getLogger("wakeful.event")
        log.warning("denied", extra={"fields": {"path": "/v1/agents/sk-live"}})
        try:
            raise OSError("sk-live")
        except OSError:
            log.exception("it failed with %s", "sk-live")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert "sk-live" not in out.getvalue() and out.getvalue().count("[redacted]") >= 3
