"""Every site that commits is known by its name; kill -9 before its commit, after it, and after the answer, leaves what
was before or what comes after.

Here each site is tried at one of the three moments, and on PostgreSQL a few of them; `make crashpoints` tries all, and
kills a whole engine at each.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from soak.crashed_stores import SqliteHouse
from soak.crasher import SITES, Crasher
from tests.source_tree import ROOT, Modules, parse, python_files, snippet
from tests.store.postgres_server import dsn

# What commits by a statement of its own, and under which name. The sessions are what every transaction goes through;
# readers only read, and a backup is a file that nobody knows of before it is whole.
BY_HAND = {
    "wakeful.store.sqlite": set[str](),
    "wakeful.store.postgres_session": set[str](),
    "wakeful.store.postgres_link": set[str](),
    "wakeful.store.migrate": {"migrate"},
    "wakeful.store.postgres_migrate": {"migrate"},
    "wakeful.store.postgres_copy": {"load"},
}
# Who is given a name, as which argument, and hands it on to a transaction; beside the transaction itself.
TAKING = {"transaction": 0, "_together": 0, "_alone": 0, "_changing": 1}
# What others have in a transaction of these is crashed under the name of the whole.
WHOLES = ("wakeful.store.inline", "wakeful.store.writer")
COMMITTING = re.compile(r"\s*(BEGIN|COMMIT|END|RELEASE)\b", re.IGNORECASE)
FEW = ("record", "finish", "pause", "migrate")


# ---- no site can be forgotten


def sites(modules: Modules) -> set[str]:
    """The name of every transaction in the source; what has none is named after its place in it."""
    found = set[str]()
    for module, tree in modules.items():
        handed = set[ast.AST]()
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name in TAKING:
                handed |= set(ast.walk(function))
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKING:
                found |= named(module, node, TAKING[node.func.attr], node in handed)
            elif (what := by_hand(node, called)) and module not in BY_HAND:
                found.add(f"{what} in {module}:{getattr(node, 'lineno', 1)}")
            elif what == "a statement":
                found |= BY_HAND[module]
    return found


def named(module: str, call: ast.Call, place: int, handed: bool) -> set[str]:
    if len(call.args) <= place:
        return BY_HAND.get(module, {f"a transaction in {module}:{call.lineno}"})
    match call.args[place]:
        case ast.Constant(value=str(name)):
            return {name}
        case ast.Name(id="CALL") if module in WHOLES:
            return {"call"}
        case ast.Name(id="site") if handed:
            # Its own caller names it, or the verb of the other store does.
            return set()
    return {f"a name that is made in {module}:{call.lineno}"}


def by_hand(node: ast.AST, called: set[ast.expr]) -> str | None:
    """What may commit without a name: a statement, a connection of its own, or a transaction that is passed around."""
    match node:
        case ast.Constant(value=str(text)) if re.match(r"(BEGIN|COMMIT)\b", text):
            return "a statement"
        case ast.Call(func=ast.Attribute(attr="execute"), args=[ast.Constant(value=str(text)), *_]):
            return "a statement" if COMMITTING.match(text) else None
        case ast.withitem(context_expr=ast.Attribute(attr="connection") | ast.Name(id="connection")):
            return "a connection's own transaction"
        case ast.Attribute(attr="commit"):
            return "a commit"
        case ast.Attribute(attr="transaction") if node not in called:
            return "a transaction that is passed around"
    return None


def test_every_transaction_in_the_source_is_in_the_table_of_crash_points():
    words = re.compile(rf"\b(BEGIN|COMMIT|commit|execute|connection|{'|'.join(TAKING)})\b")
    files = [path for path in python_files("src") if "testing" not in path.parts and words.search(path.read_text())]
    assert sites(parse(files)) == set(SITES), "give a new site its place in VERBS of contracts/store_crashes"


def test_that_rule_sees_a_new_transaction_however_it_is_made():
    assert sites(snippet("wakeful.store.new", "with session.transaction('sweep'): pass")) == {"sweep"}
    assert sites(snippet("wakeful.store.new", "self._together('sweep', verb)")) == {"sweep"}
    for text in (
        "with connection.transaction(): pass",
        "connection.execute('COMMIT')",
        "connection.execute(' commit')",
        "connection.execute('END')",
        "connection.execute('RELEASE part')",
        "connection.commit()",
        "with self.session.connection: pass",
        "with session.transaction(f'a{1}'): pass",
        "with session.transaction(site): pass",
        "with session.transaction(CALL): pass",
        "begin = session.transaction",
    ):
        (found,) = sites(snippet("wakeful.store.new", text))
        assert "wakeful.store.new:1" in found


# ---- each of them is crashed


def crashed(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "soak.crasher", *words, "--turns"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["complaints"] == [], done.stderr[-4000:]
    return found


def test_a_process_that_is_killed_at_any_site_leaves_the_state_before_or_after(tmp_path):
    found = crashed("sqlite", str(tmp_path))
    assert set(found["sites"]) == set(SITES) - {"load"}
    assert found["slowest"] < 3


def test_so_does_one_whose_store_is_on_a_server():
    assert crashed("postgres", dsn(), *FEW)["sites"] == list(FEW)


def test_the_comparison_sees_a_row_that_is_missing_one_that_is_too_many_and_a_table_that_is_new(tmp_path: Path):
    with SqliteHouse(str(tmp_path)) as house:
        crasher = Crasher(house, turns=True)
        dump = house.dump(house.scene())
        crasher.compare("plain", house.scene(), dump)
        assert crasher.found.complaints == []
        for other in ({**dump, "pause": []}, {**dump, "total": [*dump["total"], ("x",)]}, {**dump, "new": [(1,)]}):
            crasher.compare("other", house.scene(), other)
            assert crasher.found.complaints.pop().startswith("other: ")
            assert crasher.found.complaints == []
