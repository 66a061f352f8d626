"""kill -9 of a working engine at 20 random moments, and a redeploy amid ten runs; `make soak` kills 300 times."""

import pytest

from soak.standing import Killer, Place, agreement, alternation, until

KILLS = 20

# Ten seconds are enough for an engine to go and another to come, on the slowest machine.
SLEEPER = """#!/bin/sh
echo "begin $WAKEFUL_AGENT $WAKEFUL_RUN_ID" >> witness
while [ ! -e go ]; do sleep 0.05; done
echo "end $WAKEFUL_AGENT $WAKEFUL_RUN_ID" >> witness
"""


@pytest.fixture
def place(tmp_path):
    places = []

    def make(*arguments, **options):
        places.append(Place(tmp_path / "fleet", *arguments, **options))
        return places[-1]

    yield make
    for place in places:
        if place.engine is not None and place.engine.poll() is None:
            place.kill()


def test_no_run_is_lost_repeated_or_overlapping_through_twenty_kills(place):
    here = place(agents=4)
    here.up()
    killer = Killer(here, seed=11)
    for _ in range(KILLS):
        killer.kill_one()
    here.drain()
    assert here.check() == []
    assert len(here.witness()) > KILLS


def test_ten_runs_end_normally_under_the_engine_that_follows_a_redeploy(place):
    here = place(agents=10, interval="1h", agent=SLEEPER)
    here.up()
    until(lambda: len(here.witness()) == 10, "ten runs")
    here.leave()
    assert [what for what, _, _ in here.witness()] == ["begin"] * 10
    here.up()
    assert len(here.told("runs", "--open")["items"]) == 10
    (here.folder / "go").touch()
    until(lambda: not here.told("runs", "--open")["items"], "their ends")
    rows = here.told("runs")["items"]
    assert [row["outcome"] for row in rows] == ["done"] * 10
    assert alternation(here.witness()) == []
    assert len(here.witness()) == 20


def test_the_checks_see_a_run_that_overlaps_is_repeated_lost_or_never_ends():
    begin, end = ("begin", "a", 1), ("end", "a", 1)
    assert alternation([begin, end]) == []
    assert "while run 1 was under way" in alternation([begin, ("begin", "a", 2), ("end", "a", 2)])[0]
    assert "executed twice" in alternation([begin, end, begin, end])[0]
    assert "never ended" in alternation([begin])[0]


def test_the_checks_see_a_store_that_says_otherwise_than_the_witness(place):
    here = place(agents=1)
    here.up()
    until(lambda: len(here.witness()) >= 4, "two runs")
    here.drain()
    assert here.check() == []
    from wakeful.store.sqlite import open_sqlite

    store = open_sqlite(here.data / "wakeful.db")
    try:
        assert "never executed" in agreement([], store)[0]
        assert "the store knows nothing" in agreement([*here.witness(), ("begin", "a", 10_000)], store)[-1]
    finally:
        store.close()
