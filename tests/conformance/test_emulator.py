"""The code for a GPU, run by the emulator, gives what every op must give."""

import pytest

from blocknumba.emulator import UnknownInstructionError
from case import CASES
from cases import cases_of
from emulator_executor import emulated
from executors import difference

# op -> why the emulator cannot run its code
NOT_EMULATED = {"print": "vprintf is the driver's"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_EMULATED])
def test_emulated_code_agrees_with_exact_arithmetic(name):
    wrong = {str(case): found for case in cases_of(name)
             if (found := difference(case, emulated(case)))}
    assert not wrong


@pytest.mark.parametrize("name", NOT_EMULATED)
def test_what_the_emulator_cannot_run_is_an_error_that_says_so(name):
    with pytest.raises(UnknownInstructionError, match=NOT_EMULATED[name].split()[0]):
        emulated(next(cases_of(name)))
