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
