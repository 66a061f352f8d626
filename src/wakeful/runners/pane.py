"""One pane of a tmux session: what it shows, and what is typed into it.

Laws:
- A pane is found once, and is the same pane of the same server ever after, or it is gone: a name or a number that was
  given again is not ours.
- A bare session is its oldest pane, whichever one somebody looks at.
- Nothing is typed that does not print. A text is pasted in brackets; keys are sent apart from it.
- We start no server.
"""

from __future__ import annotations

import subprocess
from typing import NamedTuple

from wakeful.runners.errand import Trouble

# Seconds for one call: a server that is stopped does not refuse, it is silent.
_ANSWER = 20.0
# What always says something; a server that is about to go says nothing, and that all is well.
_TELLING = ("capture-pane", "display-message", "list-panes")
_WHO = "#{pid} #{pane_id} #{pane_pid}"
_SHOWN = f"{_WHO}\n#{{pane_dead}}\n#{{pane_in_mode}}\n#{{cursor_x}} #{{cursor_y}} #{{history_size}}"


class Gone(Trouble):
    """The pane, its session or the server is not there (any more)."""


class View(NamedTuple):
    """What can be seen of a pane; two equal ones, and nothing has happened between them."""

    # Somebody scrolls in it: keys would not reach the agent.
    in_mode: bool
    cursor: str
    text: str

    def shows(self, marker: str) -> bool:
        """Also where the agent has broken the line, or framed it."""
        return marker in "".join(sign for sign in self.text if sign.isalnum())


class Pane:
    def __init__(self, session: str, who: str) -> None:
        self.session = session
        self._who = who
        self.id = who.split()[1]

    @classmethod
    def find(cls, session: str) -> Pane:
        try:
            if ":" in session or session[0] in "@%":
                # Asked for its text first: to tell of itself, tmux would take another pane than one that is not there.
                target = session if session[0] in "@%$" else f"={session}"
                told = _tmux("capture-pane", "-p", "-t", target, ";", "display-message", "-p", "-t", target, _WHO)
                return cls(session, told.rstrip().rpartition("\n")[2])
            target = session if session[0] == "$" else f"={session}:"
            panes = _tmux("list-panes", "-s", "-t", target, "-F", _WHO).splitlines()
        except Gone as gone:
            name = "NAME" if session[0] in "@%$" else session.partition(":")[0]
            remedy = f"start it: tmux new-session -d -s {name} AGENT"
            raise Trouble(f"there is no tmux session {session} ({gone}); {remedy}", "config") from None
        return cls(session, min(panes, key=_age))

    def look(self) -> View:
        told = _tmux("display-message", "-p", "-t", self.id, _SHOWN, ";", "capture-pane", "-p", "-t", self.id)
        who, dead, mode, cursor, *text = told.split("\n")
        if who != self._who or dead == "1":
            raise Gone("what ran there has ended")
        return View(mode == "1", cursor, "\n".join(text))

    def paste(self, line: str, name: str) -> None:
        """`name` is that of a buffer, which is gone afterwards."""
        if not line.isprintable():
            raise Trouble("a path holds a sign that cannot be typed; choose another data folder", "config")
        pasting = ("paste-buffer", "-p", "-r", "-d", "-b", name, "-t", self.id)
        _tmux("load-buffer", "-b", name, "-", ";", *pasting, given=line)

    def press(self, key: str) -> None:
        _tmux("send-keys", "-t", self.id, key)

    def leave_mode(self) -> None:
        _tmux("send-keys", "-t", self.id, "-X", "cancel")


def _age(who: str) -> int:
    """The numbers of panes only grow."""
    return int(who.split()[1].lstrip("%"))


def _tmux(*words: str, given: str = "") -> str:
    try:
        done = subprocess.run(["tmux", "-u", *words], input=given.encode(), capture_output=True, timeout=_ANSWER)
    except FileNotFoundError:
        raise Trouble("there is no program tmux; install the package tmux", "config") from None
    except subprocess.TimeoutExpired:
        raise Trouble("tmux does not answer") from None
    if done.returncode != 0 or (words[0] in _TELLING and not done.stdout.strip()):
        raise Gone(done.stderr.decode(errors="replace").strip() or "tmux has no server")
    return done.stdout.decode(errors="replace")
