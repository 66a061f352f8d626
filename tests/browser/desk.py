"""A fleet that really runs, with a past: one agent in each condition that an operator may find one in.

The hours before now were lived by the real engine in time that jumps (`past`); from now on they are lived by
`wakeful up` and real processes. What stands in the fleet file is the same for both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from soak.standing import Ground, free_port, until
from tests.browser import past
from tests.browser.agents import HOSTILE
from tests.engine.stage import heading
from wakeful import Client

HOUR = timedelta(hours=1)
PATIENCE = 60.0
# A list that nobody answers for.
AWAY = "snapshot+http://127.0.0.1:9/letters"
AGENTS = Path(__file__).with_name("agents.py")

DAY = (
    "#+START: write\n"
    + heading("write", repeat="3", next="audit")
    + heading("audit", next="rest")
    + heading("rest", kind="rem", next="plan")
    + heading("plan", next="write")
)


def habit(name: str) -> str:
    return f'python3 -S "$WAKEFUL_ROOT/agents.py" {name}'


def zone(now: datetime) -> str:
    """Where it is afternoon now: what is counted by the day has had half a day to add up, whenever tests are run."""
    ahead = (15 - now.hour + 12) % 24 - 12
    return f"Etc/GMT{-ahead:+}"


def fleet(now: datetime, **folders: dict[str, str]) -> str:
    """The night desk. Somebody's quiet hours are always just now."""
    here = now.astimezone(ZoneInfo(zone(now)))
    quiet = f"{here - HOUR:%H}:00-{here + 3 * HOUR:%H}:00"
    keys = {
        "title": "night desk",
        "timezone": zone(now),
        "sessions": "4",
        "workers": "2",
        "grace": "0s",
        "stagger": "0s",
        "budget-usd": "12.00",
        "max-wakes-per-pair": "12",
        "burst": "500/10m",
        "retry-base": "1s",
        "max-retries": "1",
        "kill-grace": "1s",
    }
    agents = (
        heading("wren", run=habit("writes"), lifecycle="lifecycle.org", interval="10m", budget_usd="2.50"),
        heading("moss", run=habit("reads"), interval="20m", cooldown="40m", **folders.get("moss", {})),
        heading("jay", run=habit("works-long"), interval="1h"),
        heading("fern", run=habit("finds-nothing"), interval="5m"),
        heading("thorn", run=habit("fails"), interval="6m"),
        heading("flint", run=habit("reads"), interval="10m", budget_usd="0.50", **folders.get("flint", {})),
        heading("owl", run=habit("reads"), interval="15m", quiet_hours=quiet),
        heading("lark", run=habit("reads"), interval="10m"),
        heading("kit", run=habit("files"), tasks="filing", max_minutes_per_day="60"),
        heading("pip", run=habit("files"), tasks="proofs", replicas="2"),
        heading("rook", run=habit("reads"), enabled="no"),
    )
    return "".join(f"#+{key.upper()}: {value}\n" for key, value in keys.items()) + "".join(agents)


class Running(Ground):
    """An engine that is up, and whatever is known of it outside. `zone` is where its operator sits."""

    def __init__(self, folder: Path, text: str, zone: str = "UTC") -> None:
        super().__init__(folder, text, port=(port := free_port()))
        self.url = f"http://127.0.0.1:{port}"
        self.zone = zone
        self._client: Client | None = None

    def begin(self) -> Running:
        self.up()
        return self

    @property
    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    @property
    def client(self) -> Client:
        """As the operator."""
        if self._client is None:
            self._client = Client(self.url, self.token)
        return self._client

    @property
    def address(self) -> str:
        """As `wakeful up` says it."""
        return f"{self.url}/#token={self.token}"

    def until(self, condition: Callable[[], object], what: str) -> None:
        until(condition, f"{what}\n{self.log()}", PATIENCE)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        super().close()


class Desk(Running):
    """The night desk, with who is in which condition: `wren` lives a day, `moss` is woken by others and leaves a file
    where it is (stuck), `jay` runs for long, `fern` backs off, `thorn` is quarantined, `flint` has spent its budget and
    its list is away, `owl` has quiet hours, `lark` is paused, `kit` takes tasks of which some are dead, `pip` is two,
    `rook` is switched off."""

    def __init__(self, folder: Path) -> None:
        now = datetime.now(UTC)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(AGENTS, folder / "agents.py")
        (folder / "lifecycle.org").write_text(DAY)
        (folder / "box").mkdir()
        (folder / "box" / "notes.txt").write_text("what was heard at night\n")
        past.lived(folder, fleet(now), now)
        # In the past nobody looked into folders and lists, which would take as long as all the rest.
        present = fleet(now, moss={"inbox": "box"}, flint={"on": AWAY})
        super().__init__(folder, present, zone(now))

    def begin(self) -> Desk:
        self.up()
        client = self.client
        client.tick("jay", reason="read the archive")
        client.tick("wren")
        client.add_task("file the last page", role="filing")
        client.add_task("file a torn page", role="filing", priority="high")
        client.add_task("count the stamps", role="archive", description="nobody takes this")
        self.until(self._is_settled, "the tasks to be tried")
        return self

    def _is_settled(self) -> bool:
        dead = self.client.count_tasks(role="filing")["counts"].get("dead_letter", 0)
        stuck = self.client.stuck(agent="moss")["items"]
        return bool(self.run_of("jay") and dead >= 2 and stuck) and not self.run_of("wren")

    def run_of(self, agent: str) -> int | None:
        """The run that it is at."""
        runs = self.client.runs(agent=agent, open=True)["items"]
        return int(runs[0]["id"]) if runs else None


class Den(Running):
    """`hex` means ill and has been at work: what it printed, sent and asked for is kept everywhere."""

    def __init__(self, folder: Path) -> None:
        agents = (
            heading("hex", run=habit("harms"), interval="1d"),
            heading("moss", run=habit("reads"), interval="1d"),
            heading("kit", run=habit("files"), tasks="filing"),
        )
        keys = "#+TITLE: den\n#+GRACE: 2h\n#+KILL-GRACE: 1s\n"
        super().__init__(folder, keys + "".join(agents))
        shutil.copy(AGENTS, folder / "agents.py")

    def begin(self) -> Den:
        self.up()
        client = self.client
        client.send("hex", HOSTILE, subject=HOSTILE)
        client.fail_task(client.add_task(HOSTILE, role="archive", description=HOSTILE)["id"], reason=HOSTILE)
        self.run = client.tick("hex", reason=HOSTILE)["run_id"]
        self.until(lambda: not client.runs(open=True)["items"], "hex to have done its worst")
        client.send("moss", HOSTILE, subject=HOSTILE)
        return self


def crowd_of(folder: Path, agents: int) -> Running:
    """So many that have nothing to do today."""
    names = "".join(heading(f"agent-{number:04}", interval="1d") for number in range(agents))
    return Running(folder, f"#+TITLE: crowd\n#+RUN: true\n#+GRACE: 2h\n{names}")
