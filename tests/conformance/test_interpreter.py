"""The interpreter gives what every op must give."""

import pytest

from case import CASES
from cases import some_cases
from executors import difference, interpreted

SOME = 40  # cases of each op; all with --all-cases


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_exact_arithmetic(name, request):
    count = None if request.config.getoption("--all-cases") else SOME
    wrong = {str(case): found for case in some_cases(name, count)
             if (found := difference(case, interpreted(case)))}
    assert not wrong
