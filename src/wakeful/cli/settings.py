"""`wakeful set`: the limits of a live agent, shown and changed without a restart."""

from __future__ import annotations

from typing import Any

import click

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed


@click.command(name="set")
@click.argument("agent")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@as_json
@placed
def change(place: Place, agent: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Change limits of AGENT, such as cooldown=10m; KEY= takes a change back. Without any, show them."""
    wanted: dict[str, str] = {}
    for key, value in map(_pair, settings):
        if key in wanted:
            raise Complaint(f"{one_line(key)} is said twice", "say each setting once", BAD)
        wanted[key] = value
    answer = ask(place, "set", agent=agent, settings=wanted) if wanted else ask(place, "settings", agent=agent)
    if as_json:
        say_json(answer)
        return
    width = max((len(name) for name in answer["settings"]), default=0)
    for name, setting in answer["settings"].items():
        say(f"{one_line(name):{width}}  {_value(setting['value'])}  ({_origin(setting)})")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise Complaint(f"expected KEY=VALUE, found {one_line(text)!r}", "write it as cooldown=10m", BAD)
    return key.strip(), value.strip()


def _origin(setting: dict[str, Any]) -> str:
    replaced = setting.get("replaces")
    if not replaced:
        return one_line(setting["origin"])
    who = "the default is" if replaced["origin"] == "default" else f"the {one_line(replaced['origin'])} says"
    return f"{one_line(setting['origin'])}, {who} {_value(replaced['value'])}"


def _value(value: Any) -> str:
    return "-" if value is None or value == "" or value == [] else one_line(value)
