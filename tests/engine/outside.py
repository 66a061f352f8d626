"""What lies outside of the fleet on a stage: a folder into which things are put, a list that a program prints."""

import json

from tests.engine.stage import heading


class Box:
    """A folder of the stage, into which things are put whole."""

    def __init__(self, stage, name="inbox/moss"):
        self.stage = stage
        self.folder = stage.folder / name
        self._beside = stage.folder / "unfinished"

    def make(self):
        self.folder.mkdir(parents=True)
        return self

    def put(self, name, words="words"):
        self._beside.write_text(words)
        self._beside.rename(self.folder / name)


class Board:
    """A list that a program of the stage prints."""

    address = "snapshot+exec:pending#every=1m"

    def __init__(self, stage):
        self.stage = stage
        self.tasks = {}
        program = stage.folder / "pending"
        program.write_text("#!/bin/sh\nexec cat list.json\n")
        program.chmod(0o755)
        self.print()

    def put(self, id, **more):
        self.tasks[id] = {"task_id": id, "title": id, "status": "assigned", **more}
        self.print()

    def print(self):
        (self.stage.folder / "list.json").write_text(json.dumps(list(self.tasks.values())))

    def away(self):
        (self.stage.folder / "list.json").unlink()


def moss(**keys):
    return heading("moss", **{"inbox": "inbox/moss", **keys})


def shown(stage):
    """What each run was shown, by name, in order."""
    return [[item.external_id for item in each.order.items] for each in stage.carrier.runner.guardians.values()]


def causes(stage):
    return [seen.cause for seen in stage.seen]


def told(stage, *kinds):
    return [event.kind.value for event in stage.store.events(limit=10_000) if event.kind.value in kinds]


async def at_work(stage, *agents, **keys):
    stage.declare(*(agents or [moss()]), grace="0s", **keys)
    return await stage.up()
