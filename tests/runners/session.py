"""A tmux server of a test's own, and an agent that lives in one of its sessions."""

import os
import select
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

if shutil.which("tmux") is None:
    pytest.skip("no tmux: install the package tmux", allow_module_level=True)

AGENT = Path(__file__).with_name("session_agent.py")


class Sessions:
    """`habit` is what the agent does with a line that it is given (session_agent.py)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Not below the test's folder: the path of a socket has to be short.
        self.place = Path(tempfile.mkdtemp(prefix="tmux-"))
        self.typed = folder / "typed"

    def tmux(self, *words: str) -> str:
        base = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment = {**base, "TMUX_TMPDIR": str(self.place), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        command = ["tmux", "-f", os.devnull, *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self, name: str = "main", habit: str = "answers", command: str = "") -> None:
        python = f"exec '{sys.executable}' -I -S '{AGENT}' '{self.folder}' '{habit}'"
        self.tmux("new-session", "-d", "-s", name, "-x", "90", "-y", "24", command or python)

    def ready(self, name: str = "main") -> bool:
        return ">" in self.screen(name)

    def screen(self, name: str = "main") -> str:
        return self.tmux("capture-pane", "-p", "-t", f"={name}:")

    def heard(self) -> bytes:
        """Everything that has reached the agent."""
        return self.typed.read_bytes() if self.typed.exists() else b""

    def end(self) -> None:
        """Until the server is gone, if there is one."""
        environment = {**os.environ, "TMUX_TMPDIR": str(self.place)}
        command = ["tmux", "display-message", "-p", "#{pid}", ";", "kill-server"]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30).stdout.strip()
        with suppress(ProcessLookupError):
            if said:
                handle = os.pidfd_open(int(said))
                select.select([handle], [], [], 30)
                os.close(handle)

    def close(self) -> None:
        self.end()
        shutil.rmtree(self.place, ignore_errors=True)
