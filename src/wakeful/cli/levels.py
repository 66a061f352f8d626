"""How bad a finding of the doctor is, and what a look gives: the level, what was found, what to do."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    ok = "ok"
    warn = "warn"
    fail = "fail"


Found = tuple[Level, str] | tuple[Level, str, str]
