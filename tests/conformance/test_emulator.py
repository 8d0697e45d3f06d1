"""The code for a GPU, run by the emulator, gives what every op must give."""

import pytest

from case import CASES
from cases import some_cases
from emulator_executor import emulated
from executors import difference

SOME = 12  # cases of each op; run_cases.py runs more


@pytest.mark.parametrize("name", CASES)
def test_emulated_code_agrees_with_exact_arithmetic(name):
    wrong = {str(case): found for case in some_cases(name, SOME)
             if (found := difference(case, emulated(case)))}
    assert not wrong
