"""`/metrics` on the real control and store: right beside the audit, clean for promtool, and cheap for ten thousand."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.http.house import House
from tests.http.served import KEYS, serve
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem
from wakeful.http.auth import run_token
from wakeful.store.protocol import Backlog
from wakeful.telemetry.exposition import exposition
from wakeful.telemetry.tally import Tally
from wakeful.telemetry.telemetry import Telemetry
from wakeful.testing.contracts.store_case import HOUR, NOW, SECOND, a_fleet, reported, tick, timer

# As the contract has them: name, type, labels.
CONTRACT = {
    "wakeful_run_completed": ("counter", ("agent", "cause", "outcome")),
    "wakeful_run_duration_seconds": ("histogram", ()),
    "wakeful_wake_decided": ("counter", ("agent", "cause", "guard", "verdict")),
    "wakeful_slot_wait_seconds": ("histogram", ()),
    "wakeful_schedule_lag_seconds": ("histogram", ()),
    "wakeful_items_open": ("gauge", ("agent", "kind")),
    "wakeful_oldest_unhandled_seconds": ("gauge", ()),
    "wakeful_model_tokens": ("counter", ()),
    "wakeful_model_cost_usd": ("counter", ()),
}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    telemetry = Telemetry(house.writer, lambda: NOW, "here")
    asyncio.run(telemetry.begin())
    try:
        with serve(house.control, app={"scrape": telemetry.scrape}) as house.served:
            yield house
    finally:
        house.writer.close()
        house.writer.store.close()


def read(text: str) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels, in the order of their names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(house: House) -> dict[tuple[str, ...], float]:
    answer = house.ask("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read(answer.body.decode())


def total(samples: dict[tuple[str, ...], float], name: str) -> float:
    return sum(value for key, value in samples.items() if key[0] == name)


def test_there_is_exactly_what_the_contract_names(house):
    house.end(*house.begin("wren"))
    house.ask("POST", "/v1/agents/moss/messages", {"body": "x"})
    families = {each.name: each for each in text_string_to_metric_families(house.ask("GET", "/metrics").body.decode())}
    assert {name: each.type for name, each in families.items()} == {name: kind for name, (kind, _) in CONTRACT.items()}
    for name, (kind, labels) in CONTRACT.items():
        found = {tuple(sorted(sample.labels.keys() - {"le"})) for sample in families[name].samples}
        assert found == {labels}, name
        assert families[name].documentation.endswith("."), name
        assert not any(sample.name.endswith("_created") for sample in families[name].samples), kind


def test_it_needs_the_operators_token(house):
    run, epoch = house.begin("wren")
    assert house.ask("GET", "/metrics", token=None).status == 401
    assert house.ask("GET", "/metrics", token=run_token(KEYS, run, epoch, house.now)).status == 403


def test_the_counts_are_those_of_the_store(house):
    for _ in range(3):
        house.end(*house.begin("wren"))
    house.ask("POST", "/v1/agents/moss/pause", {"reason": "rest"})
    for _ in range(2):
        house.ask("POST", "/v1/agents/moss/wake", {})
    house.begin("wren")
    samples = scraped(house)
    assert samples["wakeful_run_completed_total", "wren", "operator", "done"] == 3
    assert samples["wakeful_wake_decided_total", "wren", "operator", "", "admit"] == 4
    assert samples["wakeful_wake_decided_total", "moss", "operator", "paused", "refuse"] == 2
    assert samples["wakeful_run_duration_seconds_count",] == 3
    audit = house.ask("GET", "/v1/audit").json
    assert audit["adds_up"]
    assert total(samples, "wakeful_run_completed_total") == audit["rows"]["run"] - 1
    assert total(samples, "wakeful_wake_decided_total") == audit["rows"]["wake"]


def test_what_is_open_is_told_with_its_age(house):
    old = NOW - timedelta(minutes=5)
    message, task = NewItem(kind=Kind.message, agent="moss"), NewItem(kind=Kind.task, role='wri"ter')
    house.writer.submit(lambda store: store.record([message, message], old)).result()
    house.writer.submit(lambda store: store.record([task], NOW)).result()
    samples = scraped(house)
    assert samples["wakeful_items_open", "moss", "message"] == 2
    assert samples["wakeful_items_open", 'role:wri"ter', "task"] == 1
    assert samples["wakeful_oldest_unhandled_seconds",] == 300


def test_usage_is_added_up(house):
    for usd, tokens in ((1_500_000, 700), (250_000, 50)):
        run, epoch = house.begin("wren")
        house.end(run, epoch, reported(usd=usd, tokens=tokens))
    samples = scraped(house)
    assert samples["wakeful_model_tokens_total",] == 750
    assert samples["wakeful_model_cost_usd_total",] == 1.75


def test_a_wait_for_a_slot_and_the_lag_of_a_beat_are_measured(house):
    def decide(wake: Any, at: Any) -> Any:
        return house.writer.submit(lambda store: store.decide([wake], admit, at)[0]).result()

    due_at = NOW + HOUR
    first = decide(tick("wren"), due_at)
    house.writer.submit(lambda store: store.declare(a_fleet("wren", "moss", sessions=1), due_at)).result()
    waiting = decide(timer("moss", due_at), due_at + 2 * SECOND)
    assert waiting.verdict.guard == "slots"
    # Looked at once more, and still none is free: it waits since it began to.
    still = replace(timer("moss", due_at), id=waiting.wake)
    assert decide(still, due_at + 3 * SECOND).verdict.guard == "slots"
    house.writer.submit(lambda store: store.void(first.run, 0, due_at + 3 * SECOND)).result()
    later = due_at + 9 * SECOND
    due = house.writer.submit(lambda store: store.due(later)).result()
    (again,) = [wake for wake in due.wakes if wake.id == waiting.wake]
    assert decide(again, later).run
    samples = scraped(house)
    assert samples["wakeful_slot_wait_seconds_sum",] == 7
    assert samples["wakeful_schedule_lag_seconds_sum",] == 9
    assert samples["wakeful_schedule_lag_seconds_count",] == 1


def test_promtool_has_nothing_to_complain_of(house):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not there: install the package prometheus")
    house.end(*house.begin("wren"))
    text = house.ask("GET", "/metrics").body
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_a_scrape_of_ten_thousand_agents_is_cheap():
    tally = Tally()
    for n in range(10_000):
        for outcome in ("done", "no_work"):
            tally.completed[f"agent-{n}", "timer", outcome] = n
        for verdict, guard in (("admit", ""), ("defer", "slots"), ("defer", "busy")):
            tally.decided[f"agent-{n}", "timer", verdict, guard] = n
    backlog = Backlog(open={(f"agent-{n}", "message"): n for n in range(10_000)}, oldest=NOW)
    begun = time.process_time()
    text = exposition(tally, backlog, NOW.timestamp())
    assert time.process_time() - begun < 1.0
    assert text.count("\n") > 60_000
