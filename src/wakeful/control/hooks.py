"""What comes from outside by HTTP: deliveries of webhooks, CloudEvents, and the hooks that other loops know.

Laws:
- A delivery is one event of its sender, however often it comes and whatever the fleet file says meanwhile: its first
  item has the key that all of them are known by, and what it is to others is recorded with it or not at all.
- A sender is known by the variable of its secret: two who use the same name and the same ids are still two. What the
  operator brings, each agent that it is for has once. An answer names those who have it.
- Everything that comes this way is from outside, whoever brings it: it rings as news at most, and taints the run that
  is shown it. A pause holds the run, never the record.
- What is not declared does not exist; what is declared without a secret is closed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wakeful.control.callers import Caller, Forbidden
from wakeful.control.messages import written_metadata
from wakeful.control.noting import note_act
from wakeful.control.redacting import redacted
from wakeful.control.requests import reply
from wakeful.control.rows import Row
from wakeful.control.tasking import Tasking, first_line
from wakeful.core.cloud_events import CloudEvent, is_binary, read_events
from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.hooks import (
    CLOUD_EVENTS,
    Delivery,
    Headers,
    Hook,
    Preset,
    Unverified,
    is_hook,
    is_trial,
    read_body,
    read_hook,
    source_of,
    subject_of,
    verify,
)
from wakeful.core.items import Kind, NewItem, Origin, Ring
from wakeful.core.redacting import redacted_item, redacted_json
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.core.wording import readable
from wakeful.store.protocol import Recorded, Store

log = logging.getLogger(__name__)

WAKE, AGENT = "wake", "agent"
NOW, NEXT_BEAT = "now", "next-heartbeat"
# To whom something goes that says nobody, in a fleet of several.
MAIN = "main"


@dataclass(frozen=True, slots=True)
class _Declared:
    """A webhook, and whose it is: an agent, or the address of its replicas."""

    hook: Hook
    address: str


@dataclass(frozen=True, slots=True)
class _Addressed:
    """Whose something is. Under one of the scopes it may be known; the first is the one that it is kept under."""

    scopes: tuple[str, ...]
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Proved:
    delivery: Delivery
    preset: Preset
    to: _Addressed


class Hooks(Tasking):
    # Those that somebody wanted to use and that have no secret.
    _closed: frozenset[str] = frozenset()

    async def deliver(self, name: str, variables: Mapping[str, str], headers: Headers, body: bytes) -> Row:
        """One delivery of a webhook. Raises `Unverified`; `variables` hold the secrets."""
        now = self.clock()
        proved = await self._proved(name, variables, headers, body, now)
        text, said = read_body(body)
        if is_trial(proved.preset, proved.delivery, said):
            return {**_answer([], []), "note": "nobody is told of a trial"}
        delivery = proved.delivery
        known = {"hook": name, "delivery": delivery.id, "event": delivery.event, "sent": delivery.sent}
        item = replace(
            _item(name, subject_of(name, proved.delivery, said), text),
            metadata=written_metadata({key: value for key, value in known.items() if value is not None}),
        )
        item = self._hidden(item)
        recorded, agents = await self._recorded(name, [(delivery.id, item)], [proved.to], now)
        if recorded[0].duplicate:
            await self.access.read(lambda store: _must_be_sent_anew(store, recorded[0].id, item.body, delivery))
        return _answer(recorded, agents)

    async def is_signed(self, name: str, variables: Mapping[str, str]) -> bool:
        """Whether there is a webhook of that name that a signature can open."""
        declared = await self.access.read(lambda store: _declared(store, name))
        return any(_secrets(each.hook, variables) for each in declared)

    async def take_events(
        self,
        caller: Caller | None,
        variables: Mapping[str, str],
        media: str,
        headers: Headers,
        body: bytes,
        agent: str | None = None,
    ) -> Row:
        """CloudEvents, from the operator or, without a caller, signed as a webhook is."""
        now = self.clock()
        if caller is not None:
            _must_be_operator(caller, "bring events")
            takers = await self.access.read(lambda store: _takers(store, agent))
            # Of a sender no name begins like that.
            to = [_Addressed((f"@{taker}",), (taker,)) for taker in takers]
        else:
            if is_binary(headers):
                raise Mistake(
                    "the attributes of an event in headers are signed by nobody",
                    "send it as application/cloudevents+json, or with the operator's token",
                )
            to = [(await self._proved(CLOUD_EVENTS, variables, headers, body, now)).to]
            if agent is not None:
                raise Mistake("whose a signed event is, is said by ON", "leave agent out")
        items = [(event.key, _event_item(event)) for event in read_events(media, headers, body)]
        items = [(key, self._hidden(item)) for key, item in items]
        if not items:
            return {**_answer([], []), "note": "the batch is empty"}
        return _answer(*await self._recorded(CLOUD_EVENTS, items, to, now, caller))

    async def hook_wake(
        self, caller: Caller, *, text: str, mode: str = NOW, agent: str | None = None, key: str | None = None
    ) -> Row:
        """A line for an agent's inbox, which rings now or waits for its next run."""
        _must_be_operator(caller, "use /hooks/wake")
        if not text.strip():
            raise Mistake("the text is empty", "say what has happened")
        text, key = self.redact(text), None if key is None else self.redact.name(key)
        now, sender = self.clock(), source_of(WAKE)
        name = agent or await self.access.read(_default)
        item = replace(
            _item(WAKE, first_line(text), readable(text, "the text")),
            agent=name,
            ring=Ring.news if mode == NOW else Ring.silent,
            once=False,
            dedupe=await self._key(caller, key),
        )
        wake = Wake(
            agent=name,
            cause=Cause.news,
            subject=Subject.inbox,
            requested_at=now,
            sender=sender,
            source=item.source,
        )
        answer = await self._asked(wake if mode == NOW else None, item, now, "hook_wake")
        return {"ok": True, "mode": mode, **reply(answer, caller), "agent": answer.agent or name}

    async def hook_agent(
        self,
        caller: Caller,
        *,
        message: str,
        name: str | None = None,
        agent: str | None = None,
        timeout: str | None = None,
        key: str | None = None,
    ) -> Row:
        """A turn of an agent by itself: a one-off, as `run`, but from outside."""
        _must_be_operator(caller, "use /hooks/agent")
        whom = agent or await self.access.read(_default)
        said: dict[str, Any] = {"agent": whom, "prompt": message, "title": name, "timeout": timeout, "key": key}
        said = redacted(said, self.redact)
        row = await self.one_off(caller, sender=source_of(AGENT), origin=Origin.external, act="hook_agent", **said)
        return {"ok": True, "runId": row["run_id"], **row}

    async def _proved(
        self, name: str, variables: Mapping[str, str], headers: Headers, body: bytes, now: datetime
    ) -> _Proved:
        """Several agents may name a webhook, each in its own way: it is for those whose way it proves."""
        declared = await self.access.read(lambda store: _declared(store, name))
        if not declared:
            raise Unknown(f"no webhook is called {name!r}: no agent has webhook://{name} in ON")
        opened = [(each, secrets) for each in declared if (secrets := _secrets(each.hook, variables))]
        if not opened:
            self._say_closed(name, declared)
            raise Forbidden(
                f"the webhook {name} is closed: it has no secret, or its variable is not set here",
                "its operator has to give it one",
            )
        proved: list[tuple[_Declared, Delivery]] = []
        refusal: Unverified | None = None
        for each, secrets in opened:
            try:
                proved.append((each, verify(each.hook.preset, secrets, headers, body, now)))
            except Unverified as error:
                refusal = refusal or error
        if not proved:
            raise refusal or Unverified("no signature matches")
        first, delivery = proved[0]
        scopes = tuple(dict.fromkeys(secret for each, _ in proved for secret in each.hook.secrets))
        addresses = tuple(dict.fromkeys(each.address for each, _ in proved))
        return _Proved(delivery, first.hook.preset, _Addressed(scopes, addresses))

    def _hidden(self, item: NewItem) -> NewItem:
        """Without secrets; its body is JSON, and stays that."""
        return redacted_item(replace(item, body=redacted_json(item.body, self.redact)), self.redact)

    def _say_closed(self, name: str, declared: Sequence[_Declared]) -> None:
        """To the operator, once, and by name: a stranger is not told where secrets are kept."""
        if name not in self._closed:
            self._closed |= {name}
            wanted = sorted({variable for each in declared for variable in each.hook.secrets})
            lack = f"{' and '.join(wanted)} is not set" if wanted else "ON names no secret for it"
            log.warning("the webhook %s is closed: %s", name, lack)

    async def _recorded(
        self,
        name: str,
        items: Sequence[tuple[str, NewItem]],
        to: Sequence[_Addressed],
        now: datetime,
        caller: Caller | None = None,
    ) -> tuple[list[Recorded], list[str]]:
        """Each, by its id, for all of them, or, where it was there before, nothing; and who has one of them now. Of a
        `caller` the events tell that it was they who brought it."""
        known = [(self.redact.name(id), item) for id, item in items]

        def write(store: Store) -> tuple[list[Recorded], list[str]]:
            recorded: list[Recorded] = []
            agents: dict[str, None] = {}
            for each in to:
                keyed = [([_key(name, scope, id) for scope in each.scopes], item) for id, item in known]
                told = _put(store, keyed, each.addresses, now)
                recorded += told
                agents.update(dict.fromkeys(_holders(store, [keys for keys, _ in keyed], told, each.addresses)))
            fresh = [told.id for told in recorded if not told.duplicate]
            if fresh and caller is not None:
                note_act(store, caller, "hook_events", now, item=fresh[0], items=len(fresh), agents=list(agents))
            return recorded, list(agents)

        return await self.access.write(write)


def _put(
    store: Store, items: Sequence[tuple[list[str], NewItem]], addresses: Sequence[str], now: datetime
) -> list[Recorded]:
    """Each known under one of its keys, or new, in their order; then what the new ones are to the other addresses."""
    known = store.keyed_items([key for keys, _ in items for key in keys])
    kept = [next((key for key in keys if key in known), keys[0]) for keys, _ in items]
    first = [replace(item, agent=addresses[0], dedupe=key) for key, (_, item) in zip(kept, items, strict=True)]
    recorded = store.record(first, now)
    fresh = [item for item, told in zip(first, recorded, strict=True) if not told.duplicate]
    others = [replace(item, agent=other, dedupe=f"{item.dedupe} {other}") for item in fresh for other in addresses[1:]]
    return [*recorded, *store.record(others, now)] if others else recorded


def _holders(
    store: Store, keys: Sequence[list[str]], recorded: Sequence[Recorded], addresses: Sequence[str]
) -> list[str]:
    """Who has them: what was there before may be somebody else's by now."""
    if not all(told.duplicate for told in recorded):
        return list(addresses)
    firsts = [store.item(told.id) for told in recorded]
    others = store.keyed_items([f"{key} {other}" for each in keys for key in each for other in addresses])
    held = {key.rpartition(" ")[2] for key in others}
    held |= {item.agent for item in firsts if item is not None and item.agent is not None}
    return sorted(held)


def hook_sources(store: Store) -> set[str]:
    """What can be paused of them, by name."""
    return {each.hook.source for each in _declared(store)}


def _declared(store: Store, name: str | None = None) -> list[_Declared]:
    found: dict[tuple[str, str], _Declared] = {}
    for agent in store.agents():
        for address in agent.events:
            try:
                hook = read_hook(address) if is_hook(address) else None
            except Mistake:
                # Declared before it had to be as it must be now.
                continue
            if hook is not None and (name is None or hook.name == name):
                found.setdefault((agent.address, address), _Declared(hook, agent.address))
    return list(found.values())


def _secrets(hook: Hook, variables: Mapping[str, str]) -> list[str]:
    return [value for name in hook.secrets if (value := variables.get(name))]


def _takers(store: Store, agent: str | None) -> tuple[str, ...]:
    """Whose an event is that the operator brings."""
    if agent is not None:
        return (agent,)
    declared = tuple(dict.fromkeys(each.address for each in _declared(store, CLOUD_EVENTS)))
    return declared or (_default(store),)


def _default(store: Store) -> str:
    """Whom something is for that names nobody: the only one, or the one called main."""
    names = sorted({agent.address for agent in store.agents()})
    if len(names) == 1:
        return names[0]
    if MAIN in names:
        return MAIN
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    raise Mistake(
        f"it is said to nobody, and there are {len(names)} agents" if names else "there is no agent yet",
        f"name one of them: {shown}" if names else "declare one in the fleet file",
    )


def _must_be_operator(caller: Caller, what: str) -> None:
    if not caller.is_operator:
        raise Forbidden(f"{caller.name} may not {what} in the course of a run: only the operator may")


def _must_be_sent_anew(store: Store, item: int, text: str, delivery: Delivery) -> None:
    """What is known may come again from a sender that had no answer, and then says when it tried again."""
    known = store.item(item)
    if known is not None and known.body != text:
        raise Conflict(
            f"this delivery came before with another body, as message {item}", "give each delivery an id of its own"
        )
    sent = json.loads(known.metadata).get("sent") if known is not None else None
    if delivery.sent is None or delivery.sent == sent:
        raise Conflict(
            f"this delivery was taken before, as message {item}", "there is nothing to do; to try again, sign it anew"
        )


def _item(name: str, subject: str, body: str) -> NewItem:
    return NewItem(
        kind=Kind.message,
        sender=source_of(name),
        origin=Origin.external,
        subject=readable(subject, "the subject"),
        body=readable(body, "the body"),
        ring=Ring.news,
        source=source_of(name),
        once=True,
    )


def _event_item(event: CloudEvent) -> NewItem:
    known = {"hook": CLOUD_EVENTS, "id": event.id, "source": event.source, "type": event.type}
    return replace(_item(CLOUD_EVENTS, event.title, event.text), metadata=written_metadata(known))


def _key(name: str, scope: str, id: str) -> str:
    """The keys of callers begin with a name, which has no blank, or with a role's."""
    return f"hook {name} {scope}:{id}"


def _answer(recorded: Sequence[Recorded], agents: Sequence[str]) -> Row:
    return {
        "ok": True,
        "id": recorded[0].id if recorded else None,
        "ids": [known.id for known in recorded],
        "duplicate": bool(recorded) and all(known.duplicate for known in recorded),
        "agents": list(agents),
    }
