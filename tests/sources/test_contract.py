"""The contract of sources, over real files, real programs and a real server."""

from pathlib import Path

from tests.sources.pendings import Board, Files, Printed, Served
from wakeful.testing.contracts.source import SourceContract


class TestDirectory(SourceContract):
    def make_pending(self, tmp_path: Path) -> Files:
        return Files(tmp_path / "inbox")


class TestBoard(SourceContract):
    def make_pending(self, tmp_path: Path) -> Board:
        return Board(tmp_path / "desk")


class TestProgram(SourceContract):
    def make_pending(self, tmp_path: Path) -> Printed:
        return Printed(tmp_path)


class TestUrl(SourceContract):
    def make_pending(self, tmp_path: Path) -> Served:
        return Served()
