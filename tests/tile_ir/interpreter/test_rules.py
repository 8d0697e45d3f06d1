"""Tiles that are not arrays mean what their arrays mean."""

import random

import numpy as np
import pytest

from blocknumba.tile_ir.interpreter.affine import (
    Affine, Box, Start, as_uniform, choose, dense, merge,
)
from blocknumba.tile_ir.interpreter.machine import plan
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import TileType, bool_, float32, int32, int64, uint8
from blocknumba.tile_ir.ops import create  # noqa: F401  registers the ops

COUNT = 3
NUMBERS = (0, 1, 2, 3, 5, -1, -4, 100, 2**31 - 1, -(2**31), 7, 64)


class Drawn:
    """A random straight-line program of integers and masks, each value as an array and not."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.builder = Builder(folding=False)
        self.known = []  # (value, tile, array)

    def scalar(self, dtype):
        """A parameter on which programs agree, or that rises evenly, or that does neither."""
        kind = self.random.choice(("same", "even", "any"))
        with self.builder.region(TileType(dtype)) as (_, (argument,)):
            pass
        if kind == "same":
            column = np.full(1, self.random.choice(NUMBERS)).astype(dtype.numpy)
            tile = column
        elif kind == "even":
            start = Start(self.random.randrange(9), self.random.choice((-1, 1, 3, 8)), None, COUNT)
            column = start.column().astype(dtype.numpy)
            tile = Affine(start, (), (), dtype.numpy, int(column.min()), int(column.max()))
            if dtype.is_float or (column != start.column()).any():
                tile = column
        else:
            column = np.array(self.random.choices(NUMBERS, k=COUNT)).astype(dtype.numpy)
            tile = column
        self.known.append((argument, tile, column))

    def emit(self, name, *operands, **attrs):
        result = self.builder.emit(OPS[name], *(v for v, _, _ in operands), **attrs)
        array = OPS[name].evaluate(*(a for _, _, a in operands), **attrs)
        (step,) = plan_of(result.owner)
        tile = step.run(None, *(t for _, t, _ in operands))
        self.known.append((result, tile, array))
        return self.known[-1]

    def pick(self, accepts):
        found = [k for k in self.known if accepts(k[0].type)]
        return self.random.choice(found) if found else None

    def grow(self):
        """One more op, when the one drawn has operands."""
        name = self.random.choice(("arange", "splat", "add", "sub", "mul", "mod", "lt", "le", "gt",
                                   "ge", "and", "cast", "broadcast", "reshape", "transpose",
                                   "extract", "select", "minimum", "flip"))
        if name == "arange":
            return self.emit(name, start=self.random.choice((0, 0, -3, 5)),
                             size=self.random.choice((1, 4, 8)))
        if name == "splat":
            shape = self.random.choice(((4,), (1,), (4, 1), (1, 8), (2, 4)))
            return self.emit_if(name, self.pick(lambda t: t.is_scalar), shape=shape)
        return getattr(self, f"grow_{name}", lambda: self.grow_binary(name))()

    def emit_if(self, name, *operands, **attrs):
        if all(operands):
            self.emit(name, *operands, **attrs)

    def grow_binary(self, name):
        x = self.pick(lambda t: t.dtype != bool_)
        if name == "and":
            x = self.pick(lambda t: t.dtype == bool_ and t.shape)
        y = x and self.pick(lambda t: t == x[0].type)
        self.emit_if(name, x, y)

    def grow_select(self):
        x = self.pick(lambda t: t.shape and t.dtype != bool_)
        condition = x and self.pick(lambda t: t.dtype == bool_ and t.shape == x[0].type.shape)
        y = x and self.pick(lambda t: t == x[0].type)
        self.emit_if("select", condition, x, y)

    def grow_cast(self):
        dtype = self.random.choice(("int32", "int64", "int64", "uint8", "float32"))
        self.emit_if("cast", self.pick(lambda t: t.dtype != bool_), dtype=dtype)

    def grow_broadcast(self):
        x = self.pick(lambda t: 1 in t.shape)
        shape = x and tuple(self.random.choice((1, 4)) if n == 1 else n for n in x[0].type.shape)
        self.emit_if("broadcast", x, shape=shape)

    def grow_reshape(self):
        x = self.pick(lambda t: t.shape)
        if x is not None:
            shapes = {1: ((1,), (1, 1)), 4: ((4,), (2, 2), (4, 1), (1, 4)),
                      8: ((8,), (2, 4), (8, 1), (1, 8), (2, 2, 2))}
            wanted = shapes.get(x[0].type.size, (x[0].type.shape,))
            self.emit("reshape", x, shape=self.random.choice(wanted))

    def grow_transpose(self):
        x = self.pick(lambda t: len(t.shape) > 1)
        axes = x and tuple(self.random.sample(range(len(x[0].type.shape)), len(x[0].type.shape)))
        self.emit_if("transpose", x, axes=axes)

    def grow_extract(self):
        x = self.pick(lambda t: t.shape and t.shape[0] > 1)
        if x is not None:
            n, *rest = x[0].type.shape
            self.emit("extract", x, starts=(n // 2, *(0 for _ in rest)), shape=(n // 2, *rest))

    def grow_flip(self):
        self.emit_if("flip", self.pick(lambda t: t.shape), axis=0)


def plan_of(op):
    """The steps of a region of one op."""
    builder = Builder(folding=False)
    with builder.region() as (region, _):
        builder.append(op)
        builder.emit(OPS["return"])
    return plan(region)[region]


@pytest.mark.parametrize("seed", range(60))
def test_every_rule_gives_what_the_arrays_give(seed):
    drawn = Drawn(seed)
    with np.errstate(all="ignore"):
        for dtype in (int32, int32, int64, uint8, float32):
            drawn.scalar(dtype)
        for _ in range(60):
            drawn.grow()
    for value, tile, array in drawn.known:
        found = dense(tile)
        assert found.dtype == value.type.dtype.numpy, value.owner
        assert found.shape[1:] == value.type.shape
        shape = (COUNT, *value.type.shape)
        np.testing.assert_array_equal(np.broadcast_to(found, shape), np.broadcast_to(array, shape))


def test_the_usual_addresses_and_masks_need_no_array():
    drawn = Drawn(0)
    start = Start(0, 8, None, COUNT)
    with drawn.builder.region(TileType(int32)) as (_, (first,)):
        pass
    first = (first, Affine(start, (), (), np.dtype(np.int32), 0, 16), start.column().astype("i4"))
    offsets = drawn.emit("add", drawn.emit("splat", first, shape=(8,)),
                         drawn.emit("arange", start=0, size=8))
    limit = drawn.emit("splat", drawn.emit("constant", value=21, dtype="int32"), shape=(8,))

    mask = drawn.emit("lt", offsets, limit)

    assert isinstance(offsets[1], Affine) and offsets[1].start.rows is None
    assert isinstance(mask[1], Box) and [list(b) for b in mask[1].bounds[0][1:]] == [[8, 8, 5]]


def test_choosing_and_merging_programs_gives_them_back():
    groups = np.array([0, 2]), np.array([1])
    affine = Affine(Start(5, 3, np.array([1, 0, 7]), 3), (2,), (4,), np.dtype(np.int32), 0, 40)
    box = Box(((0, np.array([4, 0, 2])),), (4,))
    uniform = as_uniform(np.array([1.0, 2.0, 3.0]))
    for tile in (affine, box, uniform, np.arange(12).reshape(3, 4)):
        merged = merge(3, [(p, choose(tile, p)) for p in groups])
        np.testing.assert_array_equal(dense(merged), dense(tile))
