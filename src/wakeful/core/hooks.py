"""Webhooks: what ON says of one, what a signature proves, and which delivery it proves.

Laws:
- Only what is signed counts. A delivery is known by the id that its sender gives it, never by what it says: two that
  say the same are two. No spelling of a header makes two deliveries of one.
- A signed time is within the window, before and after now, and is that of one sending: a sender that tries again signs
  anew. What comes again as it was, or signs no time (GitHub) and comes again, is a replay.
- Whatever is said twice, or not as it must be, is not verified. Without a secret nothing is.
- Nothing secret stands in an address: a secret is named by the variable that holds it. Two may hold at a time, so that
  one can take the other's place.
"""

from __future__ import annotations

import hmac
import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from wakeful.core.errors import Mistake, WakefulError
from wakeful.core.wording import nearest

SCHEME = "webhook"
SHAPE = "webhook://NAME?preset=github&secret=ENV_NAME"
WINDOW = timedelta(seconds=300)
# Its name is for a format, not for a sender: see `core.cloud_events`.
CLOUD_EVENTS = "cloudevents"
# These are asked for with a token, and belong to no source.
RESERVED = frozenset({"wake", "agent"})
MOST_SECRETS = 2

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# A dot would let the same signature be read as one of another id, time and body.
_ID = re.compile(r"[!#-\-/-~]{1,200}")
_TIME = re.compile(r"[0-9]{1,11}")
_DELIVERY = re.compile(r"[0-9A-Za-z-]{1,100}")
_EVENT = re.compile(r"[a-z0-9_]{1,100}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{43}=?")
_EVENT_HEADER = "x-github-event"
_MOST_SIGNATURES = 10
# What a sender calls its event is shown in a line beside others.
_LONGEST_WORD = 80

Headers = Sequence[tuple[str, str]]


class Preset(StrEnum):
    """Whose way of signing it is."""

    hmac = "hmac"
    standard = "standard"
    github = "github"


class Unverified(WakefulError):
    """The delivery does not prove where it comes from, or when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook of ON; `secrets` are names of variables."""

    name: str
    preset: Preset = Preset.hmac
    secrets: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return source_of(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What was proved: `id` is the same for every repetition, `sent` is the signed time of this one, if any. `event` is
    what the sender calls it, to be told and nothing more."""

    id: str
    sent: int | None = None
    event: str | None = None


def source_of(name: str) -> str:
    """Under which its items are kept, and it is paused. No agent is called that: a name has no colon."""
    return f"{SCHEME}:{name}"


# ---- what ON says


def is_hook(address: str) -> bool:
    return address.partition(":")[0].lower() == SCHEME


def read_hook(address: str) -> Hook:
    """Mistakes do not repeat the address: in the place of a variable's name the secret itself may stand."""
    try:
        parts = urlsplit(address)
    except ValueError:
        raise Mistake("not an address", f"write {SHAPE}") from None
    if not NAME.fullmatch(parts.netloc) or parts.path or parts.fragment:
        raise Mistake("a webhook has a name and nothing behind it but its parameters", f"write {SHAPE}")
    if parts.netloc in RESERVED:
        raise Mistake(
            f"/hooks/{parts.netloc} is asked for with the operator's token, and is no source", "use another name"
        )
    given: dict[str, list[str]] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        given.setdefault(key, []).append(value)
    presets, secrets = given.pop("preset", [Preset.hmac.value]), given.pop("secret", [])
    if given or len(presets) > 1:
        raise Mistake("a webhook has one preset, a secret, and no other parameters", f"write {SHAPE}")
    if len(secrets) > MOST_SECRETS or len(set(secrets)) < len(secrets):
        raise Mistake(
            f"expected at most {MOST_SECRETS} different secrets, found {len(secrets)}",
            "name the one that holds, and the one whose place it takes",
        )
    return Hook(name=parts.netloc, preset=_preset(presets[0]), secrets=tuple(secrets))


def _preset(written: str) -> Preset:
    if written in list(Preset):
        return Preset(written)
    near = nearest(written[:60], Preset)
    remedy = f"did you mean {near}?" if near else f"use one of {', '.join(Preset)}"
    raise Mistake(f"expected one of {', '.join(Preset)} as the preset", remedy)


# ---- what a delivery says


def read_body(body: bytes) -> tuple[str, Any]:
    """As it was written, and what it means."""
    try:
        text = body.decode()
        return text, json.loads(text, parse_constant=_no_number)
    except UnicodeDecodeError:
        reason = "the body is not UTF-8"
    except RecursionError:
        reason = "the body is nested too deeply"
    except ValueError as error:
        reason = f"the body is not JSON: {error}"
    raise Mistake(reason, "send JSON; GitHub asks for it as the content type application/json")


def _no_number(written: str) -> Any:
    raise ValueError(f"{written} is no number of JSON")


def subject_of(name: str, delivery: Delivery, said: Any) -> str:
    """`github: issues opened`: what happened, as far as the delivery has a word for it."""
    told = said if isinstance(said, dict) else {}
    kind = delivery.event or _word(told.get("type")) or _word(told.get("event"))
    words = [word for word in (kind, _word(told.get("action"))) if word]
    return f"{name}: {' '.join(words)}" if words else name


def is_trial(preset: Preset, delivery: Delivery, said: Any) -> bool:
    """GitHub asks once whether anybody is there; that is news for nobody."""
    return preset is Preset.github and delivery.event == "ping" and isinstance(said, dict) and "zen" in said


def _word(value: Any) -> str | None:
    fits = isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD and value.isprintable()
    return value if fits else None


# ---- what a signature proves


def verify(preset: Preset, secrets: Sequence[str], headers: Headers, body: bytes, now: datetime) -> Delivery:
    """The delivery that these headers, their names in small letters, prove with one of the secrets."""
    keys = [key for secret in secrets for key in _keys(preset, secret)]
    if not keys:
        raise Unverified("there is no secret to verify it with")
    return _VERIFIERS[preset](keys, headers, body, now)


def _hmac(keys: Sequence[bytes], headers: Headers, body: bytes, now: datetime) -> Delivery:
    id, moment = (
        _only(headers, "x-webhook-id", "webhook-id"),
        _only(headers, "x-webhook-timestamp", "webhook-timestamp"),
    )
    signature = _only(headers, "x-webhook-signature", "webhook-signature")
    digests = [digest for part in signature.split() if (digest := _digest(_bare(part))) is not None]
    return _dated(keys, id, moment, digests, body, now)


def _standard(keys: Sequence[bytes], headers: Headers, body: bytes, now: datetime) -> Delivery:
    id, moment = _only(headers, "webhook-id"), _only(headers, "webhook-timestamp")
    # Several, with blanks between them, while a secret changes; other versions are other algorithms.
    parts = [part.removeprefix("v1,") for part in _only(headers, "webhook-signature").split() if part.startswith("v1,")]
    return _dated(keys, id, moment, [digest for part in parts if (digest := _digest(part)) is not None], body, now)


def _github(keys: Sequence[bytes], headers: Headers, body: bytes, now: datetime) -> Delivery:
    signature, label = _only(headers, "x-hub-signature-256"), _only(headers, "x-github-delivery")
    named = any(name == _EVENT_HEADER for name, _ in headers)
    event = _only(headers, _EVENT_HEADER) if named else None
    if not signature.startswith("sha256=") or not _HEX.fullmatch(signature.removeprefix("sha256=")):
        raise Unverified("the signature is not sha256= and 64 hexadecimal digits")
    if not _DELIVERY.fullmatch(label) or not (event is None or _EVENT.fullmatch(event)):
        raise Unverified("the delivery or the event is not named as GitHub names them")
    _must_match(keys, body, [bytes.fromhex(signature.removeprefix("sha256="))])
    return Delivery(id=label, event=event)


_VERIFIERS: Mapping[Preset, Callable[[Sequence[bytes], Headers, bytes, datetime], Delivery]] = {
    Preset.hmac: _hmac,
    Preset.standard: _standard,
    Preset.github: _github,
}


def _dated(
    keys: Sequence[bytes], id: str, moment: str, digests: Sequence[bytes], body: bytes, now: datetime
) -> Delivery:
    if not _ID.fullmatch(id):
        raise Unverified("an id is up to 200 visible characters, without a dot or a quotation mark")
    if not _TIME.fullmatch(moment):
        raise Unverified("a timestamp is the whole seconds since 1970")
    _must_match(keys, b".".join((id.encode(), moment.encode(), body)), digests)
    age = now.timestamp() - int(moment)
    # A whole second stands for all of its parts, so the oldest may be almost a second older than it says.
    if age >= WINDOW.total_seconds() + 1 or age < -WINDOW.total_seconds():
        side = "old" if age > 0 else "from the future"
        raise Unverified(f"it is {abs(int(age))} s {side}, and {WINDOW.total_seconds():.0f} s is the most")
    return Delivery(id=id, sent=int(moment))


def _must_match(keys: Sequence[bytes], signed: bytes, digests: Sequence[bytes]) -> None:
    found = False
    for key in keys:
        own = hmac.digest(key, signed, "sha256")
        for digest in digests[:_MOST_SIGNATURES]:
            found |= hmac.compare_digest(own, digest)
    if not found:
        raise Unverified("no signature matches")


def _only(headers: Headers, *names: str) -> str:
    """The one value of a header; of two nobody knows which one others look at."""
    values = [value for name, value in headers if name in names]
    if len(values) != 1:
        raise Unverified(f"expected one header {names[0]}, found {len(values)}")
    return values[0]


def _bare(part: str) -> str:
    for prefix in ("sha256=", "v1=", "v1,"):
        if part.startswith(prefix):
            return part.removeprefix(prefix)
    return part


def _digest(written: str) -> bytes | None:
    """Of a signature only its bytes count, not how they are written."""
    if _HEX.fullmatch(written):
        return bytes.fromhex(written)
    return _unbased(written) if _BASE64.fullmatch(written) else None


def _unbased(written: str) -> bytes | None:
    plain = written.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return None


def _keys(preset: Preset, secret: str) -> list[bytes]:
    """What is signed with: the secret, and where it is written in base64, as Standard Webhooks does, what it means."""
    if not secret:
        return []
    if preset is not Preset.standard:
        return [secret.encode(errors="surrogateescape")]
    meant = _unbased(secret.removeprefix("whsec_"))
    plain = [] if secret.startswith("whsec_") else [secret.encode(errors="surrogateescape")]
    return [key for key in (meant, *plain) if key]
