"""A task's payload says which folder; what is printed is the task's result. Where this counts, yours would ask a model.

The same task by hand, once: wakeful task add "Count the words" --role counting --payload '{"folder": "texts"}'
or as a file: echo '{"title": "Count", "role": "counting", "payload": {"folder": "texts"}}' > .wakeful/drop/count.json
"""

import json
import os
from pathlib import Path

briefing = json.loads(Path(os.environ["WAKEFUL_BRIEFING"]).read_text(encoding="utf-8"))
payload = briefing["tasks"][0]["payload"]
longest = payload.get("longest")
total = 0
for file in sorted(Path(payload["folder"]).glob("*.txt")):
    words = len(file.read_text(encoding="utf-8").split())
    total += words
    if longest is None or words > longest:
        print(f"{file.name}: {words} words")
print(f"{total} words in all")
