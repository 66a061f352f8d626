"""The command line: one group, and one line here for each command.

Law: a command's module is imported when the command is called, never to list it; nothing heavy is imported
on the way to a light command. Exit codes: 0 done, 1 refused or found wanting, 2 bad usage or bad file,
69 no engine, 75 try later.
"""

from __future__ import annotations

from importlib import import_module

import click

# name -> (module, what it does)
COMMANDS = {
    "check": ("wakeful.cli.check", "Check a fleet file or a lifecycle, and say what to mend."),
}


class LazyGroup(click.Group):
    """Lists commands without importing them; a command is the function of its own name in its module."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = getattr(import_module(COMMANDS[name][0]), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Keep a fleet of standing agents at work."""
