"""The picture of the fleet that `wakeful top` draws: pure, by its lines."""

import unicodedata
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.cli.office import EVIL
from tests.cli.top_rows import NOON, Row, a_day, a_fleet, a_pause, an_agent, at
from wakeful.cli.output import Line
from wakeful.cli.top_cells import PLAIN, RICH, Glyphs, bar, cut, filled, fitted, folded, inert, width_of, wrapped
from wakeful.cli.top_rows import arranged, short
from wakeful.cli.top_screen import STALE, Picture, fleet_picture, scrolled
from wakeful.cli.top_state import SORTS, Fleet, Prompt, Size, State
from wakeful.cli.top_terminal import painted

NARROW, WIDE = Size(80, 24), Size(200, 50)


def drawn(fleet: Fleet, state: State | None = None, size: Size = NARROW, glyphs: Glyphs = RICH) -> Picture:
    state = state or State(selected=next(iter(fleet.rows), ""))
    rows = arranged(fleet.rows.values(), state.sort, state.backwards, state.filter, NOON)
    return fleet_picture(state, fleet, rows, NOON, size, glyphs)


def text(line: Line) -> str:
    return "".join(span.text for span in line).rstrip()


def texts(picture: Picture) -> list[str]:
    return [text(line) for line in picture.lines]


def line_of(picture: Picture, words: str) -> str:
    return next(line for line in texts(picture) if words in line)


def styles(picture: Picture, words: str) -> set[str]:
    line = next(line for line in picture.lines if words in text(line))
    return {span.style for span in line if span.text.strip()}


# ---- what it says


def test_what_today_cost_is_not_cut_off_at_eighty_columns():
    fleet = a_fleet(an_agent("wren"))
    fleet.status["fleet"]["spent"] = {"usd": 1234.56, "tokens": 12_345_678, "of_usd": 2000.0, "of_tokens": None}
    assert "spent today $1234.56 of $2000.00, 12,345,678 tokens" in texts(drawn(fleet))[0]


def test_at_eighty_by_twenty_four_each_agent_is_a_line_that_says_what_it_does():
    fleet = a_fleet(
        an_agent("wren", "running", unread=3, open_tasks=2),
        an_agent("moss", "waiting"),
        an_agent("fern"),
        an_agent("finn", "quarantined", last={"outcome": "failed", "ended_at": at(-7_300), "reason": "exit code 1"}),
    )
    shown = texts(drawn(fleet))
    assert len(shown) == 24
    assert shown[0].startswith("night desk: 4 agents, sessions 1 of 2, workers 0 of 3")
    assert shown[1] == "engine up 1h on here, heartbeat 0.2s ago"
    assert shown[2] == "1 running  1 waiting  1 idle  1 quarantined  1 failed last"
    assert shown[3].split() == ["AGENT", "DOING", "UNREAD", "TASKS", "LAST"]
    assert shown[4] == "  Q finn  quarantined after 5 failures                              failed 2h"
    assert shown[5] == "  I fern  idle, next beat in 4m                                     done 4m"
    assert shown[6] == "  W moss  deferred by cooldown until 12:05                          done 4m"
    assert shown[7] == " ▸R wren  running 2m 13s of 15m                             3     2 done 4m"
    assert shown[-1].startswith("p pause r resume t tick w wake l log") and shown[-1].endswith("q quit")


def test_below_it_all_is_told_of_the_selected_one():
    fleet = a_fleet(an_agent(last={"outcome": "failed", "ended_at": at(-90), "reason": "exit code 1"}, **a_day()))
    shown = texts(drawn(fleet))
    start = next(number for number, line in enumerate(shown) if line.startswith("── wren "))
    assert shown[start + 1 : start + 5] == [
        " now    idle, next beat in 4m",
        " day    draft ×3 › [edit 1/2] › rem   every 10m",
        " today  wakes 5/12 ██···  minutes 34/120 █····  $0.42/5.00 █····  tokens 12k",
        " last   failed 1m 30s ago: exit code 1",
    ]


def test_where_it_stands_is_in_sight_however_long_its_day():
    day = [{"state": f"a_state_called_{number}", "kind": "wake", "repeat": 1} for number in range(30)]
    row = an_agent(day=day, position={"state": "a_state_called_29", "hits": 0, "kind": "wake"})
    assert "[a_state_called_29]" in line_of(drawn(a_fleet(row)), " day ")


def test_columns_come_as_there_is_room():
    failed = {"outcome": "failed", "ended_at": at(-90), "reason": "exit code 1"}
    fleet = a_fleet(an_agent(last=failed, **a_day()))
    heads = {width: line_of(drawn(fleet, size=Size(width, 24)), "AGENT").split() for width in (60, 80, 90, 130, 240)}
    assert heads[60] == ["AGENT", "DOING", "UNREAD", "TASKS", "LAST"]
    assert "POSITION" in heads[90] and "WAKES" not in heads[90]
    assert {"WAKES", "MINUTES", "SPENT"} <= set(heads[130])
    wide = line_of(drawn(fleet, size=Size(240, 24)), "▸")
    for told in ("edit +1", "5/12 ██···", "34/120 █····", "$0.42/5.00 █····", "exit code 1", "draft ×3 › [edit 1/2]"):
        assert told in wide


def test_a_column_that_would_be_empty_is_none():
    nothing = {"used": 0, "of": None}
    row = an_agent(today=dict.fromkeys(("wakes", "minutes", "usd", "tokens"), nothing))
    heads = line_of(drawn(a_fleet(row), size=WIDE), "AGENT").split()
    assert "POSITION" not in heads and "SPENT" not in heads and "WAKES" in heads


def test_a_pause_of_the_fleet_stands_over_the_whole_width_and_says_how_to_go_on():
    picture = drawn(a_fleet(an_agent("wren", "paused"), pauses=(a_pause(),)))
    line = next(line for line in picture.lines if "PAUSED" in text(line))
    assert text(line) == " PAUSED  the fleet by operator since 11:59:00, until 12:10: a look"
    assert {span.style for span in line if span.text} == {"black on_yellow"}
    assert sum(width_of(span.text) for span in line) == 80
    assert "R resume all" in texts(picture)[-1]


def test_many_paused_agents_are_one_line_and_those_in_quarantine_another():
    pauses = [a_pause(f"agent:a{number}") for number in range(30)]
    pauses += [a_pause("agent:finn", owner="quarantine", reason="5 failures", until=None)]
    rows = [an_agent(f"a{number}", "paused") for number in range(30)]
    shown = [line for line in texts(drawn(a_fleet(*rows, pauses=tuple(pauses)))) if "PAUSED" in line or "QUAR" in line]
    assert shown[0].startswith(" QUARANTINED finn by quarantine")
    assert shown[1].startswith(" PAUSED  30 agents: a0, a1, a2") and len(shown) == 2


def test_what_may_be_old_says_so_before_anything_else():
    picture = drawn(a_fleet(an_agent(), silent=12.0, problem="the engine is away", as_of="11:59:48"))
    assert texts(picture)[1] == " STALE 12s, asking again; this was at 11:59:48: the engine is away"
    assert styles(picture, "STALE") == {STALE}


def test_no_engine_is_as_plain():
    picture = drawn(a_fleet(an_agent(), engine=None))
    assert texts(picture)[1] == " No engine: nothing begins by itself (start one: wakeful up)"
    assert styles(picture, "No engine") == {STALE}


def test_notices_are_few_and_the_rest_is_counted():
    notices = [f"fleet.org:{number}: something" for number in range(9)]
    shown = texts(drawn(a_fleet(an_agent(), diagnostics=notices)))
    assert sum("something" in line for line in shown) == 2
    assert "and 7 more notices: wakeful status" in shown


def test_a_state_is_a_letter_and_a_word_and_never_red_or_green():
    states = ("running", "waiting", "idle", "paused", "quarantined", "disabled")
    picture = drawn(a_fleet(*(an_agent(f"x{state}", state) for state in states)))
    for letter, state in zip("RWIPQD", states, strict=True):
        line = line_of(picture, f"x{state}")
        assert line[2] == letter
        assert not {"red", "green"} & {word for style in styles(picture, f"x{state}") for word in style.split()}


def test_a_limit_that_is_reached_is_a_full_bar_and_stands_out():
    row = an_agent(today={"wakes": {"used": 12, "of": 12}, "minutes": {"used": 119.9, "of": 120}})
    picture = drawn(a_fleet(row))
    line = next(line for line in picture.lines if text(line).startswith(" today"))
    found = {span.text.strip(): span.style for span in line}
    assert found["wakes 12/12 █████"] == "bold magenta"
    assert found["minutes 119/120 ████·"] == "yellow"


def test_nobody_and_nobody_found_are_told_apart():
    assert "no agents yet" in line_of(drawn(a_fleet()), "no agents")
    assert "no agent is found by 'zzz' (Esc shows all)" in line_of(
        drawn(a_fleet(an_agent()), State(filter="zzz")), "Esc"
    )


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        (Prompt("filter", text="mo "), "find: mo"),
        (Prompt("pause for", agent="wren", text="10m"), "pause wren for: 10m"),
        (Prompt("pause reason", duration="10m"), "pause the fleet for 10m, reason:"),
        (Prompt("wake", agent="wren"), "wake wren, message:"),
        (Prompt("kill", agent="wren", run=12), "end run 12 of wren? y/n"),
        (Prompt("resume"), "resume the fleet? y/n"),
    ],
)
def test_what_is_typed_stands_at_the_cursor(prompt, shown):
    picture = drawn(a_fleet(an_agent()), State(selected="wren", prompt=prompt))
    assert picture.cursor is not None
    row, column = picture.cursor
    assert texts(picture)[row] == shown and column >= len(shown)


def test_a_duration_that_is_none_is_said_beside_it():
    prompt = Prompt("pause for", agent="wren", text="10", problem="expected a duration with a unit")
    assert texts(drawn(a_fleet(an_agent()), State(prompt=prompt)))[-1] == "expected a duration with a unit"


# ---- order


def test_trouble_comes_first_and_the_rest_by_name():
    bad = {"outcome": "failed", "ended_at": at(-90), "reason": ""}
    rows = [
        an_agent("moss-10"),
        an_agent("zeno", last=bad),
        an_agent("moss-2", "running"),
        an_agent("yew", "quarantined"),
    ]
    assert [row["name"] for row in arranged(rows, "trouble", False, "", NOON)] == ["yew", "zeno", "moss-2", "moss-10"]


@pytest.mark.parametrize("sort", SORTS)
def test_every_order_orders_rows_that_have_nothing_to_order_by(sort):
    bare = an_agent("bare", next_beat=None, due_at=None, today=None, last={"outcome": None, "ended_at": None})
    full = an_agent("full", unread=2)
    found = [row["name"] for row in arranged([bare, full], sort, False, "", NOON)]
    assert sorted(found) == ["bare", "full"]
    assert arranged([bare, full], sort, True, "", NOON)[0]["name"] == found[-1]


@pytest.mark.parametrize("words", ["run", "WREN", "edit", "2m 13s", "done wre"])
def test_a_filter_finds_by_what_is_to_be_seen(words):
    rows = [an_agent("wren", "running", **a_day()), an_agent("moss")]
    assert [row["name"] for row in arranged(rows, "name", False, words, NOON)][:1] == ["wren"]
    assert arranged(rows, "name", False, f"{words} zzz", NOON) == []


def test_the_rows_move_only_as_far_as_it_takes_to_see_the_selected_one():
    assert [scrolled(5, at, 10, 100) for at in (5, 14, 15, 4, 99, 0)] == [5, 5, 6, 4, 90, 0]
    assert scrolled(90, 3, 10, 4) == 0


def test_of_a_thousand_only_those_in_sight_are_drawn():
    made = 0

    class Counted(dict):  # type: ignore[type-arg]
        def get(self, key: str, *otherwise: object) -> object:
            nonlocal made
            made += key == "doing"
            return super().get(key, *otherwise)

    rows: list[Row] = [Counted(an_agent(f"agent-{number}")) for number in range(1_000)]
    picture = drawn(a_fleet(*rows), State(selected="agent-500"))
    assert " ▸I agent-500" in "\n".join(texts(picture))
    assert made <= 24


# ---- what agents write


HOSTILE = [
    EVIL,
    "a\nb\tc",
    "\u202eevil",
    "漢字" * 30,
    "é" + "\u0301" * 50,
    "\U0001f468\u200d\U0001f469",
    "\ud800x",
    "\u2067עברית",
]


@pytest.mark.parametrize("glyphs", [RICH, PLAIN])
@pytest.mark.parametrize("evil", HOSTILE)
@pytest.mark.parametrize("size", [NARROW, WIDE, Size(33, 9)])
def test_whatever_an_agent_writes_every_line_is_as_wide_as_the_terminal_and_inert(evil, size, glyphs):
    row = an_agent(evil, "paused", doing=[f"paused by {evil}: {evil}"], cadence=evil)
    row |= {"last": {"outcome": "failed", "ended_at": at(-1), "reason": evil}, "position": {"state": evil, "hits": 1}}
    row |= {"day": [{"state": evil, "kind": "wake", "repeat": 2}]}
    outage = {"agent": evil, "source": evil, "outage": evil, "since": None, "node": None}
    more = {"outages": [outage], "diagnostics": [evil], "problem": evil}
    fleet = a_fleet(row, pauses=(a_pause(f"agent:{evil}", reason=evil), a_pause(reason=evil)), **more)
    for silent in (0.0, 3.0):
        state = State(selected=evil, filter="", said=evil, prompt=Prompt("wake", agent=evil, text=evil))
        for each in (state, replace(state, prompt=None)):
            picture = drawn(replace(fleet, silent=silent), each, size, glyphs)
            assert len(picture.lines) == size.rows
            assert {sum(width_of(span.text) for span in line) for line in picture.lines} == {size.columns}
            assert_inert("".join(span.text for line in picture.lines for span in line))


def assert_inert(shown: str) -> None:
    wrong = [char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    assert wrong == []


@given(some.text())
def test_no_text_at_all_keeps_what_takes_no_cell(written):
    assert_inert(inert(written))


@given(some.text(max_size=60), some.integers(1, 40))
def test_what_is_cut_and_filled_is_exactly_as_wide(written, width):
    flat = inert(written)
    assert width_of(filled(flat, width)) == width
    assert width_of(cut(flat, width)) <= width
    assert all(width_of(line) <= max(width, 2) for line in wrapped(flat, width))
    assert "".join(wrapped(flat, width)) == flat
    assert sum(width_of(span.text) for span in fitted([], width)) == width


def test_words_are_folded_between_them():
    assert folded("one two three", 9) == ["one two", "three"]
    assert folded("a long-long-long-word", 10, indent=2) == ["a", "  long-lon", "  g-long-w", "  ord"]


# ---- small things


@pytest.mark.parametrize(
    ("used", "of", "drawn"),
    [(0, 10, "·····"), (0.01, 10, "█····"), (9.99, 10, "████·"), (10, 10, "█████"), (5, None, ""), (0, 0, "█████")],
)
def test_a_bar_is_full_only_at_the_limit_and_empty_only_at_nothing(used, of, drawn):
    assert bar(used, of, 5) == drawn


@pytest.mark.parametrize(
    ("number", "told"), [(3, "3"), (34.5, "34"), (0.99, "0.9"), (9_999, "9999"), (12_345, "12k"), (3.4e6, "3.4M")]
)
def test_numbers_have_few_cells(number, told):
    assert short(number) == told


def test_without_colours_what_stood_out_by_colour_is_turned():
    line = drawn(a_fleet(an_agent(), pauses=(a_pause(),))).lines[2]
    assert painted(line, True).startswith("\x1b[30;43m")
    assert painted(line, False).startswith("\x1b[7;1m")


def test_after_a_character_that_is_measured_in_two_ways_the_next_piece_is_placed_by_its_column():
    line = drawn(a_fleet(an_agent("漢字"), an_agent("a")), State(selected="a")).lines[5]
    assert "\x1b[" in painted(line, False) and "\x1b[11G" in painted(line, False)


def test_the_same_fleet_a_second_later_differs_only_in_its_times():
    fleet = a_fleet(an_agent("moss"), an_agent("wren", "running"))
    rows = list(fleet.rows.values())
    state = State(selected="moss")
    before, after = (
        texts(fleet_picture(state, fleet, rows, NOON + timedelta(seconds=second), NARROW, RICH)) for second in (0, 1)
    )
    changed = [number for number, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert 0 in changed and len(changed) <= 6
