"""Guesses of how far apart neighbours are, where nothing is contiguous."""

import pytest

from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.likely_strides import FAR, LikelyStrides
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.text.parser import parse

HEAD = """kernel k(
  %x: ptr<float16> = pointer(x) {divisibility=16}
  %rows: int32 = stride(x, 0) {}
  %columns: int32 = stride(x, 1) {}
  %w: int32 = value(w) {divisibility=8}
  %s: int32 = value(s) {}
  %t: int32 = value(t) {}
) {
  %i = arange {start=0, size=64} : tile<64xint32>
  %three = constant {value=3} : int32
"""


def strides_of(*lines, shape="64x32"):
    """The likely strides of %p, made of %m = %i[:, None] and %n = arange(32)[None, :]."""
    body = HEAD + f"""  %j = arange {{start=0, size=32}} : tile<32xint32>
  %ic = reshape %i : tile<64x1xint32>
  %jr = reshape %j : tile<1x32xint32>
  %m = broadcast %ic : tile<{shape}xint32>
  %n = broadcast %jr : tile<{shape}xint32>
  %xs = splat %x : tile<{shape}xptr<float16>>
""" + "".join(f"  {line}\n" for line in lines) + "  return\n}\n"
    fn = parse(body)
    found = {value.hint: value for op in walk(fn.body) for value in op.results}
    strides = LikelyStrides(fn, AxisInfos(fn))
    return tuple(strides.of(found["p"], axis) for axis in range(2))


def by(name, value, tile):
    """Lines: %name = %tile * the scalar %value."""
    return (f"%{name}s = splat %{value} : tile<64x32xint32>",
            f"%{name} = mul %{tile}, %{name}s : tile<64x32xint32>")


def added(name, x, y):
    return f"%{name} = add %{x}, %{y} : tile<64x32xint32>"


P = "%p = offset %xs, %at : tile<64x32xptr<float16>>"


def test_the_last_axis_of_an_array_is_nearest():
    rows, columns = strides_of(*by("a", "rows", "m"), *by("b", "columns", "n"),
                               added("at", "a", "b"), P)

    assert columns < 8 < rows


def test_of_two_numbers_the_later_is_the_lesser():
    rows, columns = strides_of(*by("a", "s", "m"), *by("b", "t", "n"), added("at", "a", "b"), P)
    columns_first, rows_first = strides_of(*by("a", "t", "m"), *by("b", "s", "n"),
                                           added("at", "a", "b"), P)

    assert columns < rows
    assert columns_first < rows_first


def test_multiples_are_farther():
    rows, columns = strides_of(*by("a", "s", "m"), *by("b", "w", "n"), added("at", "a", "b"), P)

    assert rows < columns / 4


def test_a_position_that_is_divided_by_a_width_moves_by_one():
    rows, columns = strides_of(
        "%ws = splat %w : tile<64x32xint32>",
        "%q = floordiv %m, %ws : tile<64x32xint32>", "%r = mod %m, %ws : tile<64x32xint32>",
        "%row = mul %q, %ws : tile<64x32xint32>", added("place", "row", "r"),
        *by("b", "s", "n"), added("at", "place", "b"), P)

    assert 1 <= rows <= 2
    assert columns >= 60


@pytest.mark.parametrize("divided, nearer", [("n", 0), ("m", 1)])
def test_short_runs_are_worth_less_than_long_ones(divided, nearer):
    strides = strides_of(
        "%threes = splat %three : tile<64x32xint32>", added("mn", "m", "n"),
        f"%q = floordiv %{divided}, %threes : tile<64x32xint32>", *by("far", "w", "q"),
        added("at", "far", "mn"), P)

    assert strides[nearer] < strides[1 - nearer]


def test_what_is_equal_along_an_axis_has_no_stride():
    assert strides_of(added("at", "m", "m"), P) == (2.0, 0.0)


def test_what_is_loaded_is_far():
    strides = strides_of(
        "%q = offset %xs, %m : tile<64x32xptr<float16>>", "%v = load %q : tile<64x32xfloat16>",
        "%at = cast %v {dtype=\"int32\"} : tile<64x32xint32>", P)

    assert strides == (FAR, FAR)
