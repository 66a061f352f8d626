"""SQL lives in files, one folder a dialect, each query under a line `-- name: …`. Nothing else reads those files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Query:
    """A named query with its parameters in the order in which they are bound."""

    name: str
    text: str
    parameters: tuple[str, ...]


def parse_queries(text: str) -> dict[str, str]:
    """The queries of one file, by name."""
    parts = _NAME.split(text)
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def positional(name: str, body: str) -> Query:
    """`:agent` becomes `?1`: a tuple binds faster than a mapping."""
    order: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in order:
            order.append(match[1])
        return f"?{order.index(match[1]) + 1}"

    code = "\n".join(line.split("--")[0].rstrip() for line in body.splitlines())
    return Query(name, _PARAMETER.sub(number, code), tuple(order))


@cache
def load_queries(dialect: str) -> dict[str, Query]:
    folder = files("wakeful.store") / "sql" / dialect
    queries: dict[str, Query] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql") and not file.name[:4].isdigit():
            for name, body in parse_queries(file.read_text(encoding="utf-8")).items():
                if name in queries:
                    raise ValueError(f"query {name} is defined twice")
                queries[name] = positional(name, body)
    return queries


def load_migrations(dialect: str) -> list[tuple[int, str]]:
    """The numbered files of a dialect: (number, script), ascending."""
    folder = files("wakeful.store") / "sql" / dialect
    numbered = [file for file in folder.iterdir() if re.fullmatch(r"\d{4}\.sql", file.name)]
    return sorted((int(file.name[:4]), file.read_text(encoding="utf-8")) for file in numbered)
