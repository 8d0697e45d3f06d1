"""Every op of the tile IR has a docstring, numerics, cases, a placement and code."""

import re

import pytest

from blocknumba import language
from blocknumba.gpu_layout.placement import rules  # noqa: F401  fills the table of placements
from blocknumba.gpu_layout.placement.rule import PLACEMENTS
from blocknumba.nvvm_lower import ops as code_faces  # noqa: F401  fills the table of code
from blocknumba.nvvm_lower.emitter import CODE
from blocknumba.tile_ir import interpreter  # noqa: F401  registers how ops with effects are executed
from blocknumba.tile_ir.ir.opdef import CONTROL, ELEMENTWISE, OPS, TERMINATOR

from case import CASES
from cases import cases_of

TILE_OPS = [name for name, opdef in OPS.items()
            if opdef.infer.__module__.startswith("blocknumba.tile_ir.")]
SCALAR_OPS = {"program_id", "num_programs", "assume"}  # need no layout
# no interpreter can run them: test_inline_asm.py, test_cuda_functions.py
GPU_OPS = {"inline_asm", "cuda_function"}
MAPPED_OPS = {"dot", "histogram", "sort"}  # a layout pass makes others of them
# a tile pass makes others of them
LOWERED_OPS = {name for name, opdef in OPS.items()
               if opdef.infer.__module__ == "blocknumba.tile_ir.ops.views"}


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_says_what_it_does(name):
    doc = OPS[name].doc
    assert doc and doc.split("\n")[0].endswith("."), doc
    missing = [word for word in (*OPS[name].operands, *OPS[name].attributes)
               if not re.search(rf"\b{word}\b", doc)]
    assert not missing


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_has_numerics(name):
    opdef = OPS[name]
    assert opdef.evaluate or opdef.execute or opdef.has(TERMINATOR)


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_has_a_case(name):
    assert name in GPU_OPS or name in CASES and next(cases_of(name), None) is not None


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_has_a_placement(name):
    elsewhere = OPS[name].has(ELEMENTWISE) or OPS[name].has(CONTROL) or OPS[name].has(TERMINATOR)
    assert name in PLACEMENTS or elsewhere or (
        name in SCALAR_OPS | MAPPED_OPS | LOWERED_OPS)


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_has_code(name):
    assert name in CODE or OPS[name].has(TERMINATOR) or (
        name in MAPPED_OPS | LOWERED_OPS)


def test_only_ops_and_functions_have_cases():
    assert {name for name in CASES if not name.startswith("bn.")} <= set(OPS)
    assert {name[3:] for name in CASES if name.startswith("bn.")} <= set(language.__all__)


# names of the language without cases of their own, and where they are tested
ELSEWHERE = {
    "the cases of ops": "load store program_id num_programs assume multiple_of max_constancy "
    "max_contiguous atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg "
    "atomic_xor map",
    "kernel_fuzzer.py, tests/typing/test_arrays.py": "span spans block grid_spans persistent range "
    "static_range empty constexpr",
    "tests/typing/test_triton_names.py": "advance load_tensor_descriptor make_block_ptr "
    "make_tensor_descriptor store_tensor_descriptor",
    "tests of their own in tests/typing": "dot_scaled inline_asm_elementwise debug_barrier "
    "device_assert device_print static_assert static_print welford_combine",
    "tests/libdevice": "libdevice",
    "dtypes": "bool_ int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 "
    "float32 float64 float8_e4m3fn float8_e5m2 float8e4nv float8e5",
}


def test_every_function_has_cases_or_is_tested_elsewhere():
    elsewhere = {name for names in ELSEWHERE.values() for name in names.split()}
    missing = {name for name in language.__all__ if f"bn.{name}" not in CASES}

    assert missing == elsewhere
