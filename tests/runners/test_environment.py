"""A run's environment is made from nothing, and its secrets are known by name."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runners.orders import an_agent, an_item, an_order
from wakeful.core.items import Kind
from wakeful.core.lifecycle import Position
from wakeful.core.orders import Order
from wakeful.core.wakes import Cause, Subject
from wakeful.runners.environment import DEFAULT_PATH, Surroundings, before_a_run, build_environment, secret_values

FOLDER = Path("/srv/runs/42")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OURS = {
    *("WAKEFUL_URL", "WAKEFUL_TOKEN", "WAKEFUL_AGENT", "WAKEFUL_RUN_ID", "WAKEFUL_WAKE_ID", "WAKEFUL_CAUSE"),
    *("WAKEFUL_REASON", "WAKEFUL_STATE", "WAKEFUL_HITS", "WAKEFUL_ATTEMPT", "WAKEFUL_DEADLINE", "WAKEFUL_TASK_ID"),
    *("WAKEFUL_BRIEFING", "WAKEFUL_RESULT", "WAKEFUL_ROOT", "WAKEFUL_MEMORY"),
}


def built(
    order: Order | None = None, base: dict[str, str] | None = None, traceparent: str | None = TRACE
) -> dict[str, str]:
    order = order or an_order()
    around = Surroundings(base=base or {}, root=Path("/srv/desk"), data=Path("/srv"))
    before = before_a_run(order.agent, around, url="http://127.0.0.1:7717")
    return build_environment(order, before, token="run-token", folder=FOLDER, traceparent=traceparent)


def test_a_run_is_told_everything_about_itself():
    order = an_order(
        Subject.task,
        cause=Cause.task,
        position=Position("write", 2),
        attempt=3,
        reason="the queue has work",
        tasks=(an_item(99, kind=Kind.task),),
    )
    told = built(order, {"PATH": "/bin"})
    assert told == {
        "PATH": "/bin",
        "WAKEFUL_URL": "http://127.0.0.1:7717",
        "WAKEFUL_TOKEN": "run-token",
        "WAKEFUL_AGENT": "wren",
        "WAKEFUL_RUN_ID": "42",
        "WAKEFUL_WAKE_ID": "41",
        "WAKEFUL_CAUSE": "task",
        "WAKEFUL_REASON": "the queue has work",
        "WAKEFUL_STATE": "write",
        "WAKEFUL_HITS": "2",
        "WAKEFUL_ATTEMPT": "3",
        "WAKEFUL_DEADLINE": "2026-03-02T12:15:00.000000Z",
        "WAKEFUL_TASK_ID": "99",
        "WAKEFUL_BRIEFING": "/srv/runs/42/briefing.json",
        "WAKEFUL_RESULT": "/srv/runs/42/result.json",
        "WAKEFUL_ROOT": "/srv/desk",
        "WAKEFUL_MEMORY": "/srv/memory/wren.md",
        "TRACEPARENT": TRACE,
    }


def test_what_does_not_apply_is_empty_and_not_missing():
    order = an_order(wake=None, deadline=None)
    told = built(order, traceparent=None)
    assert told.keys() >= OURS
    assert told["WAKEFUL_TASK_ID"] == told["WAKEFUL_REASON"] == told["WAKEFUL_DEADLINE"] == ""
    assert "TRACEPARENT" not in told
    shift = an_order(Subject.task, tasks=(an_item(1), an_item(2)))
    assert built(shift)["WAKEFUL_TASK_ID"] == ""


def test_only_the_allowed_and_the_declared_names_pass():
    base = {
        **{name: f"{name} is fine" for name in ("PATH", "HOME", "LANG", "LC_ALL", "LC_TIME", "TZ", "USER", "SHELL")},
        **dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "TERM", "LD_PRELOAD", "XLC_ALL"), "leak"),
        "GITHUB_TOKEN": "declared",
        "TRACEPARENT": "leak",
        "DATABASE_URL": "leak",
    }
    agent = an_agent(environment=("GITHUB_TOKEN", "MISSING"), secrets=("DATABASE_URL",))
    told = built(an_order(agent=agent), base, traceparent=None)
    assert "leak" not in told.values()
    assert told["GITHUB_TOKEN"] == "declared"
    assert "MISSING" not in told
    assert {name for name, value in told.items() if value.endswith("is fine")} == {
        *("PATH", "HOME", "LANG", "LC_ALL", "LC_TIME", "TZ", "USER", "SHELL")
    }


@given(st.dictionaries(st.text("ABC_LTKEN", min_size=1), st.text(max_size=3)), st.lists(st.text("ABC_", min_size=1)))
def test_nothing_that_was_not_named_passes(base, names):
    told = built(an_order(agent=an_agent(environment=tuple(names))), base)
    assert all(name in names or name.startswith("LC_") for name in told.keys() - OURS - {"PATH", "TRACEPARENT"})
    assert told.keys() >= OURS


def test_no_declaration_lets_our_own_variables_through_or_replaces_theirs():
    agent = an_agent(environment=("WAKEFUL_TOKEN", "WAKEFUL_DATA", "TRACEPARENT"))
    base = {"WAKEFUL_TOKEN": "operator", "WAKEFUL_DATA": "ours", "TRACEPARENT": "old"}
    told = built(an_order(agent=agent), base)
    assert (told["WAKEFUL_TOKEN"], told["TRACEPARENT"]) == ("run-token", TRACE)
    assert "WAKEFUL_DATA" not in told


def test_a_program_is_found_even_where_we_have_no_path():
    assert built()["PATH"] == DEFAULT_PATH
    assert built(base={"PATH": "/x"})["PATH"] == "/x"


@pytest.mark.parametrize(
    "reason", ["with a \x00 in it", "half a \ud83d sign", "long " * 100_000, "two\nlines 'quoted' $(x)"]
)
def test_no_reason_can_keep_a_program_from_starting(reason):
    told = built(an_order(reason=reason), {"PATH": os.defpath})
    run = subprocess.run(["env", "-0"], env=told, capture_output=True, check=True, timeout=60)
    seen = dict(line.split(b"=", 1) for line in run.stdout.split(b"\0") if line)
    assert seen[b"WAKEFUL_REASON"].decode() == told["WAKEFUL_REASON"]


def test_a_reason_that_is_cut_says_so():
    assert built(an_order(reason="long " * 10_000))["WAKEFUL_REASON"].endswith(
        "[cut here; the whole of it is in WAKEFUL_BRIEFING]"
    )
    assert built(an_order(reason="x" * 4_000))["WAKEFUL_REASON"] == "x" * 4_000


# ---- secrets


def test_secrets_are_those_named_those_that_sound_like_one_and_the_token():
    agent = an_agent(
        environment=("OPENAI_API_KEY", "GH_TOKEN", "HOOK_SECRET", "DB_PASSWORD", "db_password", "EDITOR", "KEYBOARD"),
        secrets=("DSN", "ABSENT"),
    )
    base = {
        "OPENAI_API_KEY": "one-value",
        "GH_TOKEN": "two-value",
        "HOOK_SECRET": "three-value",
        "DB_PASSWORD": "four-value",
        "db_password": "five-value",
        "EDITOR": "ed",
        "KEYBOARD": "de",
        "DSN": "six-value",
        "UNDECLARED_KEY": "not passed, not known",
    }
    found = secret_values(agent, base, "run-token")
    assert sorted(found) == sorted(
        ["run-token", *(f"{n}-value" for n in ("one", "two", "three", "four", "five", "six"))]
    )


def test_an_empty_secret_is_none_and_none_is_named_twice():
    agent = an_agent(environment=("A_KEY", "B_KEY", "C_KEY"), secrets=("A_KEY",))
    assert secret_values(agent, {"A_KEY": "same-value", "B_KEY": "same-value", "C_KEY": ""}) == ("same-value",)
