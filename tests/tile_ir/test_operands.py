"""Operands by name, the attributes of functions, and who uses a value."""

import pytest
from equal_functions import equal

import blocknumba.gpu_layout.pipeline  # noqa: F401  its ops are declared when it is imported
from blocknumba.tile_ir.ir.function import Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import rebuild
from blocknumba.tile_ir.ir.remarks import NOT_TMA, Remark
from blocknumba.tile_ir.ir.types import TileType, int32
from blocknumba.tile_ir.ir.uses import Uses, carried, controls
from blocknumba.tile_ir.passes.pipeline import TILE_PASSES
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text

LOOP = """kernel sums(
  %x: ptr<float32> = pointer(x)
  %n: int32 = value(n)
) with {cluster=2, shared_bytes=1024} {
  %0 = constant {value=0} : int32
  %1 = constant {value=1} : int32
  %2 = constant {value=0.0} : float32
  %total = for %0, %n, %1, %2 : float32 (%i: int32, %before: float32) {
    %p = offset %x, %i : ptr<float32>
    %v = load %p : float32
    %after = add %before, %v : float32
    yield %after
  }
  store %x, %total
  return
}
"""


def op_of(fn, name):
    return next(op for op in walk(fn.body) if op.name == name)


@pytest.mark.parametrize("opdef", OPS.values(), ids=str)
def test_every_operand_is_read_by_its_name(opdef):
    values = tuple(Value(TileType(int32)) for _ in opdef.operands)
    op = Op(opdef, values, {})

    read = [getattr(op, name) for name in opdef.operands]

    expected = [*values[:-1], values[-1:]] if opdef.variadic else list(values)
    assert read == expected


def test_operands_are_read_by_name():
    loop = op_of(parse(LOOP), "for")

    assert (loop.start, loop.stop, loop.step, *loop.initial) == loop.operands
    assert loop.initial == carried(loop).initial
    assert (loop.start, loop.stop, loop.step) == controls(loop)


def test_an_operand_that_is_left_out_is_none():
    load = op_of(parse(LOOP), "load")

    assert load.pointer is load.operands[0]
    assert load.mask is None
    assert load.other is None


def test_an_operand_that_an_op_does_not_have_is_an_error():
    with pytest.raises(AttributeError, match="load has no operand named value"):
        op_of(parse(LOOP), "load").value


def test_users_are_found_in_all_regions():
    fn = parse(LOOP)
    uses, load, loop = Uses(fn), op_of(fn, "load"), op_of(fn, "for")

    assert [op.name for op in uses.users(fn.body.args[0])] == ["offset", "store"]
    assert uses.regions(load) == (loop.regions[0], fn.body)
    assert uses.owner(loop.regions[0]) is loop
    assert (uses.depth(load), uses.depth(loop)) == (1, 0)
    assert uses.index(load, fn.body) == fn.body.ops.index(loop)


def test_attributes_of_a_function_are_in_its_text():
    fn = parse(LOOP)

    assert fn.attrs == {"cluster": 2, "shared_bytes": 1024}
    assert text(fn) == text(parse(text(fn)))
    assert equal(fn, parse(text(fn)))
    assert not equal(fn, fn.with_body(fn.body, cluster=4))
    assert fn.with_body(fn.body, cluster=None).attrs == {"shared_bytes": 1024}


@pytest.mark.parametrize("pass_", TILE_PASSES, ids=lambda pass_: pass_.name)
def test_passes_keep_attributes_and_remarks(pass_):
    fn = parse(LOOP).remarked([Remark.of(NOT_TMA, op_of(parse(LOOP), "load").loc, reason="so")])

    made = pass_(fn, None)

    assert made.attrs == fn.attrs
    assert made.remarks == fn.remarks
    assert rebuild(fn).remarks == fn.remarks
