"""`wakeful doctor`: what is well and what is wrong with this installation. It changes nothing.

Exit 1 when something is wrong; what is only worth knowing is a warning.
"""

from __future__ import annotations

import sys

import click

from wakeful.cli.complaints import REFUSED
from wakeful.cli.findings import Finding, Level, examine
from wakeful.cli.output import Line, Span, say_json, say_lines
from wakeful.cli.place import Place, as_json, outside_run, placed

SHADES = {Level.ok: "green", Level.warn: "yellow", Level.fail: "bold red"}


@click.command()
@as_json
@placed
def doctor(place: Place, as_json: bool) -> None:
    """Look for what is wrong, and say what to do about it."""
    outside_run(place, "the doctor")
    findings = examine(place)
    failed = any(finding.level is Level.fail for finding in findings)
    if as_json:
        say_json({"ok": not failed, "findings": [finding.row() for finding in findings]})
    else:
        say_lines(_line(finding) for finding in findings)
    sys.exit(REFUSED if failed else 0)


def _line(finding: Finding) -> Line:
    advice = f" ({finding.remedy})" if finding.remedy else ""
    return [
        Span(f"{finding.level.value:4}", SHADES[finding.level]),
        Span(f"  {finding.name:10}  {finding.said}{advice}".replace("\n", " ")),
    ]
