"""kill -9 of a writing process at 20 random moments; `make soak` does the same 200 times."""

from soak.killer import Killer

KILLS = 20


def test_what_was_accepted_survives_twenty_kills_and_is_there_once(tmp_path):
    killer = Killer(tmp_path / "data", seed=20)
    for kill in range(1, KILLS + 1):
        killer.kill_one()
        assert killer.check() == [], f"after kill {kill}"
    assert killer.audit() == []
    assert len(killer.accepted.records) > KILLS
    assert killer.accepted.finishes


def test_a_writer_that_accepts_before_its_commit_is_caught(tmp_path):
    killer = Killer(tmp_path / "data", seed=3, lies=True)
    for _ in range(KILLS):
        killer.kill_one()
        if killer.check():
            return
    raise AssertionError(f"it lied through {KILLS} kills")
