"""A morning of a small fleet, asked for over HTTP: each operation at least once, with what it really answers.

Run as a program it writes the examples of the API's description (`make reference`). Time is fixed, so they are the same
whenever that is done.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.http.house import House
from tests.http.served import KEYS, Answer, serve
from wakeful.control.operations import OPERATIONS, request
from wakeful.core.items import Observation
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.http.auth import run_token
from wakeful.testing.contracts.store_case import FAILED, LEASE, MINUTE, an_agent, reported

EXAMPLES = Path(__file__).resolve().parents[2] / "src" / "wakeful" / "http" / "examples.json"
DAY = Lifecycle("write", (State("write", repeat=2, next="review"), State("review", next="write")))
# What a copy is called in the examples, wherever it really is.
COPY = "/backups/wakeful.db"


class Told(NamedTuple):
    name: str
    said: dict[str, Any]
    answer: Answer


class Morning:
    def __init__(self, house: House, folder: Path) -> None:
        self.house, self.folder = house, folder
        self.told: list[Told] = []
        # By agent: the token of its run under way.
        self.tokens: dict[str, str] = {}

    def ask(self, name: str, by: str | None = None, /, **said: Any) -> Any:
        made = request(name, said)
        token = KEYS.operator if by is None else self.tokens[by]
        answer = self.house.served.ask(made.method, made.target, made.body, token=token)
        self.told.append(Told(name, said, answer))
        assert answer.status < 300, (name, said, answer.body)
        return answer.json

    def begin(self, *agents: str) -> dict[str, tuple[int, int]]:
        """Whatever was admitted is under way."""
        begun = self.house.claim()
        rows = {self.house.ask("GET", f"/v1/runs/{run}").json["agent"]: (run, epoch) for run, epoch in begun.items()}
        self.tokens |= {agent: run_token(KEYS, *each, self.house.now) for agent, each in rows.items()}
        assert set(agents) <= set(rows), rows
        return rows

    def later(self, span: timedelta = MINUTE) -> None:
        self.house.now += span

    def messages(self) -> None:
        now, url = self.house.now, "http://127.0.0.1:7717"
        self.house.writer.submit(lambda store: store.join("here", "desk", url, now, LEASE)).result()
        sent = self.ask(
            "send", agent="wren", body="The draft is ready.", subject="draft", priority="high", key="draft-7"
        )
        quiet = self.ask("send", agent="wren", body="No hurry.", metadata={"ticket": "A-7"})["message"]["id"]
        late = self.ask("send", agent="wren", body="For tomorrow.", reply_to=sent["message"]["id"])["message"]["id"]
        self.ask("mark_read", agent="wren", messages=[quiet])
        self.ask("snooze", agent="wren", messages=[late], until="2h")
        wren = self.begin("wren")["wren"]
        (self.house.runs / str(wren[0]) / "stdout").write_text("Reading the draft.\n")
        self.later()
        self.ask("wake", "wren", agent="moss", reason="blocker", body="The build is red.", key="red-1")
        self.ask("output", run=wren[0])
        self.ask("inbox", agent="wren", state="all", limit=2)
        self.ask("inbox", agent="wren", state="all", before=999, limit=2)
        self.ask("wake_stats", agent="moss")
        self.house.end(*wren, reported(usd=120_000, tokens=9_000, summary="read the draft"))
        self.ask("show_run", run=wren[0])

    def tasks(self) -> None:
        task = self.ask(
            "add_task", title="summarise page 3", role="reader", payload={"page": 3}, key="page-3", tags=["pages"]
        )["id"]
        moss = self.begin("moss")["moss"]
        self.ask("claim_task", "moss")
        self.ask("task", task=task)
        self.ask("keyed_task", message_id="page-3")
        self.ask("blame", run=moss[0])
        self.ask("agent", agent="moss")
        self.ask("kill", run=moss[0])
        self.later()
        self.house.end(*moss, FAILED)
        pages = (4, 5, 6, 7)
        many: list[dict[str, Any]] = [
            {"title": f"page {page}", "role": "writer", "key": f"page-{page}"} for page in pages
        ]
        many[3]["depends_on"] = ["page-6"]
        ids = [row["id"] for row in self.ask("add_tasks", tasks=many, key="pages")["items"]]
        self.ask("tasks", role="writer", limit=2)
        self.ask("count_tasks")
        self.ask("fail_task", task=ids[0], reason="the page is gone")
        self.ask("dead")
        self.ask("replay", task=ids[0])
        self.ask("fail_task", task=ids[0], reason="the page is gone")
        self.ask("retry_task", task=ids[0])
        self.ask("fail_task", task=ids[0], reason="the page is gone")
        self.ask("discard", task=ids[0])
        self.ask("complete_task", task=ids[1], result="done by hand")
        self.ask("remove_task", task=ids[1])
        self.ask("cancel_task", task=ids[2], reason="no longer wanted")
        self.ask("change_tasks", change="cancel", role="writer", reason="the book is closed")
        self.ask("run", agent="moss", prompt="Count the pages.", title="count", timeout="5m", key="count-1")

    def day(self) -> None:
        see = [Observation(external_id="note.txt", fingerprint="1", subject="note.txt", body="Look at this.")]
        self.house.writer.submit(lambda store: store.observe("inbox", "fern", see, self.house.now)).result()
        self.ask("tick", agent="fern", reason="have a look", key="look-1")
        fern = self.begin("fern")["fern"]
        self.ask("save_step", "fern", name="fetch", result={"pages": 12})
        self.ask("save_step", "fern", name="print", begun=True)
        self.ask("show_run", run=fern[0])
        self.ask("steps", "fern")
        self.later()
        self.house.end(*fern)
        self.ask("at", agent="fern", when="in 20m", reason="the proofs come", key="proofs-1")
        self.ask("stuck")
        self.ask("why", agent="fern")
        self.ask("why", agent="moss", cause="peer", sender="wren")
        self.ask("forecast", agent="fern", n=3)
        self.ask("settings", agent="moss")
        self.ask("set", agent="moss", settings={"cooldown": "10m", "max_wakes_per_day": "20"})
        self.ask("set", agent="moss", settings={"cooldown": None}, version=2)
        self.ask("pause_agent", agent="moss", reason="holiday", duration="2h")
        self.ask("tick", agent="moss")
        self.ask("agents", limit=2)
        self.ask("agents", names=["fern", "nobody"])
        self.ask("timeline", agents=["moss", "wren"])
        self.ask("costs", days=2)
        self.ask("resume_agent", agent="moss")
        self.ask("pause", reason="deploy")
        self.ask("status")
        self.ask("resume")

    def records(self) -> None:
        self.ask("runs", limit=2)
        wake = self.ask("decisions", limit=2)["items"][0]["wake_id"]
        self.ask("decisions", verdict="refuse")
        self.ask("decisions", guard="paused", cause="operator", text="holiday", since="00:00")
        self.ask("runs", outcome="failed", cause="peer")
        self.ask("decision", wake=wake)
        self.ask("events", limit=3)
        self.ask("events", after=999_999)
        for name in ("nodes", "audit", "reload"):
            self.ask(name)
        self.ask("backup", path=str(self.folder / "copy.db"))
        self.ask("stop", drain=True)


@contextmanager
def morning(folder: Path, **app: Any) -> Iterator[Morning]:
    roles = {"wren": ("writer",), "moss": ("reader",), "fern": ("gardener",)}
    agents = [an_agent(name, roles=role) for name, role in roles.items()]
    agents[2] = an_agent("fern", lifecycle=DAY, roles=roles["fern"])
    house = House(folder, *agents)
    try:
        with serve(house.control, app=app) as house.served:
            yield Morning(house, folder)
    finally:
        house.writer.close()
        house.writer.store.close()


def recorded(folder: Path) -> list[Told]:
    with morning(folder) as each:
        each.messages()
        each.tasks()
        each.day()
        each.records()
        return each.told


def examples(told: list[Told]) -> dict[str, Any]:
    """The first of each."""
    found: dict[str, Any] = {}
    for name, said, answer in told:
        found.setdefault(name, {"said": said, "status": answer.status, "answer": answer.json})
    for part in (found["backup"]["said"], found["backup"]["answer"]):
        part["path"] = COPY
    return {name: found[name] for name in OPERATIONS}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = json.dumps(examples(recorded(Path(folder))), indent=1, ensure_ascii=False)
    EXAMPLES.write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
