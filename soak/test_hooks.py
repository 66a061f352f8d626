"""600 deliveries, each sent one to five times in any order by six senders, while the engine is killed again and again:
every one of them is there once, for each agent that wants it.

DELIVERIES=100 KILLS=5 SEED=7 in the environment change how many, how often and when.
"""

import hashlib
import hmac
import http.client
import json
import os
import queue
import random
import threading
import time
from collections import defaultdict

from soak.standing import Ground, free_port

DELIVERIES = int(os.environ.get("DELIVERIES", "600"))
KILLS = int(os.environ.get("KILLS", "12"))
SEED = int(os.environ.get("SEED", "2026"))
SENDERS = 6
PATIENCE = 600.0
# Nobody has time for them: what is recorded is looked at, not what is done about it.
FLEET = """#+RUN: true
* wren
:PROPERTIES:
:ON: webhook://ci?secret=CI_SECRET webhook://github?preset=github&secret=GITHUB_SECRET
:END:
* moss
:PROPERTIES:
:ON: webhook://github?preset=github&secret=GITHUB_SECRET
:END:
"""
SECRETS = {"CI_SECRET": "one of these", "GITHUB_SECRET": "and another"}


class Senders:
    """Each sends what is next until it is told that it is recorded; of an answer that is lost it knows nothing."""

    def __init__(self, port: int, dice: random.Random) -> None:
        self._port = port
        self._left: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self.ids: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.statuses: dict[int, int] = defaultdict(int)
        sent = [(name, n) for n in range(DELIVERIES) for name in [dice.choice(["ci", "github"])] * dice.randint(1, 5)]
        self.distinct = len(set(sent))
        self.of_github = sum(name == "github" for name, _ in set(sent))
        dice.shuffle(sent)
        for each in sent:
            self._left.put(each)
        self.sent = len(sent)
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    @property
    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _send_all(self) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                name, number = self._left.get_nowait()
            except queue.Empty:
                return
            while time.monotonic() < end and not self._sent(name, number):
                time.sleep(0.05)

    def _sent(self, name: str, number: int) -> bool:
        body = json.dumps({"number": number}).encode()
        headers = {"Content-Type": "application/json", **_signed(name, number, body)}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
        try:
            connection.request("POST", f"/hooks/{name}", body, headers)
            answer = connection.getresponse()
            told = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return False
        finally:
            connection.close()
        self.statuses[answer.status] += 1
        if answer.status == 202:
            self.ids[name, number].add(told["id"])
        # The second is told of what was taken when nobody heard the answer.
        return answer.status in (202, 409)


def _signed(name: str, number: int, body: bytes) -> dict[str, str]:
    if name == "github":
        mac = hmac.new(SECRETS["GITHUB_SECRET"].encode(), body, hashlib.sha256).hexdigest()
        return {"X-Hub-Signature-256": f"sha256={mac}", "X-GitHub-Delivery": f"d-{number}"}
    moment = str(int(time.time()))
    signed = f"m-{number}.{moment}.".encode() + body
    mac = hmac.new(SECRETS["CI_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
    return {"X-Webhook-Id": f"m-{number}", "X-Webhook-Timestamp": moment, "X-Webhook-Signature": mac}


def test_every_delivery_is_there_once_however_often_it_comes_and_the_engine_is_killed(
    ground, address, say, monkeypatch
):
    for variable, secret in SECRETS.items():
        monkeypatch.setenv(variable, secret)
    dice, port, kills = random.Random(SEED), free_port(), 0
    here: Ground = ground(FLEET, store=address, port=port)
    here.up()
    assert here.ask("pause").returncode == 0
    senders = Senders(port, random.Random(SEED))
    while senders.busy and kills < KILLS:
        time.sleep(dice.uniform(0.2, 2.0))
        here.kill()
        here.up()
        kills += 1
    while senders.busy:
        time.sleep(0.1)
    here.leave()
    say(f"{senders.sent} sendings of {senders.distinct} deliveries, {kills} kills, answers {dict(senders.statuses)}")
    assert all(len(ids) == 1 for ids in senders.ids.values()), f"seed {SEED}"
    wanted = {"wren": senders.distinct, "moss": senders.of_github}
    with here.store() as store:
        found = {agent: store.items(agent=agent, kind="message", limit=10 * DELIVERIES) for agent in wanted}
    assert {agent: len(items) for agent, items in found.items()} == wanted
    assert all(len({(item.source, item.body) for item in items}) == len(items) for items in found.values())
