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
# Who hands a name on to a transaction, beside the transaction itself.
TAKING = ("transaction", "_together", "_alone")
FEW = ("record", "finish", "pause", "migrate")


# ---- no site can be forgotten


def sites(modules: Modules) -> set[str]:
    """The name of every transaction in the source; what has none is named after its place in it."""
    found = set[str]()
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKING:
                found |= named(module, node)
            elif isinstance(node, ast.Constant) and re.match(r"(BEGIN|COMMIT)\b", str(node.value)):
                found |= BY_HAND.get(module, {f"a statement in {module}:{node.lineno}"})
            elif isinstance(node, ast.Attribute) and node.attr == "commit" and module not in BY_HAND:
                found.add(f"a commit in {module}:{node.lineno}")
    return found


def named(module: str, call: ast.Call) -> set[str]:
    if not call.args:
        return BY_HAND.get(module, {f"a transaction in {module}:{call.lineno}"})
    match call.args[0]:
        case ast.Constant(value=str(name)):
            return {name}
        case ast.Name(id="CALL"):
            return {"call"}
        case ast.Name(id="site"):
            # Its own caller names it, or the verb of the other store does.
            return set()
    return {f"a name that is made in {module}:{call.lineno}"}


def test_every_transaction_in_the_source_is_in_the_table_of_crash_points():
    words = re.compile(rf"\b(BEGIN|COMMIT|commit|{'|'.join(TAKING)})\b")
    files = [path for path in python_files("src") if "testing" not in path.parts and words.search(path.read_text())]
    assert sites(parse(files)) == set(SITES), "give a new site its place in VERBS of contracts/store_crashes"


def test_that_rule_sees_a_new_transaction_however_it_is_made():
    assert sites(snippet("wakeful.store.new", "with session.transaction('sweep'): pass")) == {"sweep"}
    assert sites(snippet("wakeful.store.new", "self._together('sweep', verb)")) == {"sweep"}
    for text in (
        "with connection.transaction(): pass",
        "connection.execute('COMMIT')",
        "connection.commit()",
        "with session.transaction(f'a{1}'): pass",
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
