"""The laws of the house as tests: each rule is a function from source to complaints, and is seen to fail.

The layers are import-linter's contract in pyproject.toml; the rest is read off the syntax trees here.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.source_tree import ROOT, SOURCE, Modules, calls, imports, parse, python_files, snippet, strings

STORE = SOURCE / "wakeful" / "store"
FOLDERS = ("src", "tests", "benchmarks", "soak", "examples")

FILE_LINES = 400
FUNCTION_LINES = 70

# Finer than the layers: where only a protocol may be known, or one layer may be jumped over but not another.
MAY_IMPORT = {
    "http": ("wakeful.control", "wakeful.core"),
    "mcp": ("wakeful.control", "wakeful.core"),
    "client": ("wakeful.control", "wakeful.core"),
    "telemetry": ("wakeful.store.protocol", "wakeful.core"),
    "control": ("wakeful.store.protocol", "wakeful.fleet", "wakeful.core"),
    "engine": (
        "wakeful.store.protocol",
        "wakeful.runners.protocol",
        "wakeful.sources.protocol",
        "wakeful.fleet",
        "wakeful.core",
    ),
}

BANNED_IN_CORE = {
    *("time", "random", "secrets", "uuid"),
    *("os", "io", "pathlib", "shutil", "tempfile", "socket", "subprocess", "sqlite3", "logging"),
    *("asyncio", "threading", "concurrent", "multiprocessing"),
}
BANNED_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}
CLOCKS = {"now", "utcnow", "today"}
OUTSIDE_LIBRARIES = {"wakeful.core.cron": {"cronsim"}}

# The methods of a session that take the name of a query.
SESSION = {"one", "all", "run", "insert", "many"}

# Begun by a person or a packager, not by an import.
ENTRY_POINTS = {
    "wakeful",
    "wakeful.cli",
    "wakeful.__main__",
    "wakeful.testing.simulate",
    # Processes of their own, started by name.
    "wakeful.runners.dream",
    "wakeful.runners.nursery",
    "wakeful.runners.worker",
}
# Finished and tested before the package that calls them; a line goes when its caller comes.
AWAITING_A_CALLER: set[str] = set()


@pytest.fixture(scope="module")
def wakeful() -> Modules:
    return parse(python_files("src"))


# ---- layers


def test_each_layer_imports_only_what_lies_below_it():
    start = "from importlinter.cli import lint_imports_command as go; go()"
    command = [sys.executable, "-c", start, "--no-cache"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_every_folder_of_modules_is_a_package_and_so_under_the_law_of_layers():
    folders = {path.parent for path in python_files("src")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def strangers(modules: Modules, known: Iterable[str]) -> list[str]:
    complaints = []
    for module, tree in modules.items():
        layer = module.split(".")[1] if "." in module else ""
        allowed = (*MAY_IMPORT.get(layer, ("wakeful",)), f"wakeful.{layer}")
        for line, target in imports(module, tree, known):
            inside = any(target == name or target.startswith(f"{name}.") for name in allowed)
            if target.startswith("wakeful.") and not inside:
                complaints.append(f"{module}:{line} imports {target}")
    return complaints


def test_control_and_engine_know_the_seams_and_never_what_stands_behind_them(wakeful):
    assert strangers(wakeful, wakeful) == []


def test_that_rule_sees_a_store_imported_by_the_engine_and_a_runner_by_http():
    known = ["wakeful.store.protocol", "wakeful.store.sqlite"]
    fine = snippet("wakeful.engine.loop", "from wakeful.store import protocol")
    assert strangers(fine, known) == []
    assert strangers(snippet("wakeful.engine.loop", "from wakeful.store import sqlite"), known)
    assert strangers(snippet("wakeful.http.app", "import wakeful.runners.protocol"), known)
    assert strangers(snippet("wakeful.control", "def f():\n    from wakeful.engine import loop"), known)


# ---- the core is pure


def impurities(modules: Modules) -> list[str]:
    complaints = []
    for module, tree in modules.items():
        for line, target in imports(module, tree):
            top = target.split(".")[0]
            foreign = top not in sys.stdlib_module_names and top not in OUTSIDE_LIBRARIES.get(module, ())
            outward = not (target == "wakeful.core" or target.startswith("wakeful.core."))
            if outward if top == "wakeful" else top in BANNED_IN_CORE or foreign:
                complaints.append(f"{module}:{line} imports {target}")
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
                complaints.append(f"{module}:{node.lineno} is async")
            elif isinstance(node, ast.Attribute) and node.attr in CLOCKS:
                if ast.unparse(node.value).split(".")[-1] in ("datetime", "date"):
                    complaints.append(f"{module}:{node.lineno} reads the clock")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS:
                complaints.append(f"{module}:{node.lineno} calls {node.func.id}()")
    return complaints


def core(modules: Modules) -> Modules:
    return {name: tree for name, tree in modules.items() if name.startswith("wakeful.core")}


def test_the_core_has_no_clock_no_randomness_no_files_and_no_async(wakeful):
    assert len(core(wakeful)) > 5
    assert impurities(core(wakeful)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from random import random",
        "def f():\n    import os.path",
        "import apsw",
        "from wakeful.store import protocol",
        "from wakeful import Mistake",
        "import cronsim",
        "from datetime import datetime\nwhen = datetime.now()",
        "import datetime\nwhen = datetime.datetime.now",
        "from datetime import date\nday = date.today()",
        "text = open('x').read()",
        "print('x')",
        "async def f(): ...",
    ],
)
def test_that_rule_sees_each_kind_of_impurity(text):
    assert impurities(snippet("wakeful.core.wakes", text))


def test_that_rule_lets_pass_what_is_pure_and_cronsim_in_its_one_place():
    pure = "import re\nfrom datetime import time\nfrom wakeful.core.errors import Mistake\nwhen = facts.now"
    assert impurities(snippet("wakeful.core.wakes", pure)) == []
    assert impurities(snippet("wakeful.core.cron", "from cronsim import CronSim")) == []


# ---- one door


def doors(modules: Modules) -> list[str]:
    """The opinion is asked, and a run opened, in exactly one place, and that is in the store."""
    asked, opened = [], []
    for module, tree in modules.items():
        if not module.startswith(("wakeful.core", "wakeful.testing")):
            asked += [f"{module}:{line}" for line in calls(tree, "admit")]
            opened += [f"{module}:{line}" for line, text in strings(tree) if text == "open_run"]
    complaints = []
    for what, places in (("admit() is asked", asked), ("open_run is used", opened)):
        if len(places) != 1 or not places[0].startswith("wakeful.store."):
            complaints.append(f"{what} at {places}, not at one place of the store")
    return complaints


def test_a_run_begins_in_exactly_one_place(wakeful):
    assert doors(wakeful) == []


def test_that_rule_sees_a_second_door_a_missing_one_and_one_outside_the_store():
    door = "def decide(wake, admit):\n    verdict = admit(wake)\n    session.run('open_run')\n"
    assert doors(snippet("wakeful.store.verbs", door)) == []
    assert len(doors(snippet("wakeful.store.verbs", door + "    session.run('open_run')\n"))) == 1
    assert len(doors(snippet("wakeful.store.verbs", door + "    self.admit(wake)\n"))) == 1
    assert len(doors(snippet("wakeful.store.verbs", "x = 1"))) == 2
    assert len(doors(snippet("wakeful.engine.recovery", door))) == 2


# ---- named queries


def unmatched(named: list[str], modules: Modules) -> list[str]:
    """A query is used where its name stands as a string, and must exist where it is handed to a session."""
    mentioned = {text for tree in modules.values() for _, text in strings(tree)}
    executed = {name for tree in modules.values() for name in queries(tree)}
    return [
        *(f"{name} is named but not used" for name in sorted(set(named) - mentioned)),
        *(f"{name} is used but not named" for name in sorted(executed - set(named))),
        *(f"{name} is named twice" for name in sorted({name for name in named if named.count(name) > 1})),
    ]


def queries(tree: ast.Module) -> Iterator[str]:
    """The names in the first argument of session.one, all, run, insert and many; also `a if x else b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SESSION:
            yield from (text for argument in node.args[:1] for _, text in strings(argument))


def named_in(text: str) -> list[str]:
    return re.findall(r"^-- name: (\w+)", text, re.MULTILINE)


def test_every_named_query_is_used_and_every_used_query_is_named(wakeful):
    store = {name: tree for name, tree in wakeful.items() if name.startswith("wakeful.store.")}
    dialects = sorted(path for path in (STORE / "sql").iterdir() if path.is_dir())
    assert dialects
    for dialect in dialects:
        named = [name for path in sorted(dialect.glob("*.sql")) for name in named_in(path.read_text("utf-8"))]
        assert unmatched(named, speaking(dialect.name, store)) == [], dialect.name


def speaking(dialect: str, modules: Modules) -> Modules:
    """The modules that use a dialect: a module with the name of another one begins to speak to that alone."""
    others = {path.name for path in (STORE / "sql").iterdir()} - {dialect}
    return {name: tree for name, tree in modules.items() if not name.split(".")[-1].startswith(tuple(others))}


def test_a_module_of_one_dialect_does_not_speak_the_other():
    modules = snippet("wakeful.store.postgres_store", "") | snippet("wakeful.store.deciding", "")
    assert set(speaking("sqlite", modules)) == {"wakeful.store.deciding"}
    assert set(speaking("postgres", modules)) == set(modules)


def test_that_rule_sees_a_query_unused_unnamed_or_named_twice():
    named = named_in("-- name: open_run\ninsert …;\n\n-- name: due\nselect …;\n")
    assert named == ["open_run", "due"]
    assert unmatched(named, snippet("s", "s.run('open_run' if x else 'due', a='b')")) == []
    assert unmatched(named, snippet("s", "s.run('open_run')")) == ["due is named but not used"]
    assert unmatched(["due"], snippet("s", "s.all('due'), s.one('dew')")) == ["dew is used but not named"]
    assert unmatched(["due", "due"], snippet("s", "s.all('due')")) == ["due is named twice"]


# ---- budgets


def over_budget(path: str, text: str) -> list[str]:
    """A line `# budget: why` among the first ten defends a file and its functions."""
    lines = text.splitlines()
    if any(re.match(r"# budget: \S", line) for line in lines[:10]):
        return []
    complaints = [f"{path} has {len(lines)} lines"] if len(lines) > FILE_LINES else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                complaints.append(f"{path}:{node.lineno} {node.name} has {length} lines")
    return complaints


def test_no_file_and_no_function_outgrows_its_budget_without_defending_itself():
    complaints = []
    for path in python_files(*FOLDERS):
        complaints += over_budget(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    assert complaints == []


def test_that_rule_sees_a_long_file_and_a_long_function_and_hears_a_defence():
    long_file = "x = 1\n" * (FILE_LINES + 1)
    long_function = "def f():\n" + "    x = 1\n" * FUNCTION_LINES
    assert over_budget("a.py", "x = 1\n" * FILE_LINES) == []
    assert over_budget("a.py", long_file)
    assert over_budget("a.py", long_function)
    assert over_budget("a.py", "# budget: one table, read as one\n" + long_file + long_function) == []
    assert over_budget("a.py", "# budget:\n" + long_file)


# ---- no dead modules


def mentioned(modules: Modules, known: Iterable[str]) -> dict[str, set[str]]:
    """For each module, who imports it or names it in a string such as "wakeful.cli.check:command"."""
    users: dict[str, set[str]] = defaultdict(set)
    for module, tree in modules.items():
        for _, target in imports(module, tree, known):
            users[target].add(module)
        for _, text in strings(tree):
            users[text.partition(":")[0]].add(module)
    return users


def dead(modules: Modules, tests: Modules, living: set[str]) -> list[str]:
    """Shipped test kit lives by the tests that use it; everything else by the product alone."""
    by_product, by_tests = mentioned(modules, modules), mentioned(tests, modules)
    complaints = []
    for module in modules:
        users = by_product[module] | (by_tests[module] if module.startswith("wakeful.testing.") else set())
        has_children = any(name.startswith(f"{module}.") for name in modules)
        if not (users - {module} or has_children or module in living):
            complaints.append(module)
    return complaints


def test_no_module_is_dead(wakeful):
    assert dead(wakeful, parse(python_files("tests", "soak", "benchmarks")), ENTRY_POINTS | AWAITING_A_CALLER) == []


def test_no_module_still_awaits_a_caller_it_has(wakeful):
    called = mentioned(wakeful, wakeful)
    assert [name for name in sorted(AWAITING_A_CALLER) if called[name] - {name} or name not in wakeful] == []


def test_that_rule_sees_a_module_that_only_its_test_imports():
    modules = snippet("wakeful.core.a", "from wakeful.core import b") | snippet("wakeful.core.b", "")
    tests = snippet("tests.test_a", "import wakeful.core.a, wakeful.testing.kit")
    assert dead(modules, tests, set()) == ["wakeful.core.a"]
    assert dead(modules, tests, {"wakeful.core.a"}) == []
    assert dead(snippet("wakeful.testing.kit", ""), tests, set()) == []
    lazy = snippet("wakeful.cli", "where = 'wakeful.core.a:command'")
    assert dead(modules | lazy, tests, {"wakeful.cli"}) == []


# ---- tests never sleep


def sleeps(name: str, tree: ast.Module) -> list[str]:
    return [f"{name}:{line}" for line in calls(tree, "sleep")]


def test_no_test_sleeps():
    assert [place for name, tree in parse(python_files("tests")).items() for place in sleeps(name, tree)] == []


def test_that_rule_sees_a_sleep():
    assert sleeps("a", ast.parse("import time\ntime.sleep(1)")) == ["a:2"]


# ---- nothing tells where it was built

# Written in pieces, so that this file does not accuse itself.
FOLDER = r"(?:^|[^\w.~}/$-])/(?:" + "|".join(["work", "farm", "root", "home", "opt", "tmp"]) + r")/\w"
HOST = r"pypi\.(?:org|python)|python" + r"hosted|registry\.npm|deb\.debian|index" + r"-url"
PACKAGE = r"https?://\S+\.(?:whl|tar\.gz|tgz|deb)\b|https?://\S+/simple\b"
TELLTALE = re.compile(f"{FOLDER}|{HOST}|{PACKAGE}")


def telltales(path: str, text: str) -> list[str]:
    lines = enumerate(text.splitlines(), 1)
    return [f"{path}:{number}: {line.strip()[:120]}" for number, line in lines if TELLTALE.search(line)]


def tracked() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    return [ROOT / name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_a_machine_or_a_registry():
    complaints = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        complaints += telltales(str(path.relative_to(ROOT)), text)
    assert complaints == []


@pytest.mark.parametrize(
    "line",
    ["see /" + "root/x", 'path = "/' + 'tmp/v0"', "--index" + "-url x", "https" + "://x.example/a-1.0.whl"],
)
def test_that_rule_sees_a_machine_path_and_a_package_address(line):
    assert telltales("a.md", f"first\n{line}") == [f"a.md:2: {line}"]


def test_that_rule_lets_pass_what_is_relative_or_a_route():
    assert telltales("a.md", "~/work/x ./tmp/y $HOME/work/z POST /v1/runs https://example.org/work/home") == []
