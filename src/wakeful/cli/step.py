"""`wakeful step`: a checkpoint of any process inside a run.

Laws:
- The intent is recorded before the command begins, its result after it has ended well; what is recorded is printed and
  never done again. Nothing is printed before it is recorded: whoever reads us may rely on it.
- An engine that is away, being replaced perhaps, is waited for: what was done must not be forgotten for a restart.
- A command that fails records nothing, and its exit code is ours. One whose result cannot be kept records nothing too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import click

from wakeful.cli.complaints import BAD, REFUSED, Complaint
from wakeful.cli.output import clean, one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed

# As JSON, which is how it is kept.
LONGEST = 1_000_000
# As long as a handler's step waits.
PATIENCE = 60.0
_CHUNK = 65_536

Row = dict[str, Any]


@click.command()
@click.argument("name", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--save", metavar="TEXT", help="Record this as the result, without a command; - reads it from stdin.")
@click.option("--load", is_flag=True, help="Print the recorded result; exit 1 when there is none.")
@click.option("--begun", is_flag=True, help="Exit 0 when an earlier attempt began it and did not record it, else 1.")
@click.option("--list", "is_list", is_flag=True, help="The steps that are recorded.")
@click.option("--task", type=click.IntRange(min=1), envvar="WAKEFUL_TASK_ID", metavar="TASK", help="Whose step it is.")
@as_json
@placed
def step(place: Place, name: str | None, command: tuple[str, ...], task: int | None, as_json: bool, **how: Any) -> None:
    """Run COMMAND once for the task or beat of this run, and keep what it printed under NAME; where that is recorded
    already, print it and run nothing."""
    _must_be_one(name, command, how)
    if how["is_list"]:
        _list(_ask(place, "steps", task=task), as_json)
        return
    if not place.inside_run:
        raise Complaint("a step belongs to a run, and this is none", "call it in what an agent runs; see --list")
    recorded = _known(place, name or "", task)
    if how["begun"]:
        sys.exit(0 if recorded is not None and not recorded["recorded"] else REFUSED)
    if how["save"] is not None:
        _keep(place, name or "", task, _stdin() if how["save"] == "-" else how["save"], as_json)
    elif recorded is not None and recorded["recorded"]:
        _print(recorded, as_json)
    elif how["load"]:
        raise Complaint(f"no result is recorded for step {one_line(name or '')!r}")
    else:
        _take(place, name or "", command, task, again=recorded is not None, as_json=as_json)


def _ask(place: Place, operation: str, **parameters: Any) -> Row:
    from wakeful.cli.waiting import Patient

    if not place.inside_run:
        from wakeful.cli.connection import ask

        return ask(place, operation, **parameters)
    return Patient(place, away=PATIENCE).ask(operation, **parameters)


def _must_be_one(name: str | None, command: tuple[str, ...], how: Row) -> None:
    ways = [word for word in ("save", "load", "begun", "is_list") if how[word] not in (None, False)]
    if len(ways) + bool(command) > 1:
        raise Complaint("a step is taken, saved, loaded or listed", "say one of them", BAD)
    if how["is_list"]:
        if name is not None:
            raise Complaint("--list is of all steps", f"leave {one_line(name)!r} out, or say --load", BAD)
        return
    if name is None:
        raise Complaint("which step?", "name it: wakeful step NAME -- COMMAND", BAD)
    if not ways and not command:
        raise Complaint("the step has no command", "write it after --: wakeful step NAME -- COMMAND", BAD)


def _known(place: Place, name: str, task: int | None) -> Row | None:
    found = _ask(place, "steps", task=task)["items"]
    return next((row for row in found if row["name"] == name), None)


def _take(place: Place, name: str, command: tuple[str, ...], task: int | None, *, again: bool, as_json: bool) -> None:
    begun = _ask(place, "save_step", name=name, begun=True, task=task)
    if begun["recorded"]:
        # By somebody else in this run, since we looked.
        _print(begun, as_json)
        return
    key = _key(name, begun["task"])
    code, output = _run(command, name, {"WAKEFUL_STEP_KEY": key, "WAKEFUL_STEP_BEGUN": "1" if again else ""})
    if code:
        sys.stdout.buffer.write(output)
        sys.stdout.flush()
        sys.exit(code)
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError:
        raise Complaint(
            f"step {one_line(name)!r} is not recorded: what it printed is not text",
            "print UTF-8, or the name of a file",
        ) from None
    _print(_save(place, name, task, text), as_json)


def _run(command: tuple[str, ...], name: str, more: dict[str, str]) -> tuple[int, bytes]:
    """Its exit code, as a shell gives it, and what it printed; it keeps our standard input and error."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **more})
    except OSError as error:
        raise Complaint(f"{one_line(command[0])}: {error.strerror or error}", "mend the command", BAD) from None
    assert process.stdout is not None
    pieces, size = [], 0
    while piece := process.stdout.read1(_CHUNK):  # type: ignore[attr-defined]
        size += len(piece)
        if size <= LONGEST:
            pieces.append(piece)
    code = process.wait()
    if not code and size > LONGEST:
        raise _too_long(name)
    return (code if code >= 0 else 128 - code), b"".join(pieces)


def _key(name: str, task: int | None) -> str:
    """The same for every attempt at this step, as `run.key` of a handler: for whoever must not do a thing twice."""
    if task is not None:
        return f"wakeful:task:{task}:{name}"
    return f"wakeful:beat:{os.environ.get('WAKEFUL_AGENT', '')}:{_beat()}:{name}"


def _beat() -> int:
    try:
        with open(os.environ.get("WAKEFUL_BRIEFING", ""), encoding="utf-8") as file:
            return int(json.load(file)["run"]["beat"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _keep(place: Place, name: str, task: int | None, text: str, as_json: bool) -> None:
    """Quietly; what was recorded before stays, and that is said beside the answer."""
    row = _save(place, name, task, text)
    if row["result"] != text:
        say(f"step {one_line(name)!r} was recorded before, and stays as it was", to_stderr=True)
    if as_json:
        say_json(row)


def _save(place: Place, name: str, task: int | None, text: str) -> Row:
    if len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) > LONGEST:
        raise _too_long(name)
    return _ask(place, "save_step", name=name, result=text, task=task)


def _too_long(name: str) -> Complaint:
    return Complaint(
        f"step {one_line(name)!r} is not recorded: its result takes more than {LONGEST // 1_000_000} MB",
        "write it to a file, and print the file's name",
    )


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise Complaint("what is to be saved is not text", "write UTF-8, or the name of a file", BAD) from None


def _print(row: Row, as_json: bool) -> None:
    if as_json:
        say_json(row)
        return
    text = row["result"] if isinstance(row["result"], str) else json.dumps(row["result"], ensure_ascii=False) + "\n"
    # To a program, every byte as it was; to a terminal, nothing that could write to it.
    shown = clean(text) if sys.stdout.isatty() else text
    sys.stdout.buffer.write(shown.encode("utf-8", "surrogatepass"))
    sys.stdout.flush()


def _list(answer: Row, as_json: bool) -> None:
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say("no steps")
    for row in answer["items"]:
        state = one_line(json.dumps(row["result"], ensure_ascii=False)) if row["recorded"] else "begun, not recorded"
        say(f"{one_line(row['name'])}: {state}")
