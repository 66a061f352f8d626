"""moss: reads what has come; with nothing to read it says NO-WORK and is left to sleep longer."""

import json
import os
from pathlib import Path

briefing = json.loads(Path(os.environ["WAKEFUL_BRIEFING"]).read_text(encoding="utf-8"))
inbox = briefing["inbox"]
if not inbox and os.environ["WAKEFUL_CAUSE"] == "timer":
    print("NO-WORK: nothing to read")
else:
    print(f"read {len(inbox)} message(s): " + "; ".join(item["subject"] or item["body"] for item in inbox))
