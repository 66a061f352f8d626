"""Every malformed file is refused with its place, its reason and what to do, and with nothing else."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from wakeful.cli import main

FOLDER = Path(__file__).parent / "malformed"
LINE = re.compile(r"(?P<place>[^:]+:\d+:\d+): (?P<warning>warning: )?(?P<reason>.+) \((?P<remedy>.+)\)")


def expected() -> dict[str, list[tuple[str, str]]]:
    rows = defaultdict(list)
    for line in (FOLDER / "EXPECTED").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, place, fragment = line.split(" | ", 2)
            rows[name].append((place if place.count(":") == 2 else f"{name}:{place}", fragment))
    return rows


EXPECTED = expected()


def test_every_malformed_file_has_its_expectation_and_there_are_many():
    names = {path.name for path in FOLDER.iterdir() if path.suffix in (".org", ".yml")}
    assert names == set(EXPECTED)
    assert len(names) >= 70


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_malformed_file_is_refused_with_every_mistake_it_has_and_no_other(name, monkeypatch):
    monkeypatch.chdir(FOLDER)
    monkeypatch.delenv("WAKEFUL_RUN", raising=False)
    result = CliRunner().invoke(main, ["check", name])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    lines = [LINE.fullmatch(line) for line in result.stdout.splitlines()]
    assert None not in lines, result.stdout
    errors = [(line["place"], line["reason"]) for line in lines if line and not line["warning"]]
    assert sorted(place for place, _ in errors) == sorted(place for place, _ in EXPECTED[name])
    for place, fragment in EXPECTED[name]:
        assert any(found == place and fragment in reason for found, reason in errors), (place, fragment)
