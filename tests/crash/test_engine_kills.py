"""kill -9 of a working engine at eight random moments, and a redeploy amid ten runs; `make soak` kills 300 times."""

from soak.standing import Killer, until
from soak.witness import TELL, Sign, agreement, overlaps

KILLS = 8

SLEEPER = f"""{TELL}
tell begin
while [ ! -e go ]; do rest 0.05; done
tell end
"""


def test_no_run_is_lost_repeated_or_overlapping_through_eight_kills(place):
    here = place(agents=4)
    here.up()
    killer = Killer(here, seed=11)
    for _ in range(KILLS):
        killer.kill_one()
    here.drain()
    assert here.check() == []
    assert len(here.begun()) > KILLS


def test_ten_runs_end_normally_under_the_engine_that_follows_a_redeploy(place):
    here = place(agents=10, interval="1h", agent=SLEEPER)
    here.up()
    until(lambda: len(here.begun()) == 10, "ten runs")
    here.leave()
    assert [sign.what for sign in here.witness()] == ["begin"] * 10
    here.up()
    assert len(here.told("runs", "--open")["items"]) == 10
    (here.folder / "go").touch()
    until(lambda: not here.told("runs", "--open")["items"], "their ends")
    rows = here.told("runs")["items"]
    assert [row["outcome"] for row in rows] == ["done"] * 10
    assert overlaps(here.witness()) == []
    assert len(here.witness()) == 20


def test_the_checks_see_a_run_that_overlaps_is_repeated_lost_or_never_ends():
    begin, alive, end = (Sign(what, "a", 1) for what in ("begin", "alive", "end"))
    following = Sign("begin", "a", 2), Sign("end", "a", 2)
    assert overlaps([begin, alive, end, *following]) == []
    assert "while run 1 was under way" in overlaps([begin, *following])[0]
    assert "executed twice" in overlaps([begin, end, begin, end])[0]
    assert "never ended" in overlaps([begin])[0]
    # A run that was lost need not have ended, but it must not be there any more when the next one is.
    assert overlaps([begin, alive, *following], lost=[1]) == []
    assert "(alive) while run 2 was under way" in overlaps([begin, following[0], alive, following[1]], lost=[1])[0]
    assert "(alive) after its end" in overlaps([begin, *following, alive], lost=[1])[0]
    assert "executed twice" in overlaps([begin, *following, begin], lost=[1])[0]


def test_the_checks_see_a_store_that_says_otherwise_than_the_witness(place):
    here = place(agents=1)
    here.up()
    until(lambda: len(here.begun()) >= 2, "two runs")
    here.drain()
    assert here.check() == []
    signs = here.witness()
    with here.store() as store:
        assert "never executed" in agreement([], store)[0]
        assert "never seen to end" in agreement([sign for sign in signs if sign.what == "begin"], store)[0]
        assert "the store knows nothing" in agreement([*signs, Sign("begin", "a", 10_000)], store)[-1]
