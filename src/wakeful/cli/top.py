"""`wakeful top`: the fleet in a terminal, live, with keys to steer it.

Law: it is for a person at a terminal. Whoever is none is told what to ask instead, and nothing is drawn.
"""

from __future__ import annotations

import os
import sys

import click

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.place import Place, outside_run, placed


@click.command()
@click.option("--json", "as_json", is_flag=True, hidden=True)
@placed
def top(place: Place, as_json: bool) -> None:
    """The fleet in a terminal, live: who does what, with keys to pause, tick, wake, follow a log and ask why.

    ? shows the keys. Programs ask wakeful status --json.
    """
    outside_run(place, "wakeful top")
    if as_json:
        raise Complaint("top draws on a terminal", "for JSON ask wakeful status --json", BAD)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Complaint(
            "top draws on a terminal, and this is none", "use wakeful status, or wakeful status --json", BAD
        )
    if os.environ.get("TERM") in (None, "", "dumb"):
        raise Complaint("top needs a terminal that can move its cursor", "set TERM, or use wakeful status --watch", BAD)
    from wakeful.cli.top_loop import Top

    Top(place).run()
