"""The interpreter gives what every op must give."""

import pytest

from case import CASES
from cases import cases_of
from executors import difference, interpreted


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_exact_arithmetic(name):
    wrong = {str(case): found for case in cases_of(name)
             if (found := difference(case, interpreted(case)))}
    assert not wrong
