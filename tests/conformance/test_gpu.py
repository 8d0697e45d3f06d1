"""A GPU gives what every op must give."""

import pytest

from blocknumba.dispatch.launch.driver import require_driver
from case import CASES
from cases import some_cases
from executors import difference
from gpu_executor import Gpu

SOME = 30  # cases of each op; `run_cases.py --on gpu` compiles all of them by a pool and runs them


@pytest.mark.gpu(emulated="test_emulator.py::test_emulated_code_agrees_with_exact_arithmetic")
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_agrees_with_exact_arithmetic(name):
    gpu = Gpu(require_driver("conformance"))
    wrong = {str(case): found for case in some_cases(name, SOME)
             if (found := difference(case, gpu.run(case)))}
    assert not wrong
