"""What is told of those who were not let do something, and of what the operator did."""

import asyncio
import json

import pytest

from tests.http.asgi import HOST, put
from tests.http.house import Beside
from tests.http.served import KEYS
from tests.store.blank import open_blank
from wakeful.control import noting
from wakeful.control.callers import OPERATOR, Caller
from wakeful.control.control import Control
from wakeful.control.noting import MINUTE, MOST_APART, Denial, Denials
from wakeful.control.operations import OPERATIONS
from wakeful.core.admission import admit
from wakeful.core.errors import Forbidden
from wakeful.http.app import build
from wakeful.store.inline import Inline
from wakeful.testing.contracts.store_case import LEASE, NOW, a_fleet, tick
from wakeful.testing.loop import VirtualLoop

WRONG = [("Authorization", "Bearer wrong")]
RIGHT = [("Authorization", f"Bearer {KEYS.operator}"), ("Content-Type", "application/json")]


class Ledger:
    """A store, who asks it, and what its events tell."""

    def __init__(self, path):
        self.store = open_blank(path / "wakeful.db")
        self.store.declare(a_fleet("wren", "moss"), NOW)
        self.control = Control(Inline(self.store), runs=path / "runs", clock=lambda: NOW, node="here")

    def told(self, *kinds):
        return [event.fields for event in self.store.events(kinds=kinds or ("denied",))]


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.store.close()


def lived(main):
    """As long as it takes by the clock of a loop that jumps."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


async def passed(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(seconds, over.set_result, None)
    await over


# ---- who is not let in


def test_each_way_to_be_denied_is_told_with_its_address_and_without_what_was_sent(ledger):
    async def ask() -> None:
        app = build(ledger.control, keys=KEYS, hosts=[HOST])
        await put(app, "GET", "/v1/status?token=hush", headers=[], address="10.0.0.9")
        await put(app, "GET", "/v1/status", headers=RIGHT, host="evil.example")
        await put(app, "POST", "/v1/pause", b"{}", headers=[*RIGHT, ("Origin", "http://evil.example")])
        await put(app, "GET", "/v1/" + "x" * 5_000 + "\x00", headers=WRONG, address="::ffff:10.0.0.9")

    asyncio.run(ask())
    told = ledger.told()
    assert [(each["why"], each["address"], each["count"]) for each in told] == [
        ("unauthenticated", "10.0.0.9", 1),
        ("host", "127.0.0.1", 1),
        ("origin", "127.0.0.1", 1),
        # Of the same address, however it was spelled, for the same reason, and not a minute later.
    ]
    assert [(each["method"], each["path"]) for each in told] == [
        ("GET", "/v1/status"),
        ("GET", "/v1/status"),
        ("POST", "/v1/pause"),
    ]
    assert "hush" not in str(told) and KEYS.operator not in str(told)


def test_a_token_that_comes_in_a_body_is_told_of_too_when_it_is_wrong(ledger):
    async def ask() -> int:
        app = build(ledger.control, keys=KEYS, hosts=[HOST])
        todo = json.dumps({"token": "wrong", "from": "x", "fromName": "X", "message": "hello"}).encode()
        return (await put(app, "POST", "/peer-todo", todo, headers=[("Content-Type", "application/json")])).status

    assert asyncio.run(ask()) == 401
    assert [(each["why"], each["path"]) for each in ledger.told()] == [("unauthenticated", "/peer-todo")]
    assert "wrong" not in str(ledger.told())


def test_who_is_let_in_is_not_told_of_as_denied_nor_is_a_mistake(ledger):
    async def ask() -> None:
        app = build(ledger.control, keys=KEYS, hosts=[HOST])
        for method, path in (("GET", "/v1/status"), ("GET", "/v1/agents/nobody"), ("POST", "/v1/pause/typo")):
            await put(app, method, path, headers=RIGHT)
        await put(app, "GET", "/healthz")

    asyncio.run(ask())
    assert ledger.told() == []


def test_a_run_that_may_not_is_told_of_once_with_its_agent_and_operation(ledger):
    run = Caller(name="wren", run=7, epoch=1)
    with pytest.raises(Forbidden):
        asyncio.run(ledger.control.pause(run))
    (event,) = ledger.store.events(kinds=("denied",))
    assert (event.agent, event.run) == ("wren", 7)
    assert event.fields["why"] == "forbidden" and event.fields["operation"] == "pause"


def test_each_thing_that_a_run_may_not_do_is_told_by_itself(ledger):
    """Who is talked into it tries many doors; the one that was tried last must not stand for all."""
    run = Caller(name="wren", run=7, epoch=1)
    barred = [name for name, operation in OPERATIONS.items() if not operation.by_runs]

    async def ask() -> None:
        for name in (*barred, *barred):
            with pytest.raises(Forbidden):
                await getattr(ledger.control, name)(run)
        await ledger.control.denials.flush()

    lived(ask())
    told = [(each["operation"], each["count"]) for each in ledger.told()]
    assert len(barred) > 20 and sorted(told) == sorted([(name, 1) for name in barred] * 2)


def test_a_run_leaves_strangers_their_room_and_they_leave_it_its_own(ledger, monkeypatch):
    monkeypatch.setattr(noting, "MOST_OF_RUNS", 20)

    async def flood() -> None:
        denials = Denials(ledger.control.access, ledger.control.clock)
        for number in range(100):
            await denials.note(Denial(why="forbidden", agent="wren", run=number, told={"operation": "pause"}))
            await denials.note(Denial(why="host", address=f"10.0.{number // 250}.{number % 250}"))
        await denials.flush()

    lived(flood())
    told = ledger.told()
    apart = [each for each in told if each.get("address") != "others"]
    assert len(apart) == MOST_APART + 20 and sum(each["count"] for each in told) == 200


# ---- many at once


def test_a_flood_is_one_line_at_once_and_then_one_a_minute_with_its_number(ledger):
    async def flood() -> None:
        denials = Denials(ledger.control.access, ledger.control.clock)
        for _ in range(3):
            for _ in range(1_000):
                await denials.note(Denial(why="host", address="10.0.0.1", told={"path": "/"}))
            await passed(MINUTE + 1)
        await passed(3 * MINUTE)
        await denials.note(Denial(why="host", address="10.0.0.1"))

    lived(flood())
    assert [each["count"] for each in ledger.told()] == [1, 999, 1000, 1000, 1]


def test_reasons_and_addresses_are_told_apart_up_to_a_bound_and_then_together(ledger):
    async def flood() -> None:
        denials = Denials(ledger.control.access, ledger.control.clock)
        for number in range(500):
            await denials.note(Denial(why="host", address=f"10.0.{number // 250}.{number % 250}"))
        await denials.flush()

    lived(flood())
    told = ledger.told()
    assert len(told) == MOST_APART + 2
    assert sum(each["count"] for each in told) == 500
    assert {each["address"] for each in told[MOST_APART:]} == {"others"}


def test_what_was_counted_is_told_when_the_server_leaves(ledger):
    async def flood() -> None:
        for _ in range(5):
            await ledger.control.denied(Denial(why="host", address="10.0.0.1"))
        await ledger.control.denials.flush()

    lived(flood())
    assert [each["count"] for each in ledger.told()] == [1, 4]


def test_a_store_in_trouble_lets_nobody_in_and_keeps_nobody_waiting(ledger, caplog):
    class Sick(Inline):
        async def write(self, verb, *, quiet=False):
            raise OSError("the disk is full")

    class Silent(Inline):
        async def write(self, verb, *, quiet=False):
            await asyncio.Event().wait()

    async def ask(access) -> int:
        control = Control(access, runs=ledger.control.folder, clock=lambda: NOW)
        app = build(control, keys=KEYS, hosts=[HOST])
        before = asyncio.get_running_loop().time()
        status = (await put(app, "GET", "/v1/status", headers=WRONG)).status
        assert asyncio.get_running_loop().time() - before < 1
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return status

    assert lived(ask(Sick(ledger.store))) == 401
    assert "the disk is full" in caplog.text
    assert lived(ask(Silent(ledger.store))) == 401


# ---- what the operator did

# Only a run asks for these.
OF_RUNS = {"save_step", "claim_task"}


def test_every_act_of_the_operator_is_told_with_who_did_it(ledger):
    """An operation that is added is missed here until it is tried."""
    folder = ledger.control.folder.parent
    control = Control(ledger.control.access, runs=folder / "runs", clock=lambda: NOW, beside=Beside(), node="here")
    told: dict[str, int] = {}

    async def did(name: str, **parameters: object):
        before = ledger.store.events(before=1 << 62, limit=1)[0].id
        answer = await getattr(control, name)(OPERATOR, **parameters)
        fields = [event.fields or {} for event in ledger.store.events(after=before)]
        names = ("by", "owner", "from", "sender")
        told[name] = sum("operator" in [each.get(name) for name in names] for each in fields)
        return answer

    async def act() -> None:
        message = (await did("send", agent="wren", body="hello"))["message"]["id"]
        await did("snooze", agent="wren", messages=[message], until="in 2h")
        await did("mark_read", agent="wren", messages=[message])
        run = (await did("tick", agent="wren"))["run_id"]
        await did("kill", run=run)
        for name, given in (("wake", {}), ("at", {"when": "in 2h"}), ("run", {"prompt": "count"})):
            await did(name, agent="wren", **given)
        first, second = [(await did("add_task", title="count", agent="moss"))["id"] for _ in range(2)]
        await did("add_tasks", tasks=[{"title": "a", "agent": "moss"}, {"title": "b", "agent": "moss"}])
        for name in ("fail_task", "retry_task", "cancel_task", "remove_task"):
            await did(name, task=first)
        for name in ("fail_task", "replay", "complete_task"):
            await did(name, task=second)
        third = (await did("add_task", title="count", agent="moss"))["id"]
        await did("fail_task", task=third)
        await did("discard", task=third)
        await did("change_tasks", change="cancel", all=True)
        await did("set", agent="wren", settings={"cooldown": "10m"})
        for name, given in (("pause", {}), ("resume", {}), ("pause_agent", {"agent": "wren"})):
            await did(name, **given)
        await did("resume_agent", agent="wren")
        await did("backup", path=str(folder / "copy.db"))
        await did("reload")
        await did("stop")

    asyncio.run(act())
    assert {name for name, count in told.items() if not count} == set()
    changing = {name for name, operation in OPERATIONS.items() if operation.method != "GET"}
    assert changing - set(told) == OF_RUNS
    assert told["add_tasks"] == 1


def test_what_a_key_finds_again_was_done_once(ledger):
    async def act() -> None:
        for _ in range(3):
            await ledger.control.send(OPERATOR, agent="wren", body="hello", key="once")
            await ledger.control.add_task(OPERATOR, title="count", agent="moss", key="too")

    asyncio.run(act())
    assert [each["operation"] for each in ledger.told("acted")] == ["send", "add_task"]


def test_what_an_agent_does_in_its_run_is_no_act_of_the_operator(ledger):
    ledger.store.decide([tick("wren")], admit, NOW)
    (order,) = ledger.store.claim("here", NOW, LEASE)
    wren = Caller(name="wren", run=order.run.id, epoch=order.run.epoch)
    asyncio.run(ledger.control.send(wren, agent="moss", body="hello"))
    asyncio.run(ledger.control.add_task(wren, title="count", agent="moss"))
    assert ledger.told("acted") == []
