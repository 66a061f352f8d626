"""`/metrics`, for Prometheus: the operator's alone, like everything else that tells of the whole fleet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from fastapi.responses import Response

from wakeful.control.callers import Forbidden
from wakeful.http.entry import caller_of

Scrape = Callable[[], Awaitable[str]]
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def nothing_measured() -> str:
    """Where no engine counts."""
    return ""


def metrics(scrape: Scrape) -> APIRouter:
    router = APIRouter()

    @router.get("/metrics", name="metrics", response_model=None)
    async def read(request: Request) -> Response:
        caller = caller_of(request.scope)
        if not caller.is_operator:
            raise Forbidden(f"{caller.name} may not ask for metrics in the course of a run: only the operator may")
        return Response(await scrape(), media_type=MEDIA_TYPE)

    return router
