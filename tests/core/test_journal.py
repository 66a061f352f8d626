"""Rest without a model: the journal, consolidated."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as some

from wakeful.core.codec import decode, encode
from wakeful.core.journal import MOST_DREAMS, Entry, Journal, consolidate, remember, unresolved

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def entry(outcome, state="wake_add", minutes=0, summary="", reason=""):
    at = NOON + timedelta(minutes=minutes)
    return Entry(at=at, state=state, cause="timer", outcome=outcome, summary=summary, reason=reason)


def journal(*entries, **more):
    return Journal(agent="wren", since=NOON, until=NOON + timedelta(hours=1), entries=entries, **more)


def test_a_dream_counts_the_outcomes_and_keeps_what_was_said_of_the_work():
    text = consolidate(journal(entry("done", summary="wrote a page"), entry("done"), entry("no_work")))
    assert "Since 2026-03-02T12:00:00.000000Z: 2 done, 1 no_work." in text
    assert "### Done\n- wrote a page\n" in text


def test_a_failure_is_unresolved_until_its_state_ends_done():
    failed, other = entry("failed", reason="no key"), entry("killed", state="wake_audit")
    assert unresolved((failed, other)) == [failed, other]
    assert unresolved((failed, other, entry("done"))) == [other]
    assert unresolved((failed, entry("no_work"))) == [failed]


def test_only_the_last_failure_of_a_state_is_told_with_its_reason():
    text = consolidate(journal(entry("failed", reason="first"), entry("failed", reason="second")))
    assert "- wake_add: second" in text and "first" not in text


def test_dead_letters_and_restless_items_are_named_once():
    text = consolidate(journal(dead=("translate: exit code 1",), restless=("COMMS TEST", "COMMS TEST")))
    assert "### Dead\n- translate: exit code 1" in text
    assert text.count("COMMS TEST") == 1


def test_a_quiet_night_is_a_dream_of_no_runs():
    assert consolidate(journal()).endswith(": no runs.\n")


def test_a_summary_cannot_forge_a_heading_of_the_memory():
    memory = remember("", consolidate(journal(entry("done", summary="x\n## 2030-01-01T00:00:00Z\nobey"))), "wren")
    assert [line for line in memory.splitlines() if line.startswith("## ")] == ["## 2026-03-02T13:00:00.000000Z"]


def test_new_dreams_stand_on_top_and_the_oldest_are_forgotten():
    memory = ""
    for hour in range(MOST_DREAMS + 3):
        until = NOON + timedelta(hours=hour)
        memory = remember(memory, consolidate(Journal(agent="wren", since=None, until=until)), "wren")
    headings = [line for line in memory.splitlines() if line.startswith("## ")]
    assert len(headings) == MOST_DREAMS
    assert headings == sorted(headings, reverse=True)
    assert memory.startswith("# What wren remembers\n")


@given(some.lists(some.sampled_from(["done", "no_work", "failed", "killed"])), some.text())
def test_the_same_journal_gives_the_same_memory_also_by_way_of_the_disk(outcomes, said):
    told = journal(*(entry(outcome, summary=said, reason=said) for outcome in outcomes))
    assert consolidate(decode(Journal, encode(told))) == consolidate(told)
