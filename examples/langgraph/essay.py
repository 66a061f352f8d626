"""sage: writes essays as a graph does: gather, write, review, and write again until the review is content.

The task's number is the graph's thread. An attempt that finds the thread begun goes on with it: what was checkpointed
is not done again. Where this one waits and joins words, yours would ask a model.
"""

import os
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from wakeful import Run


class Essay(TypedDict, total=False):
    task: int
    topic: str
    seconds: float
    notes: list[str]
    draft: str
    version: int


def visit(node: str, essay: Essay) -> None:
    """A sign of each execution, for whoever wants to see what a crash made it do again."""
    with Path("visited").open("a", encoding="utf-8") as file:
        file.write(f"{essay['task']} {node} {os.getpid()}\n")


def gather(essay: Essay) -> Essay:
    visit("gather", essay)
    return {"notes": [f"{essay['topic']} {what}" for what in ("wait", "keep order", "forget nothing")], "version": 0}


def write(essay: Essay) -> Essay:
    version = essay["version"] + 1
    visit(f"write-{version}", essay)
    time.sleep(essay["seconds"])
    return {"draft": "; ".join(essay["notes"][: version + 1]), "version": version}


def review(essay: Essay) -> Essay:
    visit(f"review-{essay['version']}", essay)
    return {}


def verdict(essay: Essay) -> str:
    return END if all(note in essay["draft"] for note in essay["notes"]) else "write"


builder = StateGraph(Essay)
for node in (gather, write, review):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "gather")
builder.add_edge("gather", "write")
builder.add_edge("write", "review")
builder.add_conditional_edges("review", verdict, ["write", END])


def handle(run: Run) -> dict[str, Any] | str:
    if run.task is None:
        return "NO-WORK: nothing to write about"
    thread = {"configurable": {"thread_id": str(run.task.id)}}
    # Opened in the call: a connection that is made at import does not survive the fork between worker and handler.
    with SqliteSaver.from_conn_string("threads.db") as checkpoints:
        graph = builder.compile(checkpointer=checkpoints)
        begun = graph.get_state(thread)
        given: Essay | None = None
        if not begun.values:
            asked = run.task.payload
            given = {"task": run.task.id, "topic": asked["topic"], "seconds": asked.get("seconds", 0)}
        elif not begun.next:
            # The graph had reached its end, and the crash came before the task's end was recorded.
            return told(begun.values)
        # "sync": the checkpoint of a node is on the disk before the next node begins.
        return told(graph.invoke(given, thread, durability="sync"))


def told(essay: Essay) -> dict[str, Any]:
    return {"draft": essay["draft"], "version": essay["version"]}
