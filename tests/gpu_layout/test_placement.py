"""Every op has a placement, and the level specs demand that it is kept."""

import pytest

from blocknumba.gpu_layout import ops as layout_ops
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.pipeline import layout_passes  # noqa: F401  fills the table
from blocknumba.gpu_layout.placement.rule import PLACEMENTS
from blocknumba.gpu_layout.spec import LAID_OUT, READY
from blocknumba.tile_ir import ops as tile_ops
from blocknumba.tile_ir.ir.function import OpDef
from blocknumba.tile_ir.ir.opdef import CONTROL, ELEMENTWISE, OPS, TERMINATOR
from blocknumba.tile_ir.ir.verifier import problems
from blocknumba.tile_ir.text.parser import parse

# a pass makes other ops of those on views
FAMILIES = [getattr(tile_ops, name) for name in tile_ops.__all__ if name != "views"]
TILE_OPS = [op.name for family in FAMILIES for op in vars(family).values() if isinstance(op, OpDef)]
OWN_OPS = [op.name for op in vars(layout_ops).values() if isinstance(op, OpDef)]
A = "register:;lane:1..16;warp:32.64/dim0:7"
B = "register:;lane:64.1..8;warp:16.32/dim0:7"


@pytest.mark.parametrize("name", TILE_OPS)
def test_every_op_of_the_tile_ir_has_a_placement(name):
    op = OPS[name]

    is_mapped = name == "dot"  # map_dots makes other ops of it
    assert name in PLACEMENTS or op.has(ELEMENTWISE | CONTROL | TERMINATOR) or is_mapped


@pytest.mark.parametrize("name", OWN_OPS)
def test_every_op_of_the_layout_ir_says_what_it_means(name):
    assert len(OPS[name].doc) > 80


def found(body, level, parameters=""):
    text = f"kernel k(\n{parameters}) {{\n{body}\n  return\n}}\n"
    return list(problems(parse(text, LinearLayout.parse), level))


def test_operands_in_two_layouts_do_not_agree():
    body = f"""
  %x = arange {{start=0, size=128}} : tile<128xint32, {A}>
  %y = arange {{start=0, size=128}} : tile<128xint32, {B}>
  %b = lt %x, %x : tile<128xbool, {A}>
  %z = select %b, %y, %y : tile<128xint32, {B}>"""

    (problem,) = found(body, LAID_OUT)
    assert "select" in problem and f"operands should be in {B}" in problem


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("register:;lane:1..16;warp:32/dim0:6", "the layout is not of that shape"),
        ("register:;lane:1..16;warp:32/dim0:7", "the layout is not of that shape"),
        ("register:64.64;lane:1..16;warp:32/dim0:7", "a thread holds copies"),
        ("thread:1..64/dim0:7", "neither in registers nor in shared memory"),
        ("offset:1..64.0/dim0:7", "two offsets for one element"),
    ],
)
def test_a_layout_that_a_tile_cannot_have_is_a_problem(layout, problem):
    body = f"  %x = arange {{start=0, size=128}} : tile<128xint32, {layout}>"

    assert any(problem in line for line in found(body, LAID_OUT))


def test_a_tile_without_a_layout_is_a_problem():
    body = "  %x = arange {start=0, size=128} : tile<128xint32>"

    assert any("has no layout" in line for line in found(body, LAID_OUT))


def test_what_crosses_warps_is_not_ready_to_be_lowered():
    body = f"""
  %x = arange {{start=0, size=128}} : tile<128xint32, {A}>
  %y = convert_layout %x : tile<128xint32, {B}>
  %s = reduce %x {{axis=0, kind="sum"}} : int32
  %m = shared_allocate : tile<128xint32, offset:1..64/dim0:7>"""

    assert not found(body, LAID_OUT)
    lines = found(body, READY)
    assert [line.split(": ")[-1] for line in lines] == [
        "needs shared memory",
        "crosses warps",
        "has no offset",
    ]
