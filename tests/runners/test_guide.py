"""The guide to what a run sees is true: its programs run, its result is read, its agents load."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.runners.orders import an_item, an_order
from wakeful.cli import main
from wakeful.core.items import Origin
from wakeful.core.results import read_result
from wakeful.core.runs import Ending, ErrorClass, Outcome, read_outcome
from wakeful.core.standing import Spend
from wakeful.runners import environment
from wakeful.runners.briefing import TRUST, write_briefing
from wakeful.runners.meter import read_usage

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "what-a-run-sees.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def ran(command: list[str], folder: Path, *items) -> Ending:
    order = an_order(items=items)
    text, written = write_briefing(order, "You are wren.")
    around = environment.Surroundings(base=os.environ)
    told = environment.build_environment(
        order, environment.before_a_run(order.agent, around, url="http://127.0.0.1:7717"), token="t", folder=folder
    )
    Path(told["WAKEFUL_BRIEFING"]).write_text(written)
    run = subprocess.run(command, cwd=folder, env=told, input=text, capture_output=True, text=True, timeout=60)
    result = Path(told["WAKEFUL_RESULT"])
    read = read_result(result.read_text()) if result.exists() else None
    return Ending(exit_code=run.returncode, output=run.stdout, result=read)


def test_the_shell_script_has_no_work_and_then_some(tmp_path):
    (script,) = examples("sh")
    (tmp_path / "agent.sh").write_text(script)
    assert read_outcome(ran(["sh", "agent.sh"], tmp_path)) is Outcome.no_work
    (tmp_path / ".seen").touch()
    os.utime(tmp_path / ".seen", (0, 0))
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.txt").touch()
    ending = ran(["sh", "agent.sh"], tmp_path)
    assert (read_outcome(ending), ending.result.summary) == (Outcome.done, "listed 1 files")


def test_the_python_program_reads_only_those_it_may_trust(tmp_path):
    program = examples("python")[-1]
    command = [sys.executable, "-c", program]
    assert read_outcome(ran(command, tmp_path, an_item(1, origin=Origin.external))) is Outcome.no_work
    ending = ran(command, tmp_path, an_item(1, origin=Origin.external), an_item(2))
    assert (read_outcome(ending), ending.result.summary) == (Outcome.done, "read 1 messages")


def test_the_report_of_what_it_uses_meanwhile_is_one_that_a_meter_reads(tmp_path):
    program = f"{examples('python')[0]}\nreport(0.61, 80)"
    ending = ran([sys.executable, "-c", program], tmp_path)
    assert ending.result.usage == Spend(usd=610_000, tokens=80)
    (written,) = tmp_path.rglob("result.json")
    assert read_usage(written.read_bytes()) == {"usd": 610_000, "tokens": 80}


def test_the_result_in_the_guide_is_one_that_we_read():
    (result,) = map(read_result, examples("json"))
    assert (result.outcome, result.error_class, result.usage.usd) == ("failed", ErrorClass.quota, 420_000)


@pytest.mark.parametrize("fleet", examples("org"), ids=["claude", "codex"])
def test_the_agents_of_the_guide_pass_the_check(fleet, tmp_path):
    (tmp_path / "defs").mkdir()
    for name in ("writer", "editor"):
        (tmp_path / "defs" / f"{name}.org").write_text("You are an agent.\n")
    (tmp_path / "fleet.org").write_text(fleet)
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "fleet.org")])
    assert checked.exit_code == 0, checked.output


def test_the_guide_names_every_variable_and_every_level_of_trust():
    around = environment.Surroundings(base={})
    order = an_order()
    before = environment.before_a_run(order.agent, around, url="")
    told = environment.build_environment(order, before, token="", folder=Path("x"), traceparent="t")
    for name in (*told, *environment.ALLOWED, *environment.SECRET_ENDINGS):
        assert f"`{name}`" in TEXT, name
    for origin, trust in TRUST.items():
        assert f"| {origin} | {trust} |" in TEXT


def test_the_guide_names_what_the_json_has_at_its_top():
    for key in json.loads(write_briefing(an_order(), None)[1]):
        assert f"`{key}`" in TEXT, key
