"""`wakeful audit`: every stored fact held against the events. It changes nothing, and needs no engine.

Exit 1 when something does not add up.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from wakeful.cli.complaints import REFUSED
from wakeful.cli.connection import store_of
from wakeful.cli.output import Line, Span, one_line, say, say_json, say_lines
from wakeful.cli.place import Place, as_json, outside_run, placed, refuse_nowhere
from wakeful.cli.progress import Sign, progress
from wakeful.cli.words import counted, lasting

if TYPE_CHECKING:
    from wakeful.store.protocol import Audited

Row = dict[str, Any]

# What is worth telling of how much there was.
_TOLD = (("event", "event"), ("run", "run"), ("wake", "wake"), ("item", "item"))


@click.command()
@click.option(
    "-n", "--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many of each rule."
)
@as_json
@placed
def audit(place: Place, limit: int, as_json: bool) -> None:
    """Hold every stored fact against the events, and say what does not add up."""
    from wakeful.control.auditing.audit import audit as hold
    from wakeful.control.auditing.audit import report_row

    outside_run(place, "the audit")
    refuse_nowhere(place)
    began = time.monotonic()
    with _store(place) as store, progress(quiet=as_json) as tell, _keeping():
        seen = partial(_looked_at, tell)
        answer = report_row(hold(store, datetime.now(UTC), seen))
    if as_json:
        say_json(answer)
    else:
        _tell(answer, limit, time.monotonic() - began)
    sys.exit(0 if answer["adds_up"] else REFUSED)


@contextmanager
def _store(place: Place) -> Iterator[Audited]:
    from pathlib import Path

    from wakeful.belongings import SQLITE
    from wakeful.store.beside import look_at_database, look_at_folder

    address = store_of(place)
    with look_at_folder(Path(place.data)) if address == SQLITE else look_at_database(address) as store:
        yield store


@contextmanager
def _keeping() -> Iterator[None]:
    """What an audit makes it needs until its end: to look for what could be thrown away takes an eighth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _looked_at(tell: Sign, table: str, rows: int) -> None:
    tell(f"{table}: {counted(rows, 'row')}")


def _tell(answer: Row, limit: int, seconds: float) -> None:
    looked = ", ".join(counted(answer["rows"].get(table, 0), word) for table, word in _TOLD)
    since = f", whole since {answer['since'][:19].replace('T', ' ')} UTC" if answer["since"] else ""
    if answer["adds_up"]:
        say(f"everything adds up: {looked}{since} ({lasting(seconds)})")
        return
    for rule, count in answer["counts"].items():
        told = [finding for finding in answer["findings"] if finding["rule"] == rule][:limit]
        say_lines(_lines(told, count))
    total = sum(answer["counts"].values())
    say(f"{counted(total, 'finding')} in {looked}{since} ({lasting(seconds)})")


def _lines(told: list[Row], count: int) -> Iterator[Line]:
    first = told[0]
    yield [Span(first["rule"], "bold red"), Span(f": {first['says']}, and {counted(count, 'time')} not")]
    for finding in told:
        yield [Span(f"  {one_line(', '.join(finding['rows']), 200)}", "bold")]
        yield [Span(f"    expected {one_line(finding['expected'], 500)}")]
        yield [Span(f"    found    {one_line(finding['found'], 500)}")]
    if count > len(told):
        yield [Span(f"  and {count - len(told)} more")]
    yield [Span(f"  what to do: {first['what_to_do']}")]
    yield [Span("")]
