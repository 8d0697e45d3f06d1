"""Layouts of the operands and results of asynchronous ops: wgmma, copies, staged tiles."""

from blocknumba.gpu_layout.dots.wgmma import accumulator_layout, operand_layout
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import WARP
from blocknumba.gpu_layout.layouts.shared import is_buffer, swizzled
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.assign_layouts import assign_layouts
from blocknumba.gpu_layout.spec import LAID_OUT
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.types import float16
from blocknumba.tile_ir.ir.verifier import verify
from blocknumba.tile_ir.text.parser import parse

SHAPE = (64, 64)
SHARED = swizzled(SHAPE, 1, 16, 128)
F16, F32 = "tile<64x64xfloat16>", "tile<64x64xfloat32>"
BUFFER = f"tile<64x64xfloat16, {SHARED}>"


def loaded(name, dtype="float16"):
    """Text that loads a (64, 64) tile in rows."""
    many = f"tile<64x64xptr<{dtype}>>"
    return f"""
  %{name}s = splat %{name}p : {many}
  %{name}q = offset %{name}s, %index : {many}
  %{name} = load %{name}q : tile<64x64x{dtype}>"""


def assigned(body):
    """A function after the pass, verified; its parameters: pointers a, b and out."""
    parameters = "\n".join(
        f"  %{name}p: ptr<{dtype}> = pointer({name}) {{divisibility=16}}"
        for name, dtype in (("a", "float16"), ("b", "float16"), ("out", "float32")))
    index = """
  %line = arange {start=0, size=4096} : tile<4096xint32>
  %index = reshape %line : tile<64x64xint32>"""
    text = f"kernel k(\n{parameters}\n) {{{index}{body}\n  return\n}}\n"
    fn = assign_layouts(parse(text, LinearLayout.parse), LayoutOptions(num_warps=4))
    verify(fn, LAID_OUT)
    return fn


def the(fn, name):
    """The only op of a name."""
    (op,) = (op for op in walk(fn.body) if op.name == name)
    return op


STORED = f"""
  %os = splat %outp : tile<64x64xptr<float32>>
  %oq = offset %os, %index : tile<64x64xptr<float32>>
  store %oq, %r"""
PRODUCT = loaded("a") + loaded("b") + f"""
  %x = stage %a : {BUFFER}
  %y = stage %b : {BUFFER}
  %zero = constant {{value=0.0}} : float32
  %zeros = splat %zero : {F32}
  %p = wgmma %x, %y, %zeros {{num_warps=4}} : {F32}
  %r = wgmma_wait %p {{pending=0}} : {F32}"""


def test_products_are_accumulators_until_they_are_waited_for():
    fn = assigned(PRODUCT + STORED)

    accumulator = accumulator_layout(SHAPE, 4)
    assert the(fn, "wgmma").result.type.layout == accumulator
    assert the(fn, "wgmma_wait").result.type.layout == accumulator


def test_a_tile_is_staged_from_the_layout_that_it_was_loaded_in():
    fn = assigned(PRODUCT + STORED)

    assert not [op for op in walk(fn.body) if op.name == "convert_layout"
                and op.operands[0].type.dtype == float16]
    staged = [op for op in walk(fn.body) if op.name == "stage"]
    assert all(op.result.type.layout == SHARED for op in staged) and len(staged) == 2


def test_an_operand_in_registers_is_a_fragment():
    body = PRODUCT.replace(f"  %x = stage %a : {BUFFER}\n", "").replace("wgmma %x", "wgmma %a")

    fn = assigned(body + STORED)

    operand = the(fn, "wgmma").operands[0].type
    assert operand.layout == operand_layout(SHAPE, float16, 4)


def test_a_loop_carries_accumulators():
    body = loaded("a") + loaded("b") + f"""
  %x = stage %a : {BUFFER}
  %y = stage %b : {BUFFER}
  %zero = constant {{value=0.0}} : float32
  %zeros = splat %zero : {F32}
  %i = constant {{value=0}} : int32
  %n = constant {{value=8}} : int32
  %one = constant {{value=1}} : int32
  %r = for %i, %n, %one, %zeros : {F32} (%k: int32, %t: {F32}) {{
    %p = wgmma %x, %y, %t {{num_warps=4}} : {F32}
    %w = wgmma_wait %p {{pending=0}} : {F32}
    yield %w
  }}"""

    fn = assigned(body + STORED)

    loop = the(fn, "for")
    assert loop.result.type.layout == accumulator_layout(SHAPE, 4)
    assert "convert_layout" not in [op.name for op in walk(loop.regions[0])]


def test_copies_by_threads_are_coalesced():
    fn = assigned(f"""
  %as = splat %ap : tile<64x64xptr<float16>>
  %aq = offset %as, %index : tile<64x64xptr<float16>>
  %x = shared_allocate {{}} : {BUFFER}
  async_copy %aq, %x""")

    layout = the(fn, "async_copy").operands[0].type.layout
    assert layout["register"][:3] == (1, 2, 4) and layout["lane"][0] == 8


def test_what_is_in_a_buffer_is_read_where_it_is_wanted():
    fn = assigned(f"""
  %x = shared_allocate {{}} : {BUFFER}
  %t = shared_tile %x : {F16}
  %r = cast %t : {F32}""" + STORED)

    read = the(fn, "shared_tile").result.type
    assert not is_buffer(read) and len(read.layout[WARP]) == 2
    assert read.layout == the(fn, "store").operands[0].type.layout
