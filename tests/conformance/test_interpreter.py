"""The interpreter gives what every op must give."""

import pytest

from cases import CASES, Case
from executors import difference, interpreted


def drawn(name: str) -> list[Case]:
    return [case for function in CASES[name] for case in function() if case.op == name]


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_exact_arithmetic(name):
    wrong = {str(case): found for case in drawn(name)
             if (found := difference(case, interpreted(case)))}
    assert not wrong
