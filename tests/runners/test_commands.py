"""A line means what it means in a terminal, with and without a shell."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from wakeful.core.errors import Mistake
from wakeful.runners.commands import SHELL, split_command


def split(text: str, workdir: Path = Path("/nowhere"), root: Path = Path("/nowhere")) -> tuple[str, ...]:
    return split_command(text, "RUN", workdir, root)


PLAIN = [
    "claude -p --output-format json",
    "codex exec --json -",
    "  python3   agent.py\t--level=3  ",
    "echo 'it is' \"a b\" c''d",
    "echo äöü 100% a@b a,b a:b a=b 1+1 a^b",
    "echo",
    "echo ''",
]
SHELLED = [
    "cat | claude -p",
    "claude -p > log",
    "a; b",
    "a && b",
    "echo $HOME",
    "echo `date`",
    "ls *.txt",
    "ls ~/desk",
    "echo a\\ b",
    "MODE=fast agent",
    "(agent)",
    "exec agent",
    "exit 3",
    "cd desk",
    "! true",
    "agent # the good one",
    "agent\nother",
    "echo 'a|b'",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_command_is_its_words_and_a_shell_would_see_the_same(text):
    words = split(text)
    assert words[:2] != SHELL
    shown = "import sys; print(sys.argv[1:])"
    script = f"set -- {text}; exec {sys.executable} -c '{shown}' \"$@\""
    seen = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=10)
    assert seen.stdout == f"{list(words)}\n"


@pytest.mark.parametrize("text", SHELLED)
def test_whatever_a_shell_would_act_on_is_given_to_one_as_it_stands(text):
    assert split(text) == (*SHELL, text)


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "echo 'half", 'echo "half'])
def test_what_is_no_command_says_where_it_stands(text):
    with pytest.raises(Mistake, match=r"^RUN "):
        split(text)


def test_a_relative_path_is_looked_for_in_the_work_folder_and_then_beside_the_fleet_file(tmp_path):
    work, root = tmp_path / "work", tmp_path / "root"
    for folder in (work, root):
        (folder / "bin").mkdir(parents=True)
    (root / "bin" / "agent").touch()
    (root / "agent").touch()
    assert split("bin/agent -v bin/agent", work, root) == (f"{root}/bin/agent", "-v", "bin/agent")
    (work / "bin" / "agent").touch()
    assert split("bin/agent", work, root) == ("bin/agent",)
    assert split("agent", work, root) == ("agent",)
    assert split("./other", work, root) == ("./other",)
    assert split(shlex.quote(str(tmp_path)), work, root) == (str(tmp_path),)
