"""Names that would mean two agents: an address, an agent and a replica never share one."""

from __future__ import annotations

from collections.abc import Callable

from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.names import LONGEST_NAME
from wakeful.fleet.tree import Block


def check_clashes(blocks: list[Block], replicas: Callable[[Block], int], notes: Notes, most: int) -> None:
    unique = {block.name.text: block for block in blocks}
    counts = {name: replicas(block) for name, block in unique.items()}
    total = sum(max(count, 1) for count in counts.values())
    if total > most:
        last = blocks[-1].name
        notes.error(last, f"the fleet would have {total} agents", f"keep it to {most}, or split the fleet")
        return
    for name, count in counts.items():
        block = unique[name]
        if len(f"{name}-{count}") > LONGEST_NAME and count:
            notes.error(block.name, f"the replicas of {name} have names that are too long", "shorten its name")
        for number in range(1, count + 1):
            other = unique.get(f"{name}-{number}")
            if other is None:
                continue
            later, earlier = (other, block) if other.name.line > block.name.line else (block, other)
            notes.error(
                later.name,
                f"{other.name.text} is an agent and also replica {number} of {name} (line {earlier.name.line})",
                "rename one of them",
            )
