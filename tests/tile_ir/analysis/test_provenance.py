"""Which arguments a function reads and writes memory through."""

from blocknumba.tile_ir.analysis.provenance import loaded, origins, stored
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.passes.dce import liveness
from blocknumba.tile_ir.text.parser import parse

SOURCE = """kernel f(
  %x: ptr<float32> = pointer(x)
  %y: ptr<float32> = pointer(y)
  %z: ptr<float32> = pointer(z)
  %unused: ptr<float32> = pointer(unused)
  %n: int32 = value(n)
  %c: bool = value(c)
) {
  %p, %q = for %n, %n, %n, %x, %y : ptr<float32>, ptr<float32> (%i: int32, %a: ptr<float32>, %b: ptr<float32>) {
    %v = load %a : float32
    store %z, %v
    %r = offset %b, %n : ptr<float32>
    yield %r, %r
  }
  %s = select %c, %q, %z : ptr<float32>
  %old = atomic_rmw %s, %v0 {kind="add"} : float32
  return
}
""".replace("  %p, %q", "  %v0 = constant {value=1.0} : float32\n  %p, %q")


def test_loads_are_traced_to_arguments_through_loops_and_choices():
    assert loaded(parse(SOURCE)) == {"x", "y", "z"}


def test_stores_and_atomics_are_traced_to_arguments():
    assert stored(parse(SOURCE)) == {"y", "z"}


def test_carried_pointers_that_are_not_swapped_stay_apart():
    fn = parse(SOURCE.replace("yield %r, %r", "yield %a, %r"))

    assert (loaded(fn), stored(fn)) == ({"x", "y", "z"}, {"y", "z"})


def test_carried_pointers_point_into_what_is_yielded():
    fn = parse(SOURCE)
    loop = next(op for op in walk(fn.body) if op.name == "for")

    found = [origins(fn)[arg] for arg in loop.regions[0].args[1:]]

    assert found == [{"x", "y"}, {"y"}]


def test_what_no_effect_needs_is_not_live():
    fn = parse(SOURCE)

    live = liveness(fn).values

    assert [arg.hint for arg in fn.body.args if arg not in live] == ["unused"]
