"""The agents of the browser's fleet: plain programs, each with a habit that is named by its first argument."""

import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

# Everything that a page could take for more than text: markup, the end of a script, a terminal's colours and title,
# a turned direction, a link that would run.
HOSTILE = (
    "<img src=x onerror=\"window.harmed='image'\">"
    "</script><script>window.harmed='script'</script>"
    "<svg/onload=\"window.harmed='svg'\"> <u>under</u> &lt;i&gt; "
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 "
    "\u202egnp.exe\u202c "
    "javascript:window.harmed='link'"
)


def writes(state: str) -> None:
    """A line more; whoever edits is told at once."""
    print(f"{state}: a line more")
    if state == "write":
        command = ["wakeful", "wake", "moss", "a new line is there", "--reason", "critical_finding"]
        asked = subprocess.run(command, capture_output=True, text=True)
        print(asked.stdout.strip() or asked.stderr.strip())
    tell("done", f"{state}: one line more", usd=0.031, tokens=4_100)


def works_long() -> None:
    """Until it is ended, with a word now and then."""
    between = threading.Event()
    for number in itertools.count(1):
        print(f"page {number} of the archive is read", flush=True)
        between.wait(0.5)


def files() -> None:
    """A task: some pages are torn."""
    task = json.loads(Path(os.environ["WAKEFUL_BRIEFING"]).read_text())["tasks"][0]
    if "torn" in task["title"]:
        sys.exit("the page is torn")
    tell("done", f"filed: {task['title']}", usd=0.002, tokens=300)


def harms() -> None:
    """Ill words wherever words are kept."""
    print(HOSTILE, flush=True)
    print(HOSTILE, file=sys.stderr, flush=True)
    subprocess.run(["wakeful", "send", "moss", HOSTILE, "--subject", HOSTILE], capture_output=True)
    subprocess.run(["wakeful", "task", "add", HOSTILE, "--role", "filing"], capture_output=True)
    subprocess.run(["wakeful", "wake", "moss", HOSTILE, "--reason", "blocker"], capture_output=True)
    tell("done", HOSTILE)


def tell(outcome: str, summary: str, usd: float = 0.0, tokens: int = 0) -> None:
    result = {"outcome": outcome, "summary": summary, "usage": {"usd": usd, "tokens": tokens}}
    Path(os.environ["WAKEFUL_RESULT"]).write_text(json.dumps(result))


def main(habit: str) -> None:
    if habit == "writes":
        writes(os.environ["WAKEFUL_STATE"])
    elif habit == "works-long":
        works_long()
    elif habit == "files":
        files()
    elif habit == "harms":
        harms()
    elif habit == "fails":
        sys.exit("the printer is on fire")
    elif habit == "finds-nothing":
        print("NO-WORK: nobody wrote")
    else:
        tell("done", "read and answered", usd=0.012, tokens=1_500)


if __name__ == "__main__":
    main(sys.argv[1])
