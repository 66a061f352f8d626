"""The SDK's own client, moved by hand: what a program that speaks MCP sees."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

T = TypeVar("T")
PATIENCE = 30.0
TOOLS = {
    *("message_agent", "wake_agent", "read_inbox", "add_task", "claim_task", "complete_task"),
    *("list_agents", "my_standing", "save_step", "load_step"),
}


class Told:
    """One answer of a tool."""

    def __init__(self, result: Any) -> None:
        self.failed: bool = result.is_error
        self.text: str = result.content[0].text
        self.value: Any = result.structured_content
        assert self.failed or json.loads(self.text) == self.value


def over_http(port: int, token: str, talk: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    async def go() -> T:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                return await talk(client)

    return asyncio.run(go())


async def call(client: Client, name: str, /, **arguments: Any) -> Told:
    return Told(await client.call_tool(name, arguments))


async def every_tool(client: Client, role: str, other: str) -> dict[str, Told]:
    """Each called once, by one who has that role at its beat; the client holds every answer against its schema."""
    assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
    told = {
        "message_agent": await call(client, "message_agent", to=other, message="the draft is ready"),
        "wake_agent": await call(client, "wake_agent", to=other, message="the press is down", reason="blocker"),
        "read_inbox": await call(client, "read_inbox"),
        "add_task": await call(client, "add_task", title="proofread", role=role, key="k", payload={"page": 3}),
        "claim_task": await call(client, "claim_task"),
        "list_agents": await call(client, "list_agents"),
        "my_standing": await call(client, "my_standing"),
    }
    task = told["claim_task"].value["task"]["id"]
    told["save_step"] = await call(client, "save_step", name="read it", result=[1, 2], task=task)
    told["load_step"] = await call(client, "load_step", name="read it", task=task)
    told["complete_task"] = await call(client, "complete_task", task=task, result={"commas": 42})
    return told
