"""How a run ended, without what is secret."""

from dataclasses import replace

from wakeful.core.redacting import redacted_end, redacted_ending
from wakeful.core.runs import Ending, Result, TaskEnd

WORD, MARK = "83920175", "[redacted]"


def hide(text):
    return text.replace(WORD, MARK)


def test_every_text_of_an_ending_is_hidden_and_json_stays_json():
    result = Result(summary=f"a {WORD}", error=f"b {WORD}", value=f'{{"n": {WORD}, "k{WORD}": ["{WORD}"]}}')
    ending = Ending(exit_code=0, output=f"c {WORD}", printed=f"d {WORD}", result=result)
    hidden = redacted_ending(ending, hide)
    assert (hidden.output, hidden.printed) == (f"c {MARK}", f"d {MARK}")
    assert (hidden.result.summary, hidden.result.error) == (f"a {MARK}", f"b {MARK}")
    assert hidden.result.value == f'{{"n": "{MARK}", "k{MARK}": ["{MARK}"]}}'
    end = TaskEnd(task=1, ending=Ending(), result=f"[{WORD}")
    assert redacted_end(end, hide) == replace(end, result=f"[{MARK}")
    assert redacted_end(TaskEnd(task=1, ending=ending), hide).ending == hidden


def test_where_there_is_nothing_to_hide_it_is_the_very_same():
    for ending in (Ending(), Ending(output="x", result=Result(summary="s", value="{}"))):
        assert redacted_ending(ending, hide) is ending
        end = TaskEnd(task=1, ending=ending, result="r")
        assert redacted_end(end, hide) is end
