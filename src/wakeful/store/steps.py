"""Checkpoints of a task, or of a held beat; cleared when that settles."""

from __future__ import annotations


def task_subject(task: int) -> str:
    return f"task:{task}"


def beat_subject(agent: str, beat: int) -> str:
    return f"beat:{agent}:{beat}"
