"""A fleet as a service of systemd: what is written, what systemd is asked, and that what it would start does start."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.office import wakeful
from wakeful.cli.units import Unit, unit_text
from wakeful.core.errors import Mistake

FLEET = "#+TITLE: night desk\n#+RUN: true\n* wren\n:PROPERTIES:\n:ENV: MODEL_KEY\n:ON: webhook://git?secret=HOOK_KEY\n:END:\n"
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
broken=$(cat "$(dirname "$0")/broken" 2>/dev/null || echo nothing)
case "$*" in *"$broken"*) echo "Failed to connect to bus" >&2; exit 1;; esac
"""


class Machine:
    """A folder of a fleet, and somebody who answers for systemd."""

    def __init__(self, folder: Path, fleet: Path) -> None:
        self.programs, self.settings, self.fleet = folder / "bin", folder / "settings", fleet
        self.programs.mkdir()
        self.fleet.mkdir(exist_ok=True)
        (self.fleet / "fleet.org").write_text(FLEET)
        (self.programs / "systemctl").write_text(SYSTEMCTL)
        (self.programs / "systemctl").chmod(0o755)

    def say(self, *words: str, **environment: str):
        path = f"{self.programs}:{os.environ['PATH']}"
        told = {"PATH": path, "XDG_CONFIG_HOME": str(self.settings), **environment}
        return wakeful("service", *words, "--fleet", str(self.fleet / "fleet.org"), **told)

    def asked(self) -> list[str]:
        file = self.programs / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def units(self) -> list[Path]:
        return sorted(self.settings.rglob("*.service"))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, tmp_path / "night desk")


def settings(unit: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and line[0] != "#")


def words(line: str) -> list[str]:
    """As systemd reads them."""
    found = re.findall(r'"((?:\\.|[^"\\])*)"', line)
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$").replace("%%", "%") for word in found]


def test_the_unit_is_written_and_the_service_begun(machine):
    result = machine.say("install")
    assert (result.exit_code, result.stderr) == (0, "")
    (unit,) = machine.units()
    assert unit == machine.settings / "systemd/user/wakeful-night-desk.service"
    assert machine.asked() == [
        "--user daemon-reload",
        "--user enable wakeful-night-desk.service",
        "--user restart wakeful-night-desk.service",
    ]
    told = settings(unit)
    assert (told["Description"], told["WorkingDirectory"]) == ("wakeful: night desk", str(machine.fleet))
    # Runs outlive the engine, which may make control groups for them.
    assert (told["KillMode"], told["Delegate"], told["Restart"]) == ("process", "yes", "always")
    assert "put HOOK_KEY, MODEL_KEY into " in result.stdout
    assert told["EnvironmentFile"] == f"-{machine.settings}/wakeful/night-desk.env"


@pytest.mark.parametrize("name", ["desk", "night desk", 'a "b" $HOME %h \\x'])
def test_what_systemd_would_start_is_an_engine_that_comes_up(tmp_path, name):
    machine = Machine(tmp_path, tmp_path / name)
    assert machine.say("install", "--port", "0").exit_code == 0
    (unit,) = machine.units()
    told = settings(unit)
    (path,) = words(told["Environment"])
    folder = told["WorkingDirectory"].replace("%%", "%")
    environment = dict([path.split("=", 1)])
    with subprocess.Popen(words(told["ExecStart"]), cwd=folder, env=environment, stderr=subprocess.PIPE) as engine:
        try:
            ready = json.loads(next(line for line in engine.stderr if b'"ready"' in line))
            assert ready["data"] == str(machine.fleet / ".wakeful")
            assert subprocess.run(words(told["ExecReload"]), env=environment, capture_output=True).returncode == 0
        finally:
            engine.send_signal(signal.SIGTERM)
            engine.stderr.read()
    assert engine.returncode == 0


def test_said_again_it_is_brought_up_to_date(machine):
    machine.say("install")
    assert machine.say("install", "--port", "7799", "--run", "claude -p").exit_code == 0
    (unit,) = machine.units()
    assert words(settings(unit)["ExecStart"])[-2:] == ["--port=7799", "--run=claude -p"]


def test_it_can_be_looked_at_before_anything_is_done(machine):
    result = machine.say("install", "--print")
    assert "[Service]" in result.stdout
    assert (machine.asked(), machine.units()) == ([], [])


def test_it_can_be_left_to_the_operator_to_start_it(machine):
    result = machine.say("install", "--no-start")
    assert "systemctl --user enable --now wakeful-night-desk.service" in result.stdout
    assert (machine.asked(), len(machine.units())) == ([], 1)


def test_what_is_another_fleets_or_nobodys_we_know_is_not_touched(machine, tmp_path):
    machine.say("install", "--name", "desk")
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "desk"
    other.mkdir()
    (other / "fleet.org").write_text(FLEET)
    machine.fleet = other
    (unit,) = machine.units()
    for before, reason in ((unit.read_text(), "is the service of"), ("[Service]\n", "is not ours")):
        unit.write_text(before)
        for command in ("install", "uninstall"):
            result = machine.say(command)
            assert result.exit_code == 1
            assert reason in result.stderr and "choose another --name" in result.stderr
            assert unit.read_text() == before


def test_a_systemd_that_does_not_answer_is_told_with_what_is_left_to_do(machine):
    (machine.programs / "broken").write_text("enable")
    result = machine.say("install")
    assert result.exit_code == 1
    assert "Failed to connect to bus (the unit is " in result.stderr
    result = machine.say("install", PATH="/nowhere")
    assert result.exit_code == 1
    assert "when it does: systemctl --user daemon-reload" in result.stderr


def test_uninstalled_it_is_stopped_and_gone_and_the_fleet_stays(machine):
    machine.say("install")
    result = machine.say("uninstall")
    assert (result.exit_code, machine.units()) == (0, [])
    assert machine.asked()[-2:] == ["--user disable --now wakeful-night-desk.service", "--user daemon-reload"]
    assert (machine.fleet / "fleet.org").exists()
    assert machine.say("uninstall").exit_code == 1


def test_a_fleet_that_cannot_be_used_becomes_no_service(machine):
    (machine.fleet / "fleet.org").write_text("* wren\n:PROPERTIES:\n:INTERVAL: 10\n:END:\n")
    result = machine.say("install")
    assert (result.exit_code, machine.units()) == (2, [])
    assert "see: wakeful check" in result.stderr


def test_a_service_of_the_machine_is_for_root_and_runs_as_whoever_owns_the_fleet(machine, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert machine.say("install", "--system").exit_code == 1
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    text = machine.say("install", "--system", "--print", "--user", "ada").stdout
    assert "User=ada\n" in text and "WantedBy=multi-user.target" in text
    assert machine.say("install", "--user", "ada").exit_code == 2


def test_what_no_unit_can_hold_is_refused():
    unit = Unit(title="a\nb", fleet="f", folder="/", command=("x",), reload=("x",), path="", user=None, variables="v")
    with pytest.raises(Mistake):
        unit_text(unit)
