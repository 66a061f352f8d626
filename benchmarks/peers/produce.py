"""The process that enqueues. It reads one command a line, does it, and answers with one line of JSON.

    one JOBS SECONDS        one by one, for at most that long
    batch JOBS SECONDS      1,000 at a time
    callers JOBS SECONDS    one by one, from 50 callers at once: threads, or coroutines where its calls are
    single NUMBER           one job of that number

Laws:
- It stamps the clock around the calls themselves; what it says and hears lies outside of that.
- The peer is opened before the first command, and closed when there are no more.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

from benchmarks.peers.peer import Peer, context, quiet
from benchmarks.peers.roster import peer_of

BATCH = 1_000
CALLERS = 50
ANSWER = "@@"

Answer = dict[str, Any]
clock = time.monotonic_ns


async def called(peer: Peer, answer: Any) -> None:
    if peer.asynchronous:
        await answer


async def one(peer: Peer, jobs: int, seconds: float) -> Answer:
    began = clock()
    until, done = began + int(seconds * 1e9), 0
    while done < jobs and clock() < until:
        done += 1
        await called(peer, peer.one(done))
    return {"began": began, "ended": clock(), "jobs": done}


async def batch(peer: Peer, jobs: int, seconds: float) -> Answer:
    began = clock()
    until, done = began + int(seconds * 1e9), 0
    while done < jobs and clock() < until:
        size = min(BATCH, jobs - done)
        await called(peer, peer.batch(range(done + 1, done + size + 1)))
        done += size
    return {"began": began, "ended": clock(), "jobs": done}


async def callers(peer: Peer, jobs: int, seconds: float) -> Answer:
    own = [type(peer)(peer.context) for _ in range(CALLERS)] if peer.apart else [peer] * CALLERS
    for each in own if peer.apart else ():
        await called(each, each.open())
    numbers = iter(range(1, jobs + 1))
    began = clock()
    until = began + int(seconds * 1e9)
    done = await _coroutines(own, numbers, until) if peer.asynchronous else _threads(own, numbers, until)
    ended = clock()
    for each in own if peer.apart else ():
        await called(each, each.close())
    return {"began": began, "ended": ended, "jobs": done}


async def _coroutines(own: list[Peer], numbers: Iterator[int], until: int) -> int:
    async def call(peer: Peer) -> int:
        done = 0
        for number in numbers:
            await peer.one(number)
            done += 1
            if clock() > until:
                break
        return done

    return sum(await asyncio.gather(*(call(peer) for peer in own)))


def _threads(own: list[Peer], numbers: Iterator[int], until: int) -> int:
    lock, counts = threading.Lock(), list[int]()
    failures: list[BaseException] = []

    def call(peer: Peer) -> None:
        done = 0
        try:
            while clock() < until:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    break
                peer.one(number)
                done += 1
        except BaseException as error:
            failures.append(error)
        counts.append(done)

    threads = [threading.Thread(target=call, args=(peer,)) for peer in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts)


async def single(peer: Peer, number: int) -> Answer:
    began = clock()
    await called(peer, peer.one(number))
    return {"began": began, "ended": clock(), "jobs": 1}


WAYS = {"one": one, "batch": batch, "callers": callers}


async def serve(peer: Peer) -> None:
    await called(peer, peer.open())
    say({"ready": True})
    while True:
        # Where there is a loop, it is left to whoever else lives on it.
        line = await asyncio.to_thread(sys.stdin.readline) if peer.asynchronous else sys.stdin.readline()
        if not line:
            break
        way, *rest = line.split()
        try:
            if way == "single":
                say(await single(peer, int(rest[0])))
            else:
                say(await WAYS[way](peer, int(rest[0]), float(rest[1])))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
    await called(peer, peer.close())


def say(answer: Answer) -> None:
    print(ANSWER + json.dumps(answer), flush=True)


def by_hand(coroutine: Coroutine[Any, Any, None]) -> None:
    """The coroutine of a peer whose calls are none never waits, and so needs no loop."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a call that should not have waited did")


if __name__ == "__main__":
    quiet()
    given = peer_of(context())
    if given.asynchronous:
        asyncio.run(serve(given))
    else:
        by_hand(serve(given))
    sys.stdout.flush()
    # Threads that a library has left behind must not keep us.
    os._exit(0)
