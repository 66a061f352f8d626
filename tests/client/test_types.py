"""What a type checker sees of the two clients: read by mypy with the rest, never called."""

from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any, assert_type

from wakeful import AsyncClient, Client
from wakeful.control import answers, told


def blocking(client: Client) -> None:
    assert_type(client.send("moss", "hello", priority="high"), answers.Sent)
    assert_type(client.agent("moss")["idle_streak"], int)
    assert_type(client.runs(open=True)["items"], list[told.Run])
    assert_type(client.stream(kinds=["ended"]), Generator[told.Event, None, None])
    assert_type(client.every(client.agents, limit=3), Generator[told.Agent, None, None])
    assert_type(client.every(client.events, kinds=["ended"]), Generator[told.Event, None, None])
    assert_type(client.log(3), Generator[answers.Output, None, None])


async def awaited(client: AsyncClient) -> None:
    asked = client.send("moss", "hello")
    assert_type(await assert_type(asked, Coroutine[Any, Any, answers.Sent]), answers.Sent)
    assert_type(await client.wake("moss"), answers.Reply)
    assert_type(client.every(client.runs, agent="moss"), AsyncGenerator[told.Run, None])
    assert_type(client.stream(), AsyncGenerator[told.Event, None])


def test_both_are_seen_by_the_type_checker_alone():
    assert callable(blocking) and callable(awaited)
