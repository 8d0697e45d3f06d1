"""A GPU gives what every op must give."""

import pytest

from blocknumba.dispatch.launch.driver import require_driver
from case import CASES
from cases import cases_of
from executors import difference
from gpu_executor import Gpu


@pytest.mark.gpu(emulated="test_emulator.py::test_emulated_code_agrees_with_exact_arithmetic")
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_agrees_with_exact_arithmetic(name):
    gpu = Gpu(require_driver("conformance"), num_warps=4)
    wrong = {str(case): found for case in cases_of(name)
             if (found := difference(case, gpu.run(case)))}
    assert not wrong
