"""The reference of the HTTP API, made from its own description; run as a program it writes docs/reference/http.md."""

import json
from pathlib import Path
from typing import Any

from tests.http.served import KEYS
from tests.http.stub import Stub
from wakeful.http.app import build
from wakeful.http.errors import TITLES
from wakeful.http.words import ABOUT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md"
# Told once at the top, for they may come of any request.
ANYWHERE = {"400", "401", "403", "404", "408", "409", "413", "415", "421", "429", "500", "503"}
TRY = """```
curl -s -H "Authorization: Bearer $(wakeful token)" http://127.0.0.1:7717/v1/agents
```
"""
KINDS = {
    "mistake": 400,
    "unauthenticated": 401,
    "signature": 401,
    "forbidden": 403,
    "unknown": 404,
    "method": 405,
    "late": 408,
    "conflict": 409,
    "ended": 409,
    "stale": 409,
    "outdated": 412,
    "too_large": 413,
    "media": 415,
    "host": 421,
    "too_many": 429,
    "internal": 500,
    "busy": 503,
    "sick": 503,
}


def whole() -> dict[str, Any]:
    """All that an engine describes."""
    return build(Stub(), keys=KEYS, hosts=(), variables={}, mounts={"/mcp": _nowhere}).openapi()


async def _nowhere(*_: Any) -> None: ...


def reference() -> str:
    described = whole()
    tags = {tag["name"]: tag["description"] for tag in described["tags"]}
    made = "Made from `/openapi.json` by `make reference`; that has an example of every answer too."
    lines = ["# HTTP", "", made, "", ABOUT["api"], "", TRY, "## Refusals", "", *_refusals()]
    for tag in tags:
        lines += [f"## {tag.capitalize()}", "", tags[tag], ""]
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][0] == tag:
                    lines += _operation(path, method.upper(), operation, described)
    lines += ["## Shapes", "", "What answers are made of; `?` is a field that is not always there.", ""]
    for name, shape in sorted(described["components"]["schemas"].items()):
        if not name.endswith("Body"):
            lines += [f"### {name}", "", *_shape(shape), ""]
    return "\n".join(lines).rstrip() + "\n"


def _refusals() -> list[str]:
    rows = [f"| {status} | `{kind}` | {TITLES[kind]} |" for kind, status in KINDS.items()]
    head = (
        "`application/problem+json`: `type` is `urn:wakeful:error:KIND`, `detail` what was found, `remedy` what to do."
    )
    return [f"{head}.", "", "| status | kind | |", "|---|---|---|", *rows, ""]


def _operation(path: str, method: str, operation: dict[str, Any], described: dict[str, Any]) -> list[str]:
    lines = [f"### {method} {path}", "", operation["description"], ""]
    for parameter in operation.get("parameters", ()):
        needed = ", needed" if parameter.get("required") else ""
        kind = _kind(parameter["schema"])
        name = parameter["name"].title() if parameter["in"] == "header" else parameter["name"]
        lines.append(f"- `{name}` ({parameter['in']}, {kind}{needed}): {parameter['description']}")
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        lines += _body(media, content, described)
    lines += ["", *_example(path, method, operation)]
    own = {status: answer for status, answer in operation["responses"].items() if status not in ANYWHERE}
    told = [f"**{status}** {answer['description']}{_of(answer)}" for status, answer in own.items()]
    return [*lines, " · ".join(told), ""]


def _of(answer: dict[str, Any]) -> str:
    kinds = [_kind(content["schema"]) for content in answer.get("content", {}).values() if content.get("schema")]
    return f": {kinds[0]}" if kinds else ""


def _body(media: str, content: dict[str, Any], described: dict[str, Any]) -> list[str]:
    shape = content["schema"]
    either = shape.get("allOf") or shape.get("anyOf") or [shape]
    if "$ref" in either[0]:
        shape = described["components"]["schemas"][either[0]["$ref"].rpartition("/")[2]]
    needed = shape.get("required", ())
    fields = [
        f"- `{name}` (body, {_kind(each)}{', needed' if name in needed else ''}): {each.get('description', '')}"
        for name, each in shape.get("properties", {}).items()
    ]
    return fields or ([f"- the body: `{media}`"] if "properties" not in shape else [])


def _example(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    """A request as it was really made; where something is to be said."""
    target, query = path, []
    for parameter in operation.get("parameters", ()):
        if "example" in parameter and parameter["in"] == "path":
            target = target.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
        elif "example" in parameter and parameter["in"] == "query":
            value = parameter["example"]
            query.append(f"{parameter['name']}={','.join(value) if isinstance(value, list) else value}")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    if body is None and not query:
        return []
    said = json.dumps(body, ensure_ascii=False) if body else ""
    asked = f"{method} {target}{'?' if query else ''}{'&'.join(query)}"
    return ["```", *(line for line in (asked, said) if line), "```", ""]


def _shape(shape: dict[str, Any]) -> list[str]:
    words = [shape["description"], ""] if shape.get("description") else []
    needed = shape.get("required", ())
    fields = [f"`{name}{'' if name in needed else '?'}` {_kind(each)}" for name, each in shape["properties"].items()]
    return [*words, " · ".join(fields)]


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2].removesuffix("Body")
        if name == "JsonValue":
            return "any JSON"
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " ".join(f"`{word}`" for word in schema["enum"])
    kinds = schema.get("type", "anything")
    if isinstance(kinds, list):
        return " or ".join(_kind({**schema, "type": kind}) if kind != "null" else "null" for kind in kinds)
    if kinds == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kinds == "object" and "items" in schema.get("properties", {}):
        return f"page of {_kind(schema['properties']['items']['items'])}"
    plain = {"string": "text", "integer": "number", "boolean": "true or false", "object": "object"}
    return "instant" if schema.get("format") == "date-time" else plain.get(kinds, kinds)


def main() -> None:
    PAGE.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
