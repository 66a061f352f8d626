"""The git repository in which a board lies, as far as a claim needs it.

Law: a claim is a commit on top of what everybody sees, or it is taken back: whoever pushes second has not claimed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from wakeful.cli.complaints import LATER, Complaint

PATIENCE = 60.0
# Nobody is asked for a password, and what is said is in words that we know.
QUIET = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_OPTIONAL_LOCKS": "0"}
BEHIND = ("non-fast-forward", "fetch first", "cannot lock ref", "failed to update ref", "incorrect old value")


class Repository:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.shared = self._ask("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}").returncode == 0

    @classmethod
    def of(cls, file: Path) -> Repository | None:
        """None where nobody keeps the board in git, or has git."""
        try:
            known = _git(file.parent, "ls-files", "--error-unmatch", "--", file.name)
        except FileNotFoundError:
            return None
        return cls(file) if known.returncode == 0 else None

    def bring_up_to_date(self) -> None:
        if self._ask("diff", "--quiet", "HEAD", "--", self.file.name).returncode != 0:
            raise Complaint(f"{self.file} has changes that are not committed", "commit them first, or take them back")
        if self.shared:
            self._do("pull", "--quiet", "--ff-only", remedy="bring the clone up to date by hand: git pull")

    def keep(self, message: str) -> None:
        self._do("commit", "--quiet", "-m", message, "--", self.file.name, remedy="nothing was claimed")

    def push(self) -> bool:
        """False where somebody else was first, and our commit is taken back."""
        if not self.shared:
            return True
        done = self._ask("push", "--quiet")
        if done.returncode == 0:
            return True
        self._do("reset", "--quiet", "--keep", "HEAD~1", remedy="take the last commit back by hand")
        if any(sign in done.stderr for sign in BEHIND):
            return False
        raise Complaint(f"git push failed: {_why(done)}", "nothing was claimed; try again later", LATER)

    def _do(self, *words: str, remedy: str) -> None:
        done = self._ask(*words)
        if done.returncode != 0:
            raise Complaint(f"git {words[0]} failed: {_why(done)}", remedy, LATER)

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        try:
            return _git(self.file.parent, *words)
        except subprocess.TimeoutExpired:
            raise Complaint(f"git {words[0]} has not ended within {PATIENCE:.0f} s", "try again later", LATER) from None


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(folder), *words]
    environment = {**os.environ, **QUIET}
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )


def _why(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr or done.stdout).split())[-300:] or f"exit {done.returncode}"
