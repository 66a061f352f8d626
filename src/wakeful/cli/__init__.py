"""The command line: one group, and one line here for each command.

Law: a command's module is imported when the command is called, never to list it; nothing heavy is imported
on the way to a light command. Exit codes: 0 done, 1 refused or found wanting, 2 bad usage or bad file,
69 no engine, 75 try later.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import Any

import click

from wakeful import __version__
from wakeful.core.errors import WakefulError

# name -> (where it is, what it does)
COMMANDS = {
    "init": ("wakeful.cli.init:init", "Begin a fleet: a small one that runs as it is."),
    "check": ("wakeful.cli.check:check", "Check a fleet file or a lifecycle, and say what to mend."),
    "up": ("wakeful.cli.engine:up", "Keep the fleet at work, until stopped."),
    "stop": ("wakeful.cli.engine:stop", "Stop the engine; runs under way go on by themselves."),
    "reload": ("wakeful.cli.engine:reload", "Read the fleet file again now."),
    "status": ("wakeful.cli.status:status", "What every agent is doing, in plain words."),
    "top": ("wakeful.cli.top:top", "The fleet in a terminal, live, with keys to steer it."),
    "tick": ("wakeful.cli.asking:tick", "Ask for an agent's next beat now."),
    "wake": ("wakeful.cli.asking:wake", "Ask an agent to look at its inbox now."),
    "at": ("wakeful.cli.asking:at", "Ask for a beat at an instant."),
    "run": ("wakeful.cli.asking:run", "Give an agent one task, once."),
    "send": ("wakeful.cli.messages:send", "Send an agent a message."),
    "inbox": ("wakeful.cli.messages:inbox", "The messages of an agent."),
    "stuck": ("wakeful.cli.stuck:stuck", "What woke an agent and was never dealt with."),
    "task": ("wakeful.cli.task:task", "Tasks: add, list, show, and what becomes of them."),
    "dead": ("wakeful.cli.dead:dead", "Tasks that were given up: list, show, replay, discard."),
    "board": ("wakeful.cli.board:board", "An org board: list, claim and release its entries."),
    "import": ("wakeful.cli.importing:import_tasks", "Take over the queue of another system."),
    "step": ("wakeful.cli.step:step", "Inside a run: do a thing once, and keep what came of it."),
    "runs": ("wakeful.cli.runs:runs", "The runs, newest first."),
    "logs": ("wakeful.cli.logs:logs", "What a run printed."),
    "kill": ("wakeful.cli.runs:kill", "End a run."),
    "pause": ("wakeful.cli.pausing:pause", "Let nothing begin, in the fleet or for one agent."),
    "resume": ("wakeful.cli.pausing:resume", "Lift a pause."),
    "why": ("wakeful.cli.why:why", "Why an agent runs or does not, guard by guard."),
    "blame": ("wakeful.cli.blame:blame", "What led to a run, and what it has cost."),
    "forecast": ("wakeful.cli.forecast:forecast", "The next beats of an agent."),
    "simulate": ("wakeful.cli.simulate:simulate", "What the fleet would do and cost in the days to come."),
    "drill": ("wakeful.cli.drill:drill", "Prove on this fleet that a crash loses and repeats nothing."),
    "decisions": ("wakeful.cli.records:decisions", "The verdicts on wakes, newest first."),
    "events": ("wakeful.cli.records:events", "Everything that happened, oldest first."),
    "set": ("wakeful.cli.settings:change", "Show or change the limits of a live agent."),
    "nodes": ("wakeful.cli.nodes:nodes", "Who is at work on this store."),
    "doctor": ("wakeful.cli.doctor:doctor", "Look for what is wrong with this installation."),
    "audit": ("wakeful.cli.audit:audit", "Hold every stored fact against the events."),
    "backup": ("wakeful.cli.keeping:backup", "Copy everything that is stored to a file."),
    "restore": ("wakeful.cli.keeping:restore", "Put a backup in the place of what is stored."),
    "store": ("wakeful.cli.store:store", "Move everything to another store."),
    "mcp": ("wakeful.cli.mcp:mcp", "Serve the tools of the fleet to a model, over MCP."),
    "service": ("wakeful.cli.service:service", "The fleet as a service of systemd: install, uninstall."),
    "token": ("wakeful.cli.token:token", "Print the operator's token."),
}


class LazyGroup(click.Group):
    """Lists commands without importing them, and ends every mistake with words."""

    def main(self, *arguments: Any, **named: Any) -> Any:
        _open_closed_streams()
        return super().main(*arguments, **named)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, function = COMMANDS[name][0].partition(":")
        command = getattr(import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except WakefulError as error:
            from wakeful.cli.complaints import from_error

            raise from_error(error) from error
        except OSError as error:
            # Whoever reads us has gone, as `head` does: click ends quietly.
            if error.errno == errno.EPIPE:
                raise
            from wakeful.cli.complaints import Complaint

            where = f"{error.filename}: " if error.filename else ""
            raise Complaint(f"{where}{error.strerror or error}") from error


def _open_closed_streams() -> None:
    """Called with `>&-` there is no stream to write to; and the first file that is opened would stand in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="wakeful %(version)s")
def main() -> None:
    """Keep a fleet of standing agents at work."""
