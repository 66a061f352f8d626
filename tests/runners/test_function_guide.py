"""What the guide to Python handlers shows works as it stands there."""

import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "python-handlers.md"


def test_the_handler_of_the_guide_can_be_tried_out_as_the_guide_says():
    handler, trial = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(handler, names)
    exec(trial, names)
    assert names["proof"](names["Run"].for_test()).startswith("NO-WORK")
    empty = names["Run"].for_test({"id": 8, "body": '{"pages": []}'})
    assert names["proof"](empty).outcome == "no_work"
