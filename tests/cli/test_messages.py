"""Messages on the command line: sent with data of one's own, looked through, marked, put off; and what is stuck."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.office import EVIL, now, wakeful
from tests.cli.test_every_command import CONTROL
from wakeful.cli.complaints import Complaint
from wakeful.cli.messages import metadata_of
from wakeful.cli.standings import outages
from wakeful.core.admission import admit
from wakeful.core.items import Observation
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def told(*arguments, **environment):
    result = wakeful(*arguments, "--json", **environment)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def sent(*arguments):
    return told("send", "wren", "hello", *arguments)["message"]["id"]


# ---- what is sent


def test_metadata_is_given_as_pairs_or_as_json_or_both(office):
    given = ("--meta", "ticket=A-7", "--meta", '{"pages": [1, 2], "done": false}', "--meta", "note=a=b")
    message = told("send", "wren", "hello", *given)["message"]
    assert message["metadata"] == {"ticket": "A-7", "pages": [1, 2], "done": False, "note": "a=b"}
    shown = '[metadata {"ticket": "A-7", "pages": [1, 2], "done": false, "note": "a=b"}]'
    assert shown in wakeful("inbox", "wren").stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["ticket"], "expected --meta KEY=VALUE, found 'ticket'"),
        (["=x"], "expected --meta KEY=VALUE"),
        (['{"a"'], "--meta is not JSON"),
        (["a=1", '{"a": 2}'], "--meta says a twice"),
        (['{"a": 1, "a": 2}'], "--meta says a twice"),
        (['{"in": {"b": 1, "b": 2}}'], "--meta says b twice"),
    ],
)
def test_metadata_that_cannot_be_meant_is_a_mistake(given, said):
    with pytest.raises(Complaint, match=said) as found:
        metadata_of(given)
    assert found.value.exit_code == 2
    assert metadata_of([]) is None


def test_too_much_metadata_is_told_with_the_bound(office):
    result = wakeful("send", "wren", "hello", "--meta", f"a={'x' * 20_000}")
    assert result.exit_code == 2 and "more than 16,384" in result.stderr


@pytest.mark.parametrize("command", [("send", "wren", "hello"), ("task", "add", "t", "--agent", "wren")])
def test_critical_is_another_word_for_urgent(office, command):
    answer = told(*command, "--priority", "critical")
    assert (answer.get("message") or answer)["priority"] == "urgent"


def test_an_answer_says_what_it_answers(office):
    one = sent()
    two = sent("--reply-to", str(one))
    three = sent("--reply-to", str(two))
    shown = wakeful("inbox", "wren", "--thread", str(one)).stdout
    assert f"[answers {one}]" in shown and f"[answers {two}; in the thread of {one}]" in shown
    assert [row["thread"] for row in told("inbox", "wren")["items"]] == [one] * 3 and three


# ---- looked through


def test_the_inbox_is_filtered(office):
    low, urgent = sent("--priority", "low"), sent("--priority", "urgent", "--type", "unblock")
    wakeful("inbox", "wren", "--read", str(low))

    def found(*filters):
        return [row["id"] for row in told("inbox", "wren", *filters)["items"]]

    assert found() == found("--priority", "critical") == found("--type", "unblock") == [urgent]
    assert found("--state", "closed") == [low] and found("--state", "all", "--newest") == [urgent, low]
    assert found("--from", "operator") == [urgent] and found("--from", "moss") == []
    assert "no open messages" in wakeful("inbox", "wren", "--from", "moss").stdout
    assert "[closed]" in wakeful("inbox", "wren", "--state", "closed").stdout
    run = office.begin("wren")
    assert f"[shown in run {run}]" in wakeful("inbox", "wren").stdout


def test_an_inbox_that_goes_on_says_how_from_either_end(office):
    ids = [sent() for _ in range(5)]
    for first, pages in ((("-n", "2"), ids), (("-n", "2", "--newest"), ids[::-1])):
        shown, arguments = [], ["inbox", "wren", *first]
        while True:
            lines = wakeful(*arguments).stdout.splitlines()
            shown += [int(line.split()[0]) for line in lines if line[:1].isdigit()]
            if not lines[-1].startswith("more: wakeful "):
                break
            arguments = [*lines[-1].removeprefix("more: wakeful ").split(), "-n", "2"]
        assert shown == pages


def test_the_next_page_is_of_the_same_question(office):
    for _ in range(3):
        sent("--type", "unblock", "--priority", "high")
    asked = ["--state", "all", "--from", "operator", "--type", "unblock", "--priority", "high", "-n", "1"]
    last = wakeful("inbox", "wren", *asked).stdout.splitlines()[-1]
    assert last == f"more: wakeful inbox wren {' '.join(asked)} --after 1"
    assert wakeful("inbox", "wren", "-n", "2", "--newest").stdout.endswith("more: wakeful inbox wren -n 2 --before 2\n")


# ---- marked and put off


def test_what_is_put_off_is_out_of_sight_but_for_a_line_at_the_end(office):
    one, two = sent("--subject", "later"), sent("--subject", "soon")
    wakeful("inbox", "wren", "--snooze", str(one), "--until", "2h")
    shown = wakeful("inbox", "wren").stdout
    assert "soon" in shown and "later" not in shown
    assert shown.splitlines()[-1].startswith(f"[snoozed: {one} until ") and "--snoozed]" in shown
    assert (
        "later" in wakeful("inbox", "wren", "--snoozed").stdout
        and "soon" not in wakeful("inbox", "wren", "--snoozed").stdout
    )
    assert [row["id"] for row in told("inbox", "wren")["items"]] == [one, two]
    assert [row["id"] for row in told("inbox", "wren", "--snoozed")["items"]] == [one]
    wakeful("inbox", "wren", "--read", str(two))
    assert wakeful("inbox", "wren").stdout.startswith("no open messages\n[snoozed: ")


def test_messages_are_marked_read_and_that_is_counted(office):
    one, two = sent(), sent()
    assert wakeful("inbox", "wren", "--read", str(one), str(two)).stdout == "2 messages marked read\n"
    assert wakeful("inbox", "wren", str(one), "--read").stdout == "0 messages marked read; 1 closed already\n"
    assert wakeful("inbox", "wren").stdout == "no open messages\n"


def test_a_message_is_put_off_and_says_until_when(office):
    one = sent()
    result = wakeful("inbox", "wren", "--snooze", str(one), "--until", "2h")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 message snoozed until ") and "(in 2h)" in result.stdout
    assert "[snoozed until " in wakeful("inbox", "wren", "--state", "all").stdout
    when = datetime.fromisoformat(told("inbox", "wren")["items"][0]["snoozed_until"])
    assert abs(when - now() - timedelta(hours=2)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["wren", "--read"], 2, "which messages?"),
        (["wren", "1", "--snooze"], 2, "snooze until when?"),
        (["wren", "1", "--read", "--until", "2h"], 2, "what is read does not come back"),
        (["wren", "1"], 2, "what about these messages?"),
        (["wren", "--until", "2h"], 2, "what about these messages?"),
        (["wren", "--snoozed", "--state", "all"], 2, "exclude each other"),
        (["wren", "1", "--read", "--snooze", "--until", "2h"], 2, "say one of them"),
        (["wren", "1", "--read", "--snooze"], 2, "say one of them"),
        (["--read"], 2, "whose inbox?"),
        (["wren", "--read", "99"], 1, "no message 99 in the inbox of wren"),
        (["wren", "--read", "9" * 30], 1, "no message 999"),
        (["wren", "--snooze", "1", "--until", "whenever"], 2, "expected an instant"),
        (["wren", "--thread", "9" * 30], 2, "number of a message as thread"),
    ],
)
def test_what_cannot_be_done_to_an_inbox_is_said(office, given, code, said):
    sent()
    result = wakeful("inbox", *given)
    assert (result.exit_code, said in result.stderr) == (code, True), result.output


def test_inside_a_run_its_own_messages_are_marked_without_its_name(served):
    one = sent()
    inside = {"WAKEFUL_URL": served.url, "WAKEFUL_TOKEN": "run.1.1.x", "WAKEFUL_AGENT": "wren"}
    assert wakeful("inbox", "--read", str(one), **inside).stdout == "1 message marked read\n"
    assert wakeful("inbox", "--snooze", str(one), "--until", "2h", **inside).stdout.endswith("; 1 closed already\n")


# ---- wakes


def test_a_wake_leaves_the_message_that_stands_beside_it(served):
    reply = told("wake", "wren", "the build is red", "--reason", "blocker")
    (message,) = told("inbox", "wren")["items"]
    assert (message["id"], message["body"], message["priority"]) == (reply["message_id"], "the build is red", "urgent")
    assert told("wake", "moss")["message_id"] is None


# ---- stuck


def test_nothing_is_stuck_is_an_answer_too(office):
    for arguments in ((), ("wren",), ("--check",)):
        result = wakeful("stuck", *arguments)
        assert (result.exit_code, result.stdout) == (0, "nothing is stuck\n")


def leave(office, name="notes.txt"):
    """A file that a run saw, and did not deal with."""
    with office.store() as store:
        store.observe("inbox", "wren", [Observation(external_id=name, fingerprint="1")], now())
        store.decide(store.due(now()).wakes, admit, now())
        (order,) = store.claim("here", now(), timedelta(hours=1))
        store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=Ending(exit_code=0))], settle, now())
    return order


def test_what_is_stuck_is_told_with_since_when_and_what_to_do_and_fails_only_a_check(office):
    order = leave(office)
    item = order.items[0].id
    result = wakeful("stuck", "wren")
    first, second = result.stdout.splitlines()
    assert result.exit_code == 0 and first.startswith(f"wren: item {item}, notes.txt of inbox: since ")
    assert first.endswith(f"; seen by 1 run, last by {order.run.id}")
    remove, put_off = "remove or change the file notes.txt", f"wakeful inbox wren --snooze {item} --until 2h"
    assert second == f"    {remove}; or snooze it: {put_off}"
    assert wakeful("stuck", "--check").exit_code == 1 and wakeful("stuck", "moss", "--check").exit_code == 0
    assert wakeful("stuck", "--check", "--json").exit_code == 1
    assert told("stuck")["items"][0]["last_run"] == order.run.id
    # What it advises to type can be typed.
    advised = second.split("wakeful ", 1)[1].split()
    assert wakeful(*advised).exit_code == 0
    assert wakeful("stuck").stdout == "nothing is stuck\n"


# ---- outages


def test_an_outage_is_in_the_status_with_why_and_for_how_long(office):
    with office.store() as store:
        since = datetime.now(UTC) - timedelta(minutes=3, seconds=10)
        store.observe("inbox", "moss", None, since, why="/desk/inbox/moss: no such folder")
    line = "moss: /desk/inbox/moss: no such folder, for 3m 1"
    assert line in wakeful("status").stdout and line in wakeful("status", "moss").stdout
    assert "no such folder" not in wakeful("status", "wren").stdout


def test_of_very_many_outages_a_few_are_shown_and_the_rest_counted():
    row = {"agent": "moss", "source": "inbox", "node": "barn", "outage": "gone", "since": "2026-03-02T11:57:00Z"}
    lines = ["".join(span.text for span in line) for line in outages([row] * 14, True, NOON)]
    assert lines[0] == "moss: inbox: gone, for 3m, as seen by barn" and lines[10:] == ["and 4 more outages"]
    (alone,) = outages([row, {**row, "outage": None}], False, NOON)
    assert alone[0].text == "moss: inbox: gone, for 3m"


def test_nothing_of_a_strangers_reaches_the_terminal_by_an_inbox_or_what_is_stuck_or_cannot_be_looked_at(office):
    sent("--meta", f"{EVIL}={EVIL}", "--subject", EVIL)
    leave(office, EVIL)
    with office.store() as store:
        store.observe("inbox", "moss", None, now(), why=EVIL)
    for command in (("inbox", "wren", "--state", "all"), ("stuck",), ("status",), ("status", "moss"), ("blame", "1")):
        result = wakeful(*command)
        assert result.exit_code == 0 and "red" in result.stdout, command
        assert not CONTROL.search(result.stdout), command


def test_the_doctor_finds_what_cannot_be_looked_at(served):
    def finding():
        rows = json.loads(wakeful("doctor", "--json").stdout)["findings"]
        return next((row["level"], row["said"]) for row in rows if row["name"] == "sources")

    assert finding() == ("ok", "none is out of reach")
    for name in ("moss", "wren"):
        served.control.access.store.observe("inbox", name, None, now(), why="no such folder")
    level, said = finding()
    assert level == "fail" and said.startswith("moss: inbox: no such folder, for ") and said.endswith(", and 1 more")


def test_without_an_engine_nobody_looks_and_the_doctor_says_so(office):
    rows = json.loads(wakeful("doctor", "--json").stdout)["findings"]
    assert ("ok", "not looked at: no engine is at work") in [(row["level"], row["said"]) for row in rows]


def test_a_note_on_what_was_sent_is_told(office, monkeypatch):
    row = {"message": {"id": 7, "to": "wren"}, "wake": None, "duplicate": False, "note": "rings for nobody"}
    monkeypatch.setattr("wakeful.cli.messages.ask", lambda *_, **__: row)
    assert wakeful("send", "wren", "x").stdout == "message 7 is in the inbox of wren\nrings for nobody\n"
