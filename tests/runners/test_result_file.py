"""What an agent writes into its result file is read by others: secrets are taken out of it too."""

import asyncio
import os

from wakeful.core.runs import Outcome, read_outcome
from wakeful.runners.process import ProcessRunner
from wakeful.runners.protocol import RESULT, Assignment

SECRET = "sk-0123456789abcdef"


def test_a_secret_in_the_result_file_is_redacted_before_the_run_is_said_to_have_ended(tmp_path):
    folder = tmp_path / "run"
    said = f'{{"outcome": "done", "summary": "the key is {SECRET}"}}'

    async def go():
        runner = ProcessRunner()
        held = await runner.start(
            Assignment(
                run=1,
                epoch=1,
                folder=folder,
                command=("/bin/sh", "-c", f"printf %s '{said}' > \"$WAKEFUL_RESULT\""),
                workdir=tmp_path,
                environment={"PATH": os.environ["PATH"], "WAKEFUL_RESULT": str(folder / RESULT)},
                secrets=(SECRET,),
            )
        )
        ending = await held.wait()
        await runner.close()
        return ending

    ending = asyncio.run(go())
    assert read_outcome(ending) is Outcome.done
    assert ending.result is not None and ending.result.summary == "the key is [redacted]"
    assert SECRET not in (folder / RESULT).read_text()
