"""Spans, as a real receiver of OTLP over HTTP is sent them."""

import asyncio
import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.http.house import House
from tests.http.served import KEYS, serve
from wakeful.core.runs import Ending
from wakeful.http.auth import run_token
from wakeful.telemetry.spans import Ids
from wakeful.telemetry.telemetry import Telemetry
from wakeful.telemetry.tracing import _resource, wanted
from wakeful.testing.contracts.store_case import LEASE, NOW, reported


class Receiver:
    """Where spans are sent: each by its name, with the attributes of what sent it."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.spans: list[Any] = []
        self.services: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                if handler.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                    named = {each.key: each.value.string_value for each in sent.resource.attributes}
                    for scope in sent.scope_spans:
                        self.spans += scope.spans
                        self.services += [named["service.name"]] * len(scope.spans)
                handler.send_response(200)
                handler.end_headers()

            def log_message(handler, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    receiver = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    try:
        yield receiver
    finally:
        receiver.close()


def said(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_each_run_is_a_span_and_the_run_that_woke_it_is_its_parent(receiver, tmp_path):
    house, parents = House(tmp_path), {}
    telemetry = Telemetry(
        house.writer, lambda: NOW, "here", identity="i", variables={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    )
    asyncio.run(telemetry.begin())

    def claim() -> Any:
        (order,) = house.writer.submit(lambda store: store.claim("here", NOW, LEASE)).result()
        parents[order.run.agent] = telemetry.traceparent(order)
        return order.run

    with serve(house.control) as served:
        served.ask("POST", "/v1/agents/wren/tick", {})
        first = claim()
        asked = {"reason": "blocker", "body": "help"}
        token = run_token(KEYS, first.id, first.epoch, first.started_at)
        woken = served.ask("POST", "/v1/agents/moss/wake", asked, token=token).json
        assert woken["verdict"] == "admit"
        second = claim()
        house.end(second.id, second.epoch, Ending(exit_code=3))
        house.end(first.id, first.epoch, reported(usd=250_000, tokens=40))
    asyncio.run(telemetry.end())
    house.writer.close()
    house.writer.store.close()

    spans = {span.name: span for span in receiver.spans}
    wren, moss = spans["invoke_agent wren"], spans["invoke_agent moss"]
    assert set(receiver.services) == {"wakeful"}
    assert len(receiver.spans) == 2
    assert (wren.parent_span_id, moss.parent_span_id) == (b"", wren.span_id)
    assert moss.trace_id == wren.trace_id
    for agent, span in (("wren", wren), ("moss", moss)):
        assert parents[agent] == f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01"
    told = said(wren)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["gen_ai.agent.name"] == "wren"
    assert (told["gen_ai.usage.total_tokens"], told["gen_ai.usage.cost"]) == (40, 0.25)
    assert (told["wakeful.run.id"], told["wakeful.cause"], told["wakeful.outcome"]) == (first.id, "operator", "done")
    assert wren.status.code == 0
    assert moss.status.code == 2 and "3" in moss.status.message
    assert said(moss)["error.type"] == "failed"
    assert wren.start_time_unix_nano == int(NOW.timestamp()) * 10**9


def test_ids_are_the_same_wherever_they_are_made_and_others_on_another_store():
    assert Ids("a").span(7) == Ids("a").span(7) != Ids("b").span(7)
    assert Ids("a").trace(7) != Ids("a").trace(8)


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
    ],
)
def test_spans_are_sent_where_opentelemetrys_own_variables_say_so(variables, sent):
    assert wanted(variables) is sent


def test_without_those_variables_nothing_of_opentelemetry_is_loaded(tmp_path):
    script = """
import sys
from wakeful.telemetry.telemetry import Telemetry
class Access: ...
telemetry = Telemetry(Access(), None, "here", variables={"OTEL_SERVICE_NAME": "x"})
assert telemetry.traceparent(None) is None
assert not [name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client"))]
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_without_the_extra_the_node_says_so_and_goes_on(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    telemetry = Telemetry(None, lambda: NOW, "here", variables=variables)
    assert telemetry.traceparent(None) is None
    assert "wakeful[otel]" in caplog.text


def test_a_collector_that_is_away_holds_nobody_up(tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    monkeypatch.setattr("wakeful.telemetry.tracing.PARTING", 0.2)
    house = House(tmp_path)
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    telemetry = Telemetry(house.writer, lambda: NOW, "here", variables=variables)
    asyncio.run(telemetry.begin())
    house.end(*house.begin("wren"))
    asyncio.run(telemetry.end())
    assert telemetry.tally.completed["wren", "operator", "done"] == 1
    house.writer.close()
    house.writer.store.close()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "wakeful"),
        ({"OTEL_SERVICE_NAME": "desk"}, "desk"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=desk,x=y"}, "desk"),
    ],
)
def test_the_service_is_called_as_its_operator_says(variables, name, monkeypatch):
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    told = _resource("here", variables).attributes
    assert (told["service.name"], told["service.instance.id"]) == (name, "here")
