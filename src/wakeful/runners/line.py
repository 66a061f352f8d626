"""The caller's side of the nursery: one small process, started when it is needed and replaced when it is gone."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv.pop()); from wakeful.runners.nursery import main; main()"
_PATIENCE = 5.0
_STEP = 0.002


class NurseryGone(ConnectionError):
    """The nursery ended before it answered; whether it placed the order is not known."""


class NurseryLine:
    """A line to one nursery. Every request is answered on a line of its own, so that none can confuse another."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # -I and -S: neither the user's settings nor installed packages, which a guardian needs none of.
        command = [sys.executable, "-I", "-S", "-c", _START, str(theirs.fileno()), str(_ROOT)]
        with theirs:
            self.process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        ours.setblocking(False)
        self.connection = ours

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    async def ask(self, order: bytes) -> int:
        """A process handle of the guardian that was given the order, once it has begun or never will."""
        loop = asyncio.get_running_loop()
        answer_line, theirs = socket.socketpair()
        answer_line.setblocking(False)
        with answer_line:
            with theirs:
                await self._send(order, theirs)
            handles: list[int] = []
            closed: asyncio.Future[None] = loop.create_future()
            loop.add_reader(answer_line, _take, answer_line, handles, closed)
            try:
                await closed
            except BaseException:
                for handle in handles:
                    os.close(handle)
                raise
            finally:
                loop.remove_reader(answer_line)
        if not handles:
            raise NurseryGone("the nursery ended before it answered")
        return handles[0]

    async def _send(self, order: bytes, answer_line: socket.socket) -> None:
        memory = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(memory), "wb") as file:
                file.write(order)
            loop = asyncio.get_running_loop()
            until = loop.time() + _PATIENCE
            while True:
                try:
                    socket.send_fds(self.connection, [b"?"], [memory, answer_line.fileno()])
                    return
                except BlockingIOError:
                    if loop.time() > until:
                        raise NurseryGone("the nursery does not listen") from None
                    await asyncio.sleep(_STEP)
                except OSError as error:
                    raise NurseryGone(str(error)) from error
        finally:
            os.close(memory)

    def close(self) -> None:
        """It ends by itself when its line is cut; one that does not is ended."""
        self.connection.close()
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _take(line: socket.socket, handles: list[int], closed: asyncio.Future[None]) -> None:
    if closed.done():
        return
    try:
        data, received, _, _ = socket.recv_fds(line, 1, 1, socket.MSG_CMSG_CLOEXEC)
    except BlockingIOError:
        return
    except OSError:
        data, received = b"", []
    handles += received
    if not data:
        closed.set_result(None)
