"""The code for a GPU, run by the emulator, gives what every op must give."""

import pytest

from cases import SAMPLED, drawn_cases, some_cases
from emulator_executor import emulated
from executors import difference

SOME = 10  # cases of each op; run_cases.py runs more
DRAWN_CASES = 15  # of functions; run_cases.py runs all


@pytest.mark.parametrize("name", SAMPLED)
def test_emulated_code_agrees_with_exact_arithmetic(name):
    wrong = {str(case): found for case in some_cases(name, SOME)
             if (found := difference(case, emulated(case)))}
    assert not wrong


def test_emulated_code_agrees_with_numpy_about_functions():
    wrong = {str(case): found for case in drawn_cases(DRAWN_CASES)
             if (found := difference(case, emulated(case)))}
    assert not wrong
