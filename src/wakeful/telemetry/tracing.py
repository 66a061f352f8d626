"""The spans of this node's runs, sent to where OpenTelemetry's own variables say (OTLP over HTTP).

Laws:
- Without those variables nothing of OpenTelemetry is loaded, and no run is told of a trace.
- A collector that is slow, away or wrong costs spans, never a run: they wait in a bounded queue of another thread, and
  the end of the node waits for it no longer than `PARTING`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from wakeful import __version__
from wakeful.core.events import Event, EventKind
from wakeful.store.protocol import Access, RunRow, Store, WakeRow
from wakeful.telemetry.spans import Ids, Span, span_of

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

log = logging.getLogger("wakeful.telemetry")

# Seconds.
PARTING = 3.0
# A burst of runs that end together is told whole; OTEL_BSP_MAX_QUEUE_SIZE says otherwise.
QUEUE = 16_384
_WHERE = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def wanted(variables: Mapping[str, str]) -> bool:
    """Whether spans are to be sent anywhere."""
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = [each.strip() for each in variables.get("OTEL_TRACES_EXPORTER", "").split(",") if each.strip()]
    if exporters:
        return "otlp" in exporters
    return any(variables.get(name, "").strip() for name in _WHERE)


def tracing(access: Access, identity: str, node: str, variables: Mapping[str, str]) -> Tracing | None:
    """None where nobody wants it, or nothing that could do it is installed."""
    if not wanted(variables):
        return None
    try:
        return Tracing(access, Ids(identity), _processor(variables), _resource(node, variables))
    except ImportError as error:
        log.warning("no spans are sent: %s is not installed (pip install 'wakeful[otel]')", error.name)
        return None


def _processor(variables: Mapping[str, str]) -> BatchSpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    size = None if "OTEL_BSP_MAX_QUEUE_SIZE" in variables else QUEUE
    return BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=size)


def _resource(node: str, variables: Mapping[str, str]) -> Resource:
    from opentelemetry.sdk.resources import Resource

    named = "OTEL_SERVICE_NAME" in variables or "service.name=" in variables.get("OTEL_RESOURCE_ATTRIBUTES", "")
    own = {} if named else {"service.name": "wakeful"}
    return Resource.create({**own, "service.instance.id": node})


class Tracing:
    def __init__(self, access: Access, ids: Ids, processor: BatchSpanProcessor, resource: Resource) -> None:
        self._access = access
        self._ids = ids
        self._processor = processor
        self._resource = resource
        self.traceparent = ids.traceparent

    async def hear(self, events: Sequence[tuple[Event, bool]]) -> None:
        ended = [event for event, own in events if own and event.kind is EventKind.ended]
        if not ended:
            return

        def look(store: Store) -> list[tuple[Event, RunRow | None, WakeRow | None]]:
            return [(event, store.run(event.run or 0), store.wake(event.wake or 0)) for event in ended]

        for event, run, wake in await self._access.read(look):
            if run is not None and wake is not None:
                self._processor.on_end(self._readable(span_of(self._ids, run, wake, event.fields or {})))

    def _readable(self, span: Span) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(id: int) -> SpanContext:
            return SpanContext(span.trace, id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        return ReadableSpan(
            span.name,
            context=context(span.id),
            parent=None if span.parent is None else context(span.parent),
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=_nanoseconds(span.began),
            end_time=_nanoseconds(span.ended),
            instrumentation_scope=InstrumentationScope("wakeful", __version__),
        )

    async def close(self) -> None:
        """What waits is sent, if there is anybody to take it."""
        # Not a thread of a pool: whoever ends a pool waits for it, however long a collector takes.
        thread = threading.Thread(target=self._processor.shutdown, name="wakeful-spans", daemon=True)
        thread.start()
        await asyncio.get_running_loop().run_in_executor(None, thread.join, PARTING)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND * 1_000
