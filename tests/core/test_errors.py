"""The same error is told in the same words, whichever way was asked."""

import json

import pytest

from wakeful.cli.complaints import from_error, from_problem
from wakeful.client.problems import error_of
from wakeful.core.errors import Busy, Conflict, Ended, Forbidden, Mistake, Outdated, Sick, Stale, Unknown, in_words
from wakeful.http.errors import problem_of

CLASSES = [Conflict, Ended, Forbidden, Mistake, Outdated, Sick, Stale, Unknown, Busy]
ERRORS = [*(kind("it is so", "do this") for kind in CLASSES), *(kind("it is so") for kind in CLASSES)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__} {error}")
def test_a_person_a_model_and_a_program_are_told_the_same(error):
    problem = problem_of(error)
    told = json.loads(problem.body())
    assert (told["detail"], told["remedy"]) == ("it is so", error.remedy)
    from_afar, from_here = from_problem(problem.status, told), from_error(error)
    assert from_afar.message == from_here.message == in_words(error)
    assert from_afar.exit_code == from_here.exit_code
    again = error_of(problem.status, problem.body())
    assert in_words(again) == in_words(error)


@pytest.mark.parametrize("kind", [each for each in CLASSES if each not in (Mistake, Ended)])
def test_each_class_has_something_to_do_about_it_and_an_error_may_have_better(kind):
    assert in_words(kind("it is so")) == f"it is so ({kind.remedy})" and kind.remedy
    assert in_words(kind("it is so", "do this")) == "it is so (do this)"
