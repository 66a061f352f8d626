"""wren: writes a line in each beat; what is written is handed to the editor at once."""

import json
import os
import subprocess
from pathlib import Path

state, run = os.environ["WAKEFUL_STATE"], os.environ["WAKEFUL_RUN_ID"]
with Path("draft.txt").open("a", encoding="utf-8") as draft:
    draft.write(f"{state} in run {run}\n")
if state == "write":
    # The reply says what came of it: admitted, deferred, or refused with the guard and its numbers.
    wake = ["wakeful", "wake", "moss", "a new line is there", "--reason", "critical_finding"]
    asked = subprocess.run(wake, capture_output=True, text=True)
    print(asked.stdout.strip() or asked.stderr.strip())
Path(os.environ["WAKEFUL_RESULT"]).write_text(
    json.dumps({"outcome": "done", "summary": f"{state}: one line more", "usage": {"tokens": 120, "usd": 0.002}})
)
