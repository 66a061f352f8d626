"""`wakeful init`: a small fleet that runs as it is, without a model.

Law: nothing that is there is touched; all of it is written, or none.
"""

from __future__ import annotations

import os

import click

from wakeful.cli.complaints import BAD, REFUSED, Complaint
from wakeful.cli.output import say

FLEET = """\
#+TITLE: my fleet
#+GRACE: 2s

Each heading is an agent; its drawer says what it runs, and when. Text like this is for people.

* hello
:PROPERTIES:
:RUN: agents/hello.sh
:INTERVAL: 30s
:END:
"""

AGENT = """\
#!/bin/sh
# An agent is any program. What it is told comes on standard input, what it has to say goes to standard output.
set -eu

# It starts in a folder of its own, which stays from run to run.
beats=$(($(cat beats 2>/dev/null || echo 0) + 1))
echo "$beats" > beats

# NO-WORK as the first word: there was nothing to do, and the next beat may wait longer.
if [ $((beats % 3)) -eq 0 ]; then
  echo "NO-WORK: a rest after two beats"
  exit 0
fi
echo "beat $beats of $WAKEFUL_AGENT, by $WAKEFUL_CAUSE, with $(wc -l) lines of briefing"
"""

FILES = (("fleet.org", FLEET, 0o644), (os.path.join("agents", "hello.sh"), AGENT, 0o755))
ALSO_A_FLEET = ("fleet.yml",)


@click.command()
@click.argument("folder", default=".")
def init(folder: str) -> None:
    """Begin a fleet in FOLDER, or here: a fleet.org and an agent that needs no model."""
    for name in (*(name for name, _, _ in FILES), *ALSO_A_FLEET):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            raise Complaint(f"{path} is there already", "nothing was written; choose an empty folder", REFUSED)
    try:
        for name, text, mode in FILES:
            _write(os.path.join(folder, name), text, mode)
    except OSError as error:
        raise Complaint(f"cannot write {error.filename}: {error.strerror}", "choose another folder", BAD) from None
    for name, _, _ in FILES:
        say(f"wrote {os.path.join(folder, name)}")
    there = "" if folder == "." else f"cd {folder} && "
    say(f"next: {there}wakeful up")


def _write(path: str, text: str, mode: int) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "w", encoding="utf-8") as file:
        file.write(text)
