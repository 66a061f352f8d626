"""Every path by every method, as a stranger would try it: refused, and nothing is changed by it.

The paths are those that the application has; a new one is in here by itself.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import apsw

from tests.http.asgi import HOST, put
from tests.http.house import Beside
from tests.http.served import KEYS
from wakeful.control.control import Control
from wakeful.core.events import NOTES
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.http.app import build
from wakeful.http.entry import OPEN_PATHS, needs_no_token
from wakeful.http.page import FRONT
from wakeful.store.sqlite import open_sqlite
from wakeful.store.writer import Writer
from wakeful.testing.contracts.store_case import NOW, a_fleet

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# Whether or not the application has them; the entry does not ask.
BESIDES = ("/", "/mcp", "/mcp/", "/metrics", "/docs", "/static/page.js", "/v1/nothing", "/hooks/", "/v1/token")
RIGHT = ("Authorization", f"Bearer {KEYS.operator}")
JSON = ("Content-Type", "application/json")
EMPTY = b"{}"

# What each does, and what it may be told.
TRIES = {
    "no token": ({"headers": [JSON]}, {401}),
    "a wrong token": ({"headers": [JSON, ("Authorization", "Bearer wrong")]}, {401, 429}),
    "the token in the query": ({"headers": [JSON]}, {401}),
    "another host": ({"headers": [JSON, RIGHT], "host": "evil.example"}, {421}),
    "a foreign origin": ({"headers": [JSON, RIGHT, ("Origin", "http://evil.example")]}, {403}),
    "plain text": ({"headers": [RIGHT, ("Content-Type", "text/plain")]}, {415}),
}
# What needs no token is a short list; each of these but health and the page asks for a proof of its own.
OPEN = {"/healthz", "/readyz", "/peer-todo", "/hooks/{source}", "/hooks/cloudevents", "/", "/dashboard/{name:path}"}
WITHOUT_TOKEN = ("no token", "a wrong token", "the token in the query")


class Watched(Beside):
    """An engine that says what it was told to do."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def reload(self) -> dict[str, object]:
        self.told.append("reload")
        return {"changed": []}

    def leave(self, *, drain: bool) -> None:
        self.told.append("leave")


def dump(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything but the notes, which are what a stranger may cause."""
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        noted = ", ".join(f"'{kind.value}'" for kind in NOTES)
        told = {name: f"SELECT * FROM {name}" for name in tables if name != "sqlite_sequence"}
        told["event"] += f" WHERE kind NOT IN ({noted})"
        return {name: list(connection.execute(query)) for name, query in told.items()}


def declared(routes) -> set[str]:
    """The paths of all routes, however deep they were included."""
    found: set[str] = set()
    for route in routes:
        inner = getattr(route, "original_router", None) or getattr(route, "app", None)
        within = declared(getattr(inner, "routes", ()))
        path = getattr(route, "path", None)
        assert within or path is not None, f"where is {route}?"
        found |= within if path is None else {path}
    return found


def paths(app) -> list[str]:
    """Each route's own, with something that is there in its places."""
    found = declared(app.routes) | set(BESIDES)
    places = {"agent": "wren", "source": "github"}
    return sorted({re.sub(r"\{(\w+)[^}]*\}", lambda place: places.get(place[1], "1"), path) for path in found})


async def tried(app, database: Path) -> AsyncIterator[str]:
    """What went otherwise than it should."""
    before = dump(database)
    for path in paths(app):
        for named, (request, allowed) in TRIES.items():
            expected = allowed
            if named in WITHOUT_TOKEN and needs_no_token(path):
                # Health and the page are given to all; what proves itself in another way has not.
                given = path in OPEN_PATHS or path == FRONT
                expected = {200, 503, 405} if given else set(range(400, 500))
            for method in METHODS:
                query = f"?token={KEYS.operator}&access_token={KEYS.operator}" if "query" in named else ""
                reply = await put(app, method, path + query, EMPTY, **request)
                if reply.status not in expected:
                    yield f"{method} {path} with {named}: {reply.status}, expected {sorted(expected)[:3]}"
        if dump(database) != before:
            yield f"{path}: something was changed"
            before = dump(database)


def test_a_stranger_gets_nowhere_by_any_path_and_method_and_changes_nothing(tmp_path):
    database = tmp_path / "wakeful.db"
    writer = Writer(open_sqlite(database, durable=False))
    engine = Watched()

    async def wrong() -> list[str]:
        await writer.write(lambda store: store.declare(a_fleet("wren", "moss"), NOW))
        task = NewItem(kind=Kind.task, agent="wren", sender="operator", origin=Origin.operator, subject="count")
        await writer.write(lambda store: store.record([task], NOW))
        control = Control(writer, runs=tmp_path / "runs", clock=lambda: NOW, beside=engine, node="here")
        app = build(control, keys=KEYS, hosts=[HOST])
        assert {path for path in declared(app.routes) if needs_no_token(path.replace("{source}", "github"))} == OPEN
        return [line async for line in tried(app, database)]

    try:
        assert asyncio.run(wrong()) == []
        assert engine.told == []
    finally:
        writer.close()
        writer.store.close()
