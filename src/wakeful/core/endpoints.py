"""An agent behind an address, as URL says it: `https://agents.example/wren#token=WREN_TOKEN`.

Laws:
- What stands behind `#` is for us, as in any address: it is never sent.
- Nothing secret stands in an address: a token is named by the variable that holds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit

from wakeful.core.errors import Mistake

SHAPE = "https://HOST/PATH#token=ENV_NAME"
_UNSENDABLE = re.compile(r"[^!-~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`url` is what is asked, without its options; `token` names a variable."""

    url: str
    token: str | None = None


def read_endpoint(address: str) -> Endpoint:
    """Mistakes do not repeat the address: whoever shows it knows what in it must not be shown."""
    try:
        parts = urlsplit(address)
        # Reading the port is what validates it.
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:
        raise Mistake("not an address of http or https", f"write {SHAPE}") from None
    return Endpoint(url=sent(parts, parts.scheme), token=_token(parts))


def sent(parts: SplitResult, scheme: str) -> str:
    """What is asked for, without what is for us alone."""
    if "@" in parts.netloc:
        raise Mistake("a password stands in the address", "put a token into a variable and write #token=ENV_NAME")
    if _UNSENDABLE.search(parts.netloc + parts.path + parts.query):
        raise Mistake("the address holds signs that cannot be sent", "write them as %XX, and a host in its ASCII form")
    query = f"?{parts.query}" if parts.query else ""
    return f"{scheme}://{parts.netloc}{parts.path or '/'}{query}"


def _token(parts: SplitResult) -> str | None:
    try:
        options = parse_qsl(parts.fragment, keep_blank_values=True, strict_parsing=bool(parts.fragment))
    except ValueError:
        raise Mistake("the option behind # is not name=value", f"write {SHAPE}") from None
    for name, value in options:
        if name != "token" or not value or len(options) > 1:
            raise Mistake("behind # there may be one token, and nothing else", f"write {SHAPE}")
    return options[0][1] if options else None
