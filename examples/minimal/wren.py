"""A standing agent in ten lines: where this one counts words, yours would ask a model."""

from pathlib import Path

todo = sorted(Path("todo").glob("*.txt")) if Path("todo").is_dir() else []
if not todo:
    print("NO-WORK: nothing in todo")
for file in todo:
    words = len(file.read_text(encoding="utf-8").split())
    file.rename(file.with_suffix(".done"))
    print(f"{file.name}: {words} words")
