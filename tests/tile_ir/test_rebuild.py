"""Re-emission of functions."""

from equal_functions import equal

from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import rebuild
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text  # noqa: E402

SOURCE = """kernel f(
  %n: int32 = value(n)
) {
  %half = neg %n : int32
  %sum = for %n, %n, %n, %half : int32 (%i: int32, %acc: int32) {
    %0 = add %acc, %half : int32
    yield %0
  }
  print %sum {prefix="sum"}
  return
}
"""


def test_a_copy_is_equal_and_shares_no_op():
    fn = parse(SOURCE)

    copy = rebuild(fn, folding=False)

    assert text(copy) == SOURCE
    assert not set(walk(copy.body)) & set(walk(fn.body))


def test_a_rewrite_replaces_ops_in_regions_too():
    fn = parse(SOURCE)

    def subtract(rebuilder, op):
        if op.name != "add":
            return None
        return (rebuilder.builder.emit(OPS["sub"], *rebuilder.operands(op)),)

    changed = rebuild(fn, subtract, folding=False)

    assert text(changed) == SOURCE.replace("add", "sub")
    assert equal(fn, parse(SOURCE))


def test_a_rewrite_can_remove_an_op_without_results():
    fn = parse(SOURCE)

    changed = rebuild(fn, lambda _, op: () if op.name == "print" else None, folding=False)

    assert text(changed) == SOURCE.replace('  print %sum {prefix="sum"}\n', "")


def test_locations_and_names_are_kept():
    fn = parse(SOURCE, file="f.tile")

    copy = rebuild(fn, folding=False)

    assert text(copy, locs=True) == text(fn, locs=True)
