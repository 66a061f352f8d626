"""The dashboard's files, as they lie in `dashboard/`: open to everybody, for they hold nothing of any fleet.

Laws:
- What the page knows it asks for, with the token that its address carries in the fragment, which no server is told.
- It runs what lies here and nothing else: no script or style within a page, nothing from another place, in no frame.
- A name that is none of those files is nothing: no path is made of it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

FRONT = "/"
FILES = "/dashboard/"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def is_open(path: str) -> bool:
    return path == FRONT or path.startswith(FILES)


@cache
def contents() -> dict[str, bytes]:
    """By name, with the folder that a file lies in."""
    found: dict[str, bytes] = {}

    def gather(folder: Traversable, before: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                gather(each, f"{before}{each.name}/")
            elif each.name.rpartition(".")[2] in _MEDIA:
                found[before + each.name] = each.read_bytes()

    gather(files("wakeful.http") / "dashboard", "")
    return found


def page() -> APIRouter:
    router = APIRouter()

    @router.get(FRONT, include_in_schema=False, response_model=None)
    async def front() -> Response:
        return _file("index.html")

    @router.get(FILES + "{name:path}", include_in_schema=False, response_model=None)
    async def file(name: str) -> Response:
        return _file(name)

    return router


def _file(name: str) -> Response:
    content = contents().get(name)
    if content is None:
        raise HTTPException(404)
    media = _MEDIA[name.rpartition(".")[2]]
    return Response(content, media_type=media, headers={"content-security-policy": POLICY})
