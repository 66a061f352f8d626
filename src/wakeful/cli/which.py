"""Which tasks a command is about: the options that a list and a change of many share.

Law: all of what is named must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from wakeful.cli.messages import PRIORITIES

STATES = ("pending", "in_progress", "failed", "blocked", "completed", "cancelled", "dead_letter")
FILTER = ("agent", "role", "tag", "causal_key", "source", "priority", "text")
PAGE = 100
# Above every number that a task can have.
NEWEST = 2**62

Command = Callable[..., Any]

with_states = click.option(
    "--state", "state", multiple=True, type=click.Choice(STATES), help="Only in this state; may be repeated."
)
_FILTERS = (
    click.option("--agent", metavar="AGENT", help="Only for this agent."),
    click.option("--role", metavar="ROLE", help="Only for this role."),
    click.option("--tag", metavar="TAG", help="Only with this tag."),
    click.option("--causal-key", metavar="TEXT", help="Only with this causal key."),
    click.option("--source", metavar="NAME", help="Only from this source, such as schedule:NAME."),
    click.option("--priority", type=click.Choice(PRIORITIES), help="Only of this priority."),
    click.option("--text", metavar="TEXT", help="Only with this in the title or in the last error."),
)
_PAGES = (
    click.option("--newest", is_flag=True, help="Newest first."),
    click.option("--after", type=int, default=0, metavar="TASK", help="Only tasks after this one: the next page."),
    click.option("--before", type=int, metavar="TASK", help="Only tasks before this one, newest first."),
    click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=PAGE, show_default=True, help="How many."),
)


def with_filter(command: Command) -> Command:
    return _with(command, _FILTERS)


def paged(command: Command) -> Command:
    return _with(command, _PAGES)


def _with(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def given_filter(given: dict[str, Any]) -> dict[str, Any]:
    """What was said of it; empty where nothing was."""
    said = {name: given[name] for name in FILTER if given.get(name) is not None}
    return {**said, "state": list(given["state"])} if given.get("state") else said
