"""How many tasks one shift takes.

Laws:
- A shift is for what is done in a moment: it takes as many as the last one would have done within `LONGEST_SHIFT`, and
  few while nobody knows how long they take. What takes minutes is taken one by one, for whoever is free.
- It leaves their share to those who are idle and have the same queue.
"""

from __future__ import annotations

from datetime import timedelta

LONGEST_SHIFT = timedelta(seconds=2)
FIRST_SHIFT = 4


def shift_size(most: int, waiting: int, idle: int, tasks: int, took: timedelta | None) -> int:
    """Of `waiting` tasks, for one of `idle` agents beside it; its last shift had so many `tasks` and `took` so long."""
    if took is None or tasks <= 0:
        within = FIRST_SHIFT
    elif took <= timedelta():
        within = most
    else:
        within = int(LONGEST_SHIFT * tasks / took)
    share = -(-waiting // (idle + 1))
    return max(1, min(most, within, share))
