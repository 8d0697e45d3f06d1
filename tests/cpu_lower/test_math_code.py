"""The text of vector functions: for all ops, lanes and targets, without calls of libraries."""

import contextlib
import re
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from math_oracles import special_numbers
from vector_loops import compute, optimised, target_machine

from blocknumba.cpu_lower.math import FUNCTIONS, vector_function
from blocknumba.cpu_lower.math.registry import LANES
from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OPS
from blocknumba.tile_ir.ir.types import TileType, float32

# Elementwise ops on floats that are one instruction, or are written with comparisons.
INSTRUCTIONS = {"add", "sub", "mul", "div", "fma", "neg", "absolute", "minimum", "maximum", "fmin",
                "fmax"}
INSTRUCTIONS |= {f"{name}_{mode}" for name in ("add", "mul", "div", "sqrt", "fma")
                 for mode in ("rz", "rd", "ru")}  # under another rounding mode
FREEDOMS = {"approximate", "contract"}  # which change nothing on the CPU
DOCUMENT = Path(__file__).parents[2] / "docs/numbers.md"
TARGETS = {
    "avx2": ("x86_64-unknown-linux-gnu", "haswell", ""),
    "avx512": ("x86_64-unknown-linux-gnu", "skylake-avx512", "+prefer-256-bit"),
    "neon": ("aarch64-unknown-linux-gnu", "neoverse-n1", ""),
}


def float_ops() -> set[str]:
    """Names of the elementwise ops that take floats of one dtype and return floats of it."""
    tile = TileType(float32, (4,))
    names = set()
    for name, opdef in OPS.items():
        if ELEMENTWISE <= opdef.traits and opdef.evaluate and FREEDOMS.issuperset(opdef.attributes):
            with contextlib.suppress(BlockError):
                if opdef.infer(*[tile] * len(opdef.operands)) == tile:
                    names.add(name)
    return names


def test_every_mathematical_op_has_a_function():
    assert float_ops() - INSTRUCTIONS == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_do_not_change_the_result(name, dtype):
    arity = FUNCTIONS[name].arity
    operands = [x.ravel() for x in np.meshgrid(*[special_numbers(dtype)] * arity)]

    wide = compute(name, *operands, lanes=8)

    for lanes in (1, 4):
        np.testing.assert_array_equal(compute(name, *operands, lanes=lanes), wide)


def test_all_functions_stand_in_one_module():
    functions = [vector_function(name, dtype, lanes) for name in FUNCTIONS
                 for dtype in ("float32", "float64") for lanes in LANES]

    module = llvm.parse_assembly("\n".join(f.definition for f in functions))

    module.verify()
    assert {f.symbol for f in functions} <= {f.name for f in module.functions}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_target_calls_a_library(target, dtype):
    """Scalars and vectors of 32 bytes, one function each that is not inlined further."""
    texts = []
    for name, function in FUNCTIONS.items():
        for lanes in (1, 32 // np.dtype(dtype).itemsize):
            made = vector_function(name, dtype, lanes)
            kept = f"kept.{name}.{lanes}"
            vector = re.search(r"internal (.*?) @" + re.escape(made.symbol) + r"\(",
                               made.definition)[1]
            operands = ", ".join(f"{vector} %x{i}" for i in range(function.arity))
            texts.append(f"{made.definition}define {vector} @{kept}({operands}) {{\n"
                         f"  %y = call {vector} @{made.symbol}({operands})\n"
                         f"  ret {vector} %y\n}}\n")
    machine = target_machine(*TARGETS[target])

    assembly = machine.emit_assembly(optimised("\n".join(texts), machine))

    called = set(re.findall(r"\b(?:callq?|bl|jmp|b)\s+([A-Za-z_][\w.]*)", assembly))
    assert {name for name in called if not name.startswith("bn.")} == set()
    assert called, "the functions of single lanes are called"


def test_a_function_that_is_not_there_is_one_clear_error():
    with pytest.raises(BlockError, match="no vector function cubic: there are acos, "):
        vector_function("cubic", "float32", 8)
    with pytest.raises(BlockError, match="exp: given float16, accepted float32, float64"):
        vector_function("exp", "float16", 8)
    with pytest.raises(BlockError, match="exp: given 3 lanes, accepted 1, 2, 4, 8, 16"):
        vector_function("exp", "float32", 3)


def test_the_documents_state_the_errors_of_the_code():
    rows = re.findall(r"^\| (`.*?`) \| ([\d.]+) \| ([\d.]+) \|", DOCUMENT.read_text(), re.MULTILINE)
    stated = {name: {"float32": float(single), "float64": float(double)}
              for names, single, double in rows for name in re.findall(r"`(\w+)`", names)}

    assert stated == {name: function.ulps for name, function in FUNCTIONS.items()
                      if any(function.ulps.values())}
