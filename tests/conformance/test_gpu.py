"""A GPU gives what every op must give."""

import pytest

from blocknumba.dispatch.launch.driver import require_driver
from cases import SAMPLED, drawn_cases, some_cases
from executors import difference
from gpu_executor import Gpu

SOME = 30  # cases of each op; `run_cases.py --on gpu` compiles all of them by a pool and runs them
DRAWN_CASES = 60  # of functions


@pytest.mark.gpu(emulated="test_emulator.py::test_emulated_code_agrees_with_exact_arithmetic")
@pytest.mark.parametrize("name", SAMPLED)
def test_a_gpu_agrees_with_exact_arithmetic(name):
    gpu = Gpu(require_driver("conformance"))
    wrong = {str(case): found for case in some_cases(name, SOME)
             if (found := difference(case, gpu.run(case)))}
    assert not wrong


@pytest.mark.gpu(emulated="test_emulator.py::test_emulated_code_agrees_with_numpy_about_functions")
def test_a_gpu_agrees_with_numpy_about_functions():
    gpu = Gpu(require_driver("conformance"))
    wrong = {str(case): found for case in drawn_cases(DRAWN_CASES)
             if (found := difference(case, gpu.run(case)))}
    assert not wrong
