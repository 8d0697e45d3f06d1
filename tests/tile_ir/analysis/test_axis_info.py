"""Axis info against values computed by brute force."""

import random

import numpy as np
import pytest

from blocknumba.tile_ir.analysis.axis_info import axis_info
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import PointerType, TileType, float32, int32, int64
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.ops import memory  # noqa: F401  registers the ops

SHAPES = ((), (16,), (1,), (4, 8), (8, 1), (1, 4), (2, 4, 4))
BINARY = ("add", "sub", "mul", "floordiv", "truncdiv", "mod", "minimum", "and", "or", "xor", "shl",
          "shr")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
CONSTANTS = (0, 1, 2, 3, 4, 7, 8, 16, 15, -1, -4, -8, 12, 2**31 - 1, -(2**31))


class Drawn:
    """A random straight-line function together with the value of everything in it."""

    def __init__(self, rng):
        self.rng = rng
        self.builder = Builder(folding=False)
        self.known = []  # (value, array without a program axis)

    def emit(self, name, *operands, **attrs):
        values = self.builder.emit(OPS[name], *(v for v, _ in operands), **attrs)
        values = values if isinstance(values, tuple) else (values,)
        arrays = self.evaluate(name, [a for _, a in operands], attrs)
        self.known += list(zip(values, arrays, strict=True))

    def evaluate(self, name, arrays, attrs):
        if name == "offset":
            return (arrays[0] + 4 * arrays[1].astype(np.int64),)
        with np.errstate(all="ignore"):
            result = OPS[name].evaluate(*(a[None] for a in arrays), **attrs)
        return tuple(r[0] for r in result) if isinstance(result, tuple) else (result[0],)

    def pick(self, accepted):
        return self.rng.choice([k for k in self.known if accepted(k[0].type)])

    def step(self):
        integer = self.pick(lambda t: not t.is_pointer and t.dtype.is_integer)
        like = self.pick(lambda t: t == integer[0].type)
        kind = self.rng.choice(("binary", "compare", "logic", "select", "cast", "offset", "shape", "shape",
                                "new", "constant"))
        getattr(self, f"step_{kind}")(integer, like)

    def step_binary(self, x, y):
        self.emit(self.rng.choice(BINARY), x, y)

    def step_compare(self, x, y):
        self.emit(self.rng.choice(COMPARISONS), x, y)

    def conditions(self, shape):
        return [k for k in self.known if k[0].type.dtype.__class__ is not PointerType
                and k[0].type.dtype.kind == "bool" and k[0].type.shape == shape]

    def step_logic(self, x, _):
        conditions = self.conditions(x[0].type.shape)
        if conditions:
            self.emit(self.rng.choice(("and", "or", "xor", "minimum", "maximum")),
                      self.rng.choice(conditions), self.rng.choice(conditions))

    def step_select(self, x, y):
        conditions = self.conditions(x[0].type.shape)
        if conditions:
            self.emit("select", self.rng.choice(conditions), x, y)

    def step_cast(self, x, _):
        self.emit("cast", x, dtype=self.rng.choice(("int64", "int32", "int8", "uint32")))

    def step_offset(self, x, _):
        pointers = [k for k in self.known if k[0].type.is_pointer
                    and k[0].type.shape == x[0].type.shape]
        if pointers and x[0].type.dtype in (int32, int64):
            self.emit("offset", self.rng.choice(pointers), x)

    def step_new(self, *_):
        self.emit("arange", start=self.rng.choice((0, 4, 16, 5, -8)), size=16)

    def step_constant(self, *_):
        self.emit("constant", value=self.rng.choice(CONSTANTS), dtype="int32")
        self.emit("splat", self.known[-1], shape=self.rng.choice(SHAPES))

    def step_shape(self, *_):
        x = self.pick(lambda t: True)
        shape = x[0].type.shape
        sampled = self.rng.choice
        if not shape:
            return self.emit("splat", x, shape=sampled(SHAPES))
        name = sampled(("reshape", "broadcast", "transpose", "flip", "extract", "join", "split"))
        if name == "reshape":
            size = x[0].type.size
            options = [s for s in ((16,), (4, 4), (2, 8), (1, 16), (16, 1), (4, 1, 4), (2, 2, 4),
                                   (32,), (4, 8), (8, 4), (2, 4, 4), (1,), (4,), (2, 2), (1, 4), ())
                       if np.prod(s, dtype=int) == size]
            return self.emit(name, x, shape=sampled(options or [shape]))
        if name == "broadcast":
            return self.emit(name, x, shape=tuple(4 if n == 1 else n for n in shape))
        if name == "transpose":
            return self.emit(name, x, axes=tuple(self.rng.sample(range(len(shape)), len(shape))))
        if name == "flip":
            return self.emit(name, x, axis=len(shape) - 1)
        if name == "extract":
            half = tuple(max(1, n // 2) for n in shape)
            return self.emit(name, x, starts=tuple(n if m > 1 else 0
                                                   for n, m in zip(half, shape, strict=True)),
                             shape=half)
        if name == "split" and shape[-1] == 2:
            return self.emit(name, x)
        if name == "join":
            return self.emit(name, x, self.pick(lambda t: t == x[0].type))
        return None


PARAMETERS = (Parameter("pointer", "x", None, 16), Parameter("value", "n", None, 8, 1),
              Parameter("value", "m"), Parameter("value", "k", None, 4))


def drawn_function(seed, steps):
    rng = random.Random(seed)
    drawn = Drawn(rng)
    types = (TileType(PointerType(float32)), *(TileType(int32),) * 3)
    n = rng.choice((8, 16, 24, 128, 2**31 - 8))
    m = rng.choice(((0, 1, 5, -3, 64, 2**31 - 1, -(2**31))))
    k = rng.choice(((0, 4, -4, 20, 2**31 - 4, -(2**31))))
    arrays = (np.array(1 << 40, np.int64), *(np.array(i, np.int32) for i in (n, m, k)))
    with drawn.builder.region(*types) as (region, args):
        drawn.known += list(zip(args, arrays, strict=True))
        for _ in range(steps):
            drawn.step()
        drawn.builder.emit(OPS["return"])
    return Function("f", PARAMETERS, region), drawn.known


def runs(array, axis, length):
    """The aligned runs of a length along an axis, on the last axis."""
    moved = np.moveaxis(array.reshape(array.shape or (1,)), axis, -1)
    return moved.reshape(*moved.shape[:-1], -1, length)


def assert_holds(info, array, unit):
    wide = np.asarray(array).astype(object)
    for number, axis in enumerate(info.axes):
        constant = runs(wide, number, axis.constancy)
        assert (constant == constant[..., :1]).all(), f"constancy of {axis} in {array}"
        if array.dtype == bool:
            bounded = runs(np.asarray(array), number, axis.bounded)
            assert (bounded[..., :-1] >= bounded[..., 1:]).all(), f"fall of {axis} in {array}"
        starts = runs(wide, number, axis.contiguity)[..., 0]
        assert (starts % axis.divisibility == 0).all(), f"divisibility of {axis} in {array}"
        certain = max(1, min(axis.contiguity, axis.divisibility // unit))
        rising = runs(wide, number, certain)
        expected = rising[..., :1] + unit * np.arange(certain).astype(object)
        assert (rising == expected).all(), f"contiguity of {axis} in {array}"
        if certain > 1:
            assert (rising[..., 0] % (certain * unit) == 0).all(), f"start of {axis} in {array}"
    if info.value is not None:
        assert (wide == info.value).all()


@pytest.mark.parametrize("seed", range(150))
def test_what_axis_info_says_holds_of_the_computed_values(seed):
    fn, known = drawn_function(seed, steps=14)

    infos = axis_info(fn)

    for value, array in known:
        if value.type.is_pointer or value.type.dtype.kind != "float":
            assert_holds(infos[value], array, 4 if value.type.is_pointer else 1)


@pytest.mark.parametrize("seed", range(150))
def test_ranges_hold_the_computed_values(seed):
    fn, known = drawn_function(seed, steps=14)

    ranges = axis_info(fn).ranges

    for value, array in known:
        if not value.type.is_pointer:
            assert ranges[value].low <= int(array.min()) <= int(array.max()) <= ranges[value].high


@pytest.mark.parametrize("dtype, constancy", [("int64", 16), ("int32", 1)])
def test_quotients_towards_zero_are_equal_along_runs_that_do_not_fall_below_zero(dtype, constancy):
    cast = "cast %pid : int64" if dtype == "int64" else "add %pid, %n : int32"
    fn = parse(f"""kernel k(
  %n: int32 = value(n) {{divisibility=16}}
) {{
  %pid = program_id {{axis=0}} : int32
  %p = {cast}
  %c = constant {{value=1024}} : {dtype}
  %start = mul %p, %c : {dtype}
  %s = splat %start : tile<1024x{dtype}>
  %i = arange {{start=0, size=1024}} : tile<1024xint32>
  %w = cast %i : tile<1024x{dtype}>
  %at = add %s, %w : tile<1024x{dtype}>
  %m = cast %n : {dtype}
  %d = splat %m : tile<1024x{dtype}>
  %q = truncdiv %at, %d : tile<1024x{dtype}>
  return
}}
""")
    quotients = fn.body.ops[-2].result

    assert axis_info(fn)[quotients].axes[0].constancy == constancy
