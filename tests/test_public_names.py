"""What `from wakeful import …` offers. Changing this list changes what other people's code relies on."""

import subprocess
import sys

import wakeful

PUBLIC = [
    *("AsyncClient", "Busy", "Client", "Conflict", "Ended", "Forbidden", "Mistake", "Outdated", "Result", "Run"),
    *("Stale", "Unknown", "WakefulError", "__version__"),
]


def test_the_public_names_are_exactly_these():
    assert sorted(wakeful.__all__) == PUBLIC
    assert all(hasattr(wakeful, name) for name in PUBLIC)


def test_nothing_else_is_offered_by_accident():
    offered = {name for name in vars(wakeful) if not name.startswith("_")}
    submodules = {name for name in offered if f"wakeful.{name}" in sys.modules}
    assert offered - submodules <= set(PUBLIC)


def test_importing_wakeful_loads_no_library_but_pythons_own():
    ask = "import sys; import wakeful; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"apsw", "click", "rich", "ruamel", "cronsim", "asyncio", "sqlite3"}
    assert "wakeful" in loaded.stdout.split()
    assert heavy & set(loaded.stdout.split()) == set()
