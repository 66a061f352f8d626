"""From the tree of either spelling to one draft: which keys are declared, by the fleet, by each
agent and by each recurring task.

Laws: an unknown key is an error with the nearest known one; a key in the wrong place is told where it belongs;
a key of another system that means nothing here is accepted with a warning.
"""

from __future__ import annotations

from wakeful.core.errors import Mistake
from wakeful.core.names import read_name
from wakeful.core.wording import quoted
from wakeful.fleet import pulse
from wakeful.fleet.diagnostics import Notes, Place
from wakeful.fleet.keys import (
    ADVISORY,
    AGENT_KEYS,
    BY_NAME,
    FLEET_ONLY,
    LIFECYCLE_KEYWORDS,
    MARK,
    ORG_OWN,
    STATE_KEYS,
    TASK_BY_NAME,
    TASK_ONLY,
)
from wakeful.fleet.org import Outline
from wakeful.fleet.tree import (
    Block,
    Draft,
    Entries,
    Entry,
    Mapping,
    Pair,
    Raw,
    Scalar,
    canonical,
    described,
    distinct,
    printed_key,
)

# Who sends tasks and is no agent: what an agent of that name sends could not be told from theirs.
SENDERS = {"operator": "a person", "schedule": "a schedule", "drop": "the drop folder"}


def from_outline(outline: Outline, notes: Notes) -> Draft:
    keywords = [pair for pair in outline.keywords if canonical(pair[0].text) not in ORG_OWN]
    draft = Draft(fleet=_gather(keywords, notes, fleet=True, yaml=False))
    for section in outline.sections:
        if section.recurs:
            _add_task(draft, section.title, section.pairs, notes, yaml=False, text=section.text)
        else:
            _add(draft, section.title, section.pairs, notes, yaml=False)
    _check_names(draft, notes)
    if not draft.agents:
        notes.error(draft.place, "the fleet has no agents", "add a heading such as * wren")
    return draft


def from_mapping(mapping: Mapping, notes: Notes, folder: str) -> Draft:
    """`folder` names the one agent of a pulse-driven `config.yml`, which has no `agents:`."""
    pairs = [pair for pair in mapping.pairs if canonical(pair[0].text) not in ("AGENTS", "RECURRING")]
    agents = _below("agents", mapping, notes)
    draft = Draft(fleet=_gather(pairs, notes, fleet=True, yaml=True), place=Place(mapping.line, mapping.column))
    if agents is not None:
        _agents(draft, agents, notes)
    elif any(pulse.is_pulse(canonical(key.text)) for key, _ in pairs):
        _lone_agent(draft, mapping, folder, notes)
    else:
        notes.error(draft.place, "the fleet has no agents", "add agents: with one name below it")
    recurring = _below("recurring", mapping, notes)
    if recurring is not None:
        _recurring(draft, recurring, notes)
    _check_names(draft, notes)
    return draft


def _below(name: str, mapping: Mapping, notes: Notes) -> Pair | None:
    found = [pair for pair in mapping.pairs if canonical(pair[0].text) == name.upper()]
    for key, _ in found[1:]:
        notes.error(key, f"{name} stands twice, first on line {found[0][0].line}", "keep one of them")
    return found[0] if found else None


def _by_name(pair: Pair, what: str, notes: Notes) -> Mapping | None:
    key, value = pair
    if isinstance(value, Mapping):
        return value
    nothing = isinstance(value, Scalar) and value.empty
    found = "nothing" if nothing else described(value)
    notes.error(
        key if nothing else value,
        f"{key.text}: expected a mapping by name, found {found}",
        f"write each {what} as name: and its keys below it",
    )
    return None


def _recurring(draft: Draft, pair: Pair, notes: Notes) -> None:
    value = _by_name(pair, "task", notes)
    for name, body in value.pairs if value is not None else ():
        if isinstance(body, Mapping):
            _add_task(draft, name, body.pairs, notes, yaml=True)
        else:
            notes.error(
                body,
                f"{quoted(name.text)}: expected the keys of a recurring task, found {described(body)}",
                "write key: value",
            )


def _agents(draft: Draft, pair: Pair, notes: Notes) -> None:
    key = pair[0]
    value = _by_name(pair, "agent", notes)
    if value is None:
        return
    if not value.pairs:
        notes.error(key, "the fleet has no agents", "add one name below agents:")
    for name, body in value.pairs:
        if isinstance(body, Mapping):
            _add(draft, name, body.pairs, notes, yaml=True)
        elif isinstance(body, Scalar) and body.empty:
            _add(draft, name, (), notes, yaml=True)
        else:
            notes.error(
                body,
                f"{quoted(name.text)}: expected the keys of an agent, found {described(body)}",
                "write key: value",
            )


def _lone_agent(draft: Draft, mapping: Mapping, folder: str, notes: Notes) -> None:
    name = Scalar(folder.lower(), mapping.line, mapping.column)
    _add(draft, name, (), notes, yaml=True)
    named = {canonical(key.text) for key, _ in mapping.pairs}
    if not named & {"PULSE-INTERVAL-MINUTES", "INTERVAL", "SCHEDULE"}:
        notes.warn(
            draft.place,
            "no pulse_interval_minutes: the default here is one hour, not 30 minutes",
            "write pulse_interval_minutes: 30",
        )


def _add(draft: Draft, name: Scalar, pairs: list[Pair] | tuple[Pair, ...], notes: Notes, *, yaml: bool) -> None:
    entries = _gather(pairs, notes, fleet=False, yaml=yaml)
    try:
        read_name(name.text, "an agent")
    except Mistake as mistake:
        notes.mistake(name, mistake)
    if name.text in SENDERS:
        remedy = f"give the agent another name, such as {name.text}-agent"
        reason = (
            f"an agent cannot be called {quoted(name.text)}, which is who the tasks of {SENDERS[name.text]} are from"
        )
        notes.error(name, reason, remedy)
    draft.agents.append(Block(name, entries))


def _add_task(
    draft: Draft, name: Scalar, pairs: list[Pair] | tuple[Pair, ...], notes: Notes, *, yaml: bool, text: str = ""
) -> None:
    entries: Entries = {}
    for key_name, key, value in distinct(pairs, notes):
        if key_name in TASK_BY_NAME:
            entries[key_name] = Entry(key_name, key, value)
            continue
        written = printed_key(key)
        if key_name in BY_NAME:
            whom = "the fleet" if key_name in FLEET_ONLY else "an agent"
            notes.error(key, f"{written} belongs to {whom}, not to a recurring task", "remove it")
            continue
        near = notes.nearest(key_name, TASK_BY_NAME)
        spelled = near.lower().replace("-", "_") if near and yaml else near
        remedy = f"did you mean {spelled}?" if near else f"known are {', '.join(TASK_BY_NAME)}"
        notes.error(key, f"unknown key {written} of a recurring task", remedy)
    try:
        read_name(name.text, "a recurring task")
    except Mistake as mistake:
        notes.mistake(name, mistake)
    draft.recurring.append(Block(name, entries, text))


def _check_names(draft: Draft, notes: Notes) -> None:
    """Agents and recurring tasks share the headings of one file, and so their names."""
    seen: dict[str, int] = {}
    tasks = {id(block) for block in draft.recurring}
    for block in sorted([*draft.agents, *draft.recurring], key=lambda block: (block.name.line, block.name.column)):
        name = block.name.text.lower()
        if name in seen and name:
            what = "recurring task" if id(block) in tasks else "agent"
            notes.error(
                block.name,
                f"a second {what} {quoted(name)}, first on line {seen[name]}",
                "give it another name",
            )
        seen.setdefault(name, block.name.line)


def _gather(pairs: list[Pair] | tuple[Pair, ...], notes: Notes, *, fleet: bool, yaml: bool) -> Entries:
    entries: Entries = {}
    for name, key, value in distinct(pairs, notes):
        if name in BY_NAME and (fleet or name not in FLEET_ONLY):
            found = [Entry(name, key, value)]
        elif yaml and name in pulse.PULSE:
            found = list(pulse.translated(name, key, value, notes, fleet=fleet))
        else:
            _strange(name, key, value, notes, fleet=fleet, yaml=yaml)
            continue
        for entry in found:
            if earlier := entries.get(entry.name):
                said = f"{printed_key(earlier.key)} says on line {earlier.key.line}"
                notes.error(entry.key, f"{printed_key(entry.key)} says again what {said}", "keep one of them")
            entries[entry.name] = entry
    return entries


def _strange(name: str, key: Scalar, value: Raw, notes: Notes, *, fleet: bool, yaml: bool) -> None:
    written = printed_key(key)
    if name in ADVISORY:
        notes.warn(key, ADVISORY[name], "write INTERVAL, or remove it")
    elif yaml and name in pulse.UNUSED:
        notes.warn(key, f"{written} is not used: {pulse.UNUSED[name]}", "it may stay")
    elif name in FLEET_ONLY:
        place = "at the top of the file" if yaml else f"as #+{name}: above the first heading"
        notes.error(key, f"{written} belongs to the fleet, not to an agent", f"write it {place}")
    elif name in STATE_KEYS or name in LIFECYCLE_KEYWORDS:
        notes.error(key, f"{written} belongs to a lifecycle, not to a fleet", "move it to the file named by LIFECYCLE")
    elif name in TASK_ONLY and not fleet:
        how = "write it below recurring:" if yaml else f"add :{MARK}: to make this one"
        notes.error(key, f"{written} belongs to a recurring task, not to an agent", f"{how}, or remove it")
    else:
        known = [
            *(BY_NAME if fleet else AGENT_KEYS),
            *(pulse.PULSE if yaml else ()),
            *(["AGENTS", "RECURRING"] if yaml and fleet else []),
        ]
        near = notes.nearest(name, known)
        spelled = near.lower().replace("-", "_") if near and yaml else near
        remedy = f"did you mean {spelled}?" if near else "see the keys in docs/reference/fleet.md"
        notes.error(key, f"unknown key {written}", remedy)
