"""Reading our own source: which files there are, what a module imports, what it calls."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

Modules = dict[str, ast.Module]


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parse(paths: Iterable[Path]) -> Modules:
    return {name_of(path): ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths}


def snippet(name: str, text: str) -> Modules:
    return {name: ast.parse(text)}


PACKAGES = {name_of(path) for path in python_files("src") if path.name == "__init__.py"}


def imports(module: str, tree: ast.Module, known: Iterable[str] = ()) -> Iterator[tuple[int, str]]:
    """Every (line, module) imported, also in functions; `from a import b` is a.b where that is a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module if module in PACKAGES else module.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])]) if node.level else node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if full in known else base


def calls(tree: ast.Module, name: str) -> list[int]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        node.lineno
        for node in found
        if (isinstance(node.func, ast.Name) and node.func.id == name)
        or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
    ]


def strings(tree: ast.AST) -> list[tuple[int, str]]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [(node.lineno, node.value) for node in found if isinstance(node.value, str)]
