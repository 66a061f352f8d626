"""The tools as an MCP server: what it lists, and what comes of a call.

Laws:
- Nothing is remembered between two calls: whoever asks is known anew each time, by what came with the request.
- Whatever an agent can mend is told to it as the result of its call, never as a broken connection. What nobody foresaw
  is logged here and told without detail.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from wakeful import __version__
from wakeful.control.shapes import Shapes
from wakeful.core.wording import nearest, quoted
from wakeful.mcp.tools import TOOLS, Answer, Asker, Refusal, Tool
from wakeful.mcp.words import DESCRIPTIONS, INSTRUCTIONS

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
AskerOf = Callable[[Context], Asker]

_UNFORESEEN = "something went wrong that nobody foresaw (try again; the log of wakeful has the reason)"


def build(asker_of: AskerOf) -> Server[Any]:
    """`asker_of` says for whom a request is asked."""

    async def list_tools(context: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed())

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            near = nearest(params.name[:64], TOOLS)
            told = f"; did you mean {near}?" if near else f"; there are {', '.join(TOOLS)}"
            raise MCPError(types.INVALID_PARAMS, f"no tool is called {quoted(params.name)}{told}")
        return await _called(tool, params.arguments or {}, lambda: asker_of(context), params.name)

    server: Server[Any] = Server(
        "wakeful",
        version=__version__,
        title="wakeful",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Runs have spans of their own.
    server.middleware.clear()
    return server


async def _called(tool: Tool, given: dict[str, Any], asker: Callable[[], Asker], name: str) -> types.CallToolResult:
    try:
        answer = await answered(tool, given, asker())
    except Refusal as refusal:
        return _error(str(refusal))
    except MCPError:
        raise
    except Exception as error:
        log.error("%s failed", name, exc_info=error)
        return _error(_UNFORESEEN)
    text = json.dumps(answer, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)


async def answered(tool: Tool, given: dict[str, Any], asker: Asker) -> Answer:
    try:
        json.dumps(given, ensure_ascii=False).encode()
        said = tool.takes.model_validate(given)
    except UnicodeEncodeError:
        raise Refusal("half of a surrogate pair is no character (write whole ones)") from None
    except RecursionError:
        raise Refusal("that is nested too deeply (make it flatter)") from None
    except ValidationError as error:
        raise Refusal(_misunderstood(tool, error)) from None
    return await tool.call(asker, said)


def _error(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _misunderstood(tool: Tool, error: ValidationError) -> str:
    """Every wrong argument at once; what was sent is not told back."""
    properties = schema_of(tool)["properties"]
    known = sorted(properties)
    told = []
    for found in error.errors(include_input=False, include_url=False):
        name = ".".join(map(str, found["loc"])) or "the arguments"
        if found["type"] == "extra_forbidden":
            near = nearest(name[:64], known)
            told.append(
                f"{quoted(name)} is unknown ("
                + (f"did you mean {near}?)" if near else f"known are {', '.join(known)})")
            )
        elif found["type"] == "missing":
            told.append(f"{name} is missing{_meant(properties.get(name))}")
        else:
            told.append(f"{name}: {found['msg']}{_meant(properties.get(name))}")
    return "; ".join(dict.fromkeys(told))


def _meant(field: dict[str, Any] | None) -> str:
    """What is to stand there, as the tool describes it."""
    if field is None:
        return ""
    words = f"; one of {', '.join(field['enum'])}" if "enum" in field else ""
    return f" (say there: {field['description'].rstrip('.')}{words})"


# ---- what is listed


@cache
def listed() -> list[types.Tool]:
    return [
        types.Tool(
            name=name,
            title=tool.title,
            description=DESCRIPTIONS[name],
            input_schema=schema_of(tool),
            output_schema=_output(tool.gives),
            annotations=types.ToolAnnotations(
                title=tool.title,
                read_only_hint=tool.reads_only,
                destructive_hint=tool.destructive,
                idempotent_hint=tool.idempotent,
                # The fleet is a closed world.
                open_world_hint=False,
            ),
        )
        for name, tool in TOOLS.items()
    ]


def schema_of(tool: Tool) -> dict[str, Any]:
    """Without what says nothing to a model: titles of fields, and that what may be left out may be null as well."""
    schema = tool.takes.model_json_schema()
    schema.pop("title", None)
    schema["properties"] = {name: _plain(field) for name, field in schema.get("properties", {}).items()}
    return schema


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in field.items() if key not in ("title", "default")}
    options = [each for each in rest.get("anyOf", ()) if each != {"type": "null"}]
    return (
        {**{key: value for key, value in rest.items() if key != "anyOf"}, **options[0]} if len(options) == 1 else rest
    )


def _output(kind: Any) -> dict[str, Any]:
    """One whole schema: what it refers to goes with it."""
    shapes = Shapes()
    shape = shapes.of(kind)
    name = shape.get("$ref", "").rpartition("/")[2]
    whole = dict(shapes.components[name]) if name else dict(shape)
    parts = {key: part for key, part in shapes.components.items() if key != name}
    if parts:
        whole["$defs"] = parts
    moved: dict[str, Any] = json.loads(json.dumps(whole).replace("#/components/schemas/", "#/$defs/"))
    return moved
