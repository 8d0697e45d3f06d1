"""The native code of the CPU device gives what every op must give."""

import pytest

from blocknumba.cpu_lower.ops import ELEMENTS, ROOTS
from blocknumba.tile_ir.ir.opdef import OPS

from cases import SAMPLED, cases_of, drawn_cases
from cpu_executor import is_native, run_natively
from executors import difference

# a tile pass makes others of them
LOWERED = {name for name, opdef in OPS.items()
           if opdef.infer.__module__ == "blocknumba.tile_ir.ops.views"}
ON_GPUS = {"cuda_function"}  # typing makes it where the target is a GPU
TILE_OPS = [name for name, opdef in OPS.items()
            if opdef.infer.__module__.startswith("blocknumba.tile_ir.")
            and name not in LOWERED | ON_GPUS]
SOME = 10  # cases of each op, spread over all of them; all with --all-cases
DRAWN_CASES = 15  # of functions; run_cases.py runs all


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_has_native_code(name):
    assert (name in ELEMENTS) != (name in ROOTS)


@pytest.mark.parametrize("name", SAMPLED)
def test_native_code_agrees_with_exact_arithmetic(name, request):
    cases = [case for case in cases_of(name) if is_native(case)]
    step = 1 if request.config.getoption("--all-cases") else max(1, len(cases) // SOME)

    wrong = {str(case): found for case in cases[::step]
             if (found := difference(case, run_natively(case)))}

    assert not wrong


def test_native_code_agrees_with_numpy_about_functions():
    wrong = {str(case): found for case in drawn_cases(DRAWN_CASES)
             if (found := difference(case, run_natively(case)))}
    assert not wrong
