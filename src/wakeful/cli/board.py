"""`wakeful board`: what stands on an org board, and a claim on it that everybody sees.

Laws:
- Of two that claim one entry at the same time one has it: on one machine by a lock of the folder, between clones by who
  pushes first.
- A claim changes nothing else. What is not in git is claimed in the file alone.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from wakeful.cli.board_repository import Repository
from wakeful.cli.complaints import BAD, LATER, Complaint
from wakeful.cli.declared import fleet_file
from wakeful.cli.output import say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.core.wording import nearest, quoted
from wakeful.sources.board import LARGEST
from wakeful.sources.board_text import Entry, is_of, named, rewritten, split, words_of

# Of those who always come second.
TRIES = 5
PATIENCE = 30.0
TAKEN_UP, GIVEN_BACK = "DOING", "NEXT"


@click.group()
def board() -> None:
    """An org board: its open entries, and claims on them."""


@board.command("list")
@click.argument("file", required=False)
@click.option("--agent", metavar="AGENT", help="Only what this agent may take: nobody's, and its own.")
@as_json
@placed
def list_entries(place: Place, file: str | None, agent: str | None, as_json: bool) -> None:
    """The open entries of FILE, or of every board of this fleet."""
    rows = []
    for path in [Path(file)] if file else _boards(place):
        for id, entry in named(_read(path)).items():
            if agent is None or is_of(entry, agent):
                rows.append(_row(path, id, entry))
    if as_json:
        say_json({"items": rows, "next": None})
        return
    for row in rows:
        say(f"{row['state']:8} {row['id']}" + (f"  ({row['agent']})" if row["agent"] else ""))
    if not rows:
        say("nothing is open")


who = click.option("--agent", envvar="WAKEFUL_AGENT", metavar="AGENT", help="Who does; inside a run its own agent.")
state = click.option("--state", metavar="WORD", help="Its keyword from then on.")


@board.command()
@click.argument("id")
@click.argument("file", required=False)
@who
@state
@as_json
@placed
def claim(place: Place, id: str, file: str | None, agent: str | None, state: str | None, as_json: bool) -> None:
    """Take the entry ID of FILE, or of the fleet's board: its keyword becomes DOING, its AGENT yours.

    In git it is committed, and pushed where the branch has an upstream. Exit 1 if somebody else has it.
    """
    if not agent:
        raise Complaint("nobody is said to claim it", "say --agent", BAD)
    _changed(_one(place, file), id, state or TAKEN_UP, agent, "claim", as_json)


@board.command()
@click.argument("id")
@click.argument("file", required=False)
@who
@state
@as_json
@placed
def release(place: Place, id: str, file: str | None, agent: str | None, state: str | None, as_json: bool) -> None:
    """Give the entry ID back, or hand it on: it has no AGENT any more, and its keyword becomes NEXT, or WORD.

    Inside a run, and with --agent, only one's own. The operator may take away any claim.
    """
    _changed(_one(place, file), id, state or GIVEN_BACK, agent or "", "release", as_json)


def _changed(path: Path, id: str, word: str, agent: str, verb: str, as_json: bool) -> None:
    with _alone(path):
        repository = Repository.of(path)
        for _ in range(TRIES):
            if repository is not None:
                repository.bring_up_to_date()
            text = _read(path)
            entry = _found(text, id, path)
            if agent and not is_of(entry, agent):
                raise Complaint(f"{quoted(id)} is claimed by {entry.agent}", "take another one")
            chosen = _word(text, word, entry)
            after = rewritten(text, entry, word=chosen, agent=agent if verb == "claim" else "")
            if after != text:
                _write(path, after)
                if repository is not None:
                    repository.keep(f"{verb}: {entry.title}")
                    if not repository.push():
                        continue
            row = {**_row(path, id, entry), "state": chosen, "agent": agent if verb == "claim" else None}
            if as_json:
                say_json(row)
            else:
                say(f"{agent} has {id}: {chosen}" if verb == "claim" else f"{id} is nobody's: {chosen}")
            return
    raise Complaint(f"others were first {TRIES} times", "try again later", LATER)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else on this machine changes a board of that folder meanwhile."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise Complaint(f"somebody else changes {path}", "try again later", LATER) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(folder)


def _boards(place: Place) -> list[Path]:
    file = fleet_file(place)
    agents = file.fleet.agents if file.fleet else ()
    names = dict.fromkeys(agent.board for agent in agents if agent.board is not None)
    if not names:
        raise Complaint("no agent of this fleet has a BOARD", "name the board: FILE", BAD)
    return [file.path.parent / name for name in names]


def _one(place: Place, file: str | None) -> Path:
    boards = [Path(file)] if file else _boards(place)
    if len(boards) > 1:
        raise Complaint(f"this fleet has {len(boards)} boards", "name one: FILE", BAD)
    return boards[0].resolve()


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise Complaint(f"{path} is larger than {LARGEST >> 20} MB", "move what is done elsewhere", BAD)
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise Complaint(f"{path}: {error.strerror}", "name the board", BAD) from None
    except UnicodeDecodeError:
        raise Complaint(f"{path} is not text in UTF-8", "mend it, or name another", BAD) from None


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(text.encode())
    beside.chmod(path.stat().st_mode)
    beside.replace(path)


def _found(text: str, id: str, path: Path) -> Entry:
    entries = named(text)
    if id not in entries:
        near = nearest(id, entries)
        remedy = f"did you mean {quoted(near)}?" if near else "see: wakeful board list"
        raise Complaint(f"no open entry of {path} is called {quoted(id)}", remedy, BAD)
    return entries[id]


def _word(text: str, word: str, entry: Entry) -> str:
    """A keyword that the board has; one that nobody chose is left out where it has it not."""
    words = words_of(split(text))
    if word in (*words.open, *words.closed):
        return word
    if word in (TAKEN_UP, GIVEN_BACK):
        return entry.word
    raise Complaint(
        f"{quoted(word)} is no keyword of this board", f"known: {' '.join((*words.open, *words.closed))}", BAD
    )


def _row(path: Path, id: str, entry: Entry) -> dict[str, Any]:
    return {
        "id": id,
        "state": entry.word,
        "title": entry.title,
        "agent": entry.agent or None,
        "tags": list(entry.tags),
        "board": str(path),
    }
