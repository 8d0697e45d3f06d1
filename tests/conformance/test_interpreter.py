"""The interpreter gives what every op must give."""

import pytest

from cases import SAMPLED, drawn_cases, some_cases
from executors import difference, interpreted

SOME = 40  # cases of each op; all with --all-cases
DRAWN_CASES = 60  # of functions; run_cases.py runs all


@pytest.mark.parametrize("name", SAMPLED)
def test_the_interpreter_agrees_with_exact_arithmetic(name, request):
    count = None if request.config.getoption("--all-cases") else SOME
    wrong = {str(case): found for case in some_cases(name, count)
             if (found := difference(case, interpreted(case)))}
    assert not wrong


def test_the_interpreter_agrees_with_numpy_about_functions():
    wrong = {str(case): found for case in drawn_cases(DRAWN_CASES)
             if (found := difference(case, interpreted(case)))}
    assert not wrong
