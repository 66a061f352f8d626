"""Times, durations and states in plain words. `now` is an argument; times are shown in the reader's own zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from wakeful.core.durations import lasting as lasting

BADLY = ("failed", "killed")
CAUSES = ("timer", "operator", "task", "peer", "news")
OUTCOMES = ("done", "no_work", "failed", "killed")


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def clock(text: str | None, now: datetime) -> str:
    """`14:05` today, `Tue 14:05` within the week, else with the date."""
    if text is None:
        return "-"
    at, here = read_time(text).astimezone(), now.astimezone()
    if at.date() == here.date():
        return f"{at:%H:%M}" if abs(at - here) >= timedelta(minutes=2) else f"{at:%H:%M:%S}"
    if abs(at - here) < timedelta(days=6):
        return f"{at:%a %H:%M}"
    return f"{at:%Y-%m-%d %H:%M}"


def until(text: str, now: datetime) -> str:
    """`in 4m`, or `now` when it has come."""
    left = ceil((read_time(text) - now).total_seconds())
    return f"in {lasting(left)}" if left > 0 else "now"


def ago(text: str, now: datetime) -> str:
    return f"{lasting(now - read_time(text))} ago"


def numbers(found: dict[str, object]) -> str:
    """`used 5, limit 5`; of money `unit usd, spent $0.90, limit $1.00`."""
    money = str(found.get("unit", "")).endswith("usd")
    return ", ".join(f"{name} {_number(value, money)}" for name, value in found.items())


def _number(value: object, money: bool) -> str:
    if not isinstance(value, int | float):
        return str(value)
    if money:
        return f"${value:.2f}"
    return str(value) if isinstance(value, int) else f"{value:.3g}" if abs(value) < 1_000 else f"{value:.0f}"


def spent_words(spent: dict[str, Any] | None) -> str:
    """`spent today $0.42 of $5.00, 12,000 tokens`; nothing where nothing was spent and nothing is limited."""
    if not spent or not any(spent.values()):
        return ""
    usd, tokens = f"${spent['usd']:.2f}", f"{spent['tokens']:,}"
    usd += f" of ${spent['of_usd']:.2f}" if spent["of_usd"] is not None else ""
    tokens += f" of {spent['of_tokens']:,}" if spent["of_tokens"] is not None else ""
    return f"spent today {usd}, {tokens} tokens"


def told_of(run: dict[str, Any]) -> str:
    """What a run says of itself and why it ended as it did; of one that did not end well the reason stands first."""
    summary, reason = run.get("summary") or "", run.get("reason") or ""
    both = (reason, summary) if run.get("outcome") in BADLY else (summary, reason)
    return "; ".join(dict.fromkeys(part for part in both if part))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def up_words(names: list[str]) -> str:
    """`2 nodes are up (barn-x9k2, desk-ab12)`."""
    if not names:
        return "no node is up"
    shown = ", ".join([*names[:5], "…"] if len(names) > 5 else names)
    return f"{counted(len(names), 'node')} {'is' if len(names) == 1 else 'are'} up ({shown})"
