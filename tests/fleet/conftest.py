"""A folder for the files of one test, and short ways to load what is written there."""

from pathlib import Path

import pytest

from wakeful.fleet import Loaded, check_file, load_fleet


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def org(self, text: str, **options) -> Loaded:
        return load_fleet(self.write("fleet.org", text), **options)

    def yml(self, text: str, **options) -> Loaded:
        return load_fleet(self.write("fleet.yml", text), **options)

    def agent(self, *properties: str, head: str = "#+RUN: true\n"):
        """The one agent declared by those properties; the file must be good."""
        drawer = "".join(f"{line}\n" for line in properties)
        loaded = self.org(f"{head}* wren\n:PROPERTIES:\n{drawer}:END:\n")
        assert loaded.fleet is not None, [str(diagnostic) for diagnostic in loaded.diagnostics]
        return loaded.fleet.agents[0]

    def day(self, text: str) -> Loaded:
        return check_file(self.write("lifecycle.org", text))


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Desk:
    monkeypatch.delenv("WAKEFUL_RUN", raising=False)
    return Desk(tmp_path)


@pytest.fixture
def said():
    """What a loaded file was told, one line each, without the file's name."""

    def lines(loaded: Loaded) -> list[str]:
        return [str(diagnostic).removeprefix(f"{diagnostic.file}:") for diagnostic in loaded.diagnostics]

    return lines
