"""Random well-typed functions, and what they compute: a function of a seed."""

from __future__ import annotations

import random

import numpy as np

from blocknumba.tile_ir import interpreter  # noqa: F401  registers how ops with effects are executed
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import (
    PointerType, TileType, bool_, float16, float32, int32, int64, int8, uint32,
)

ELEMENTS = 64  # of the input arrays, and of each result of a program
RESULTS = 12  # values that a program stores
PROGRAMS = 3

_SHAPES = ((), (8,), (1,), (4, 8), (4, 1), (1, 8))
_DTYPES = (int32, int32, int32, float32, float32, bool_, uint32, int64, int8, float16)
_INTS = (0, 1, 2, 3, 4, 7, 8, -1, -8, 100)
_FLOATS = (0.0, -0.0, 1.0, 2.0, 0.5, -1.0, float("inf"), float("nan"), 3.25)
_ARITHMETIC = ("add", "sub", "mul", "minimum", "maximum")
_OF_INTEGERS = (*_ARITHMETIC, "floordiv", "mod", "and", "or", "xor", "shl", "shr")
_OF_FLOATS = (*_ARITHMETIC, "div", "fmin", "fmax")
_OF_BOOLS = ("and", "or", "xor", "minimum")
_HINTS = ({}, {"unroll": 2}, {"num_stages": 3, "warp_specialize": True})
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = {"int": ("neg", "absolute", "invert"), "uint": ("invert",), "float": ("neg", "absolute"),
          "bool": ("invert",)}


class _Generator:
    """Emits random ops on the values that can be seen."""

    def __init__(self, seed: int, folding: bool):
        self.random = random.Random(seed)
        self.builder = Builder(folding)
        self.pool: list[Value] = []
        self.depth = 0

    def emit(self, name: str, *operands: Value, **attrs):
        made = self.builder.emit(OPS[name], *operands, **attrs)
        self.pool += made if isinstance(made, tuple) else (made,)
        return made

    def pick(self, accepted=lambda type_: True) -> Value | None:
        found = [value for value in self.pool
                 if not value.type.is_pointer and accepted(value.type)]
        return self.random.choice(found) if found else None

    def like(self, type_: TileType) -> Value:
        """A value of a type, made if there is none."""
        found = self.pick(lambda t: t == type_)
        if found is not None and self.random.random() < 0.8:
            return found
        number = self.random.choice(_FLOATS if type_.dtype.is_float else _INTS)
        if type_.dtype == bool_:
            number = bool(number & 1)
        elif type_.dtype.kind == "uint":
            number = abs(number)
        scalar = self.emit("constant", value=number, dtype=type_.dtype.name)
        return self.emit("splat", scalar, shape=type_.shape) if type_.shape else scalar

    def steps(self, count: int) -> None:
        kinds = ["binary"] * 5 + ["compare"] * 2 + ["unary", "select", "cast", "shape", "shape",
                                                    "splat", "new", "load", "load", "mask"]
        if self.depth < 3:
            kinds += ["branch", "count", "again"]
        for _ in range(count):
            getattr(self, f"step_{self.random.choice(kinds)}")()

    def step_binary(self) -> None:
        x = self.pick()
        names = (_OF_BOOLS if x.type.dtype == bool_ else
                 _OF_FLOATS if x.type.dtype.is_float else _OF_INTEGERS)
        self.emit(self.random.choice(names), x, self.like(x.type))

    def step_compare(self) -> None:
        x = self.pick()
        self.emit(self.random.choice(_COMPARISONS), x, self.like(x.type))

    def step_unary(self) -> None:
        x = self.pick()
        self.emit(self.random.choice(_UNARY[x.type.dtype.kind]), x)

    def step_select(self) -> None:
        x = self.pick()
        self.emit("select", self.like(x.type.of(bool_)), x, self.like(x.type))

    def step_cast(self) -> None:
        self.emit("cast", self.pick(), dtype=self.random.choice(_DTYPES).name)

    def step_splat(self) -> None:
        self.emit("splat", self.pick(lambda t: t.is_scalar), shape=self.random.choice(_SHAPES))

    def step_new(self) -> None:
        self.emit("arange", start=self.random.choice((0, 0, 5, -3)), size=8)

    def step_shape(self) -> None:
        x = self.pick(lambda t: t.shape)
        if x is None:
            return
        shape = x.type.shape
        name = self.random.choice(("reshape", "broadcast", "transpose", "flip", "reduce", "extract"))
        if name == "reshape":
            options = {8: ((8,), (1, 8), (8, 1), (2, 4)), 32: ((32,), (4, 8), (8, 4)),
                       4: ((4, 1), (4,), (1, 4)), 1: ((1,), (), (1, 1))}
            self.emit(name, x, shape=self.random.choice(options.get(x.type.size, (shape,))))
        elif name == "broadcast":
            self.emit(name, x, shape=tuple(4 if extent == 1 else extent for extent in shape))
        elif name == "transpose":
            self.emit(name, x, axes=tuple(self.random.sample(range(len(shape)), len(shape))))
        elif name == "extract":
            self.emit(name, x, starts=(0,) * len(shape), shape=tuple(max(1, n // 2) for n in shape))
        elif name == "flip":
            self.emit(name, x, axis=len(shape) - 1)
        else:
            kinds = ("max", "min") if x.type.dtype.is_float or x.type.dtype == bool_ else (
                "sum", "max", "xor")
            self.emit(name, x, axis=len(shape) - 1, kind=self.random.choice(kinds))

    def pointers(self, array: Value, count: Value) -> Value:
        start = self.emit("splat", array, shape=count.type.shape) if count.type.shape else array
        return self.emit("offset", start, count)

    def step_load(self) -> None:
        index = self.pick(lambda t: t.dtype == int32)
        last = self.emit("constant", value=ELEMENTS - 1, dtype="int32")
        if index.type.shape:
            last = self.emit("splat", last, shape=index.type.shape)
        pointer = self.pointers(self.x, self.emit("and", index, last))
        operands = [pointer]
        if self.random.random() < 0.6:
            operands.append(self.like(index.type.of(bool_)))
            if self.random.random() < 0.5:
                operands.append(self.like(index.type.of(float32)))
        self.emit("load", *operands)

    def step_mask(self) -> None:
        """The mask of the array dialect."""
        index = self.pick(lambda t: t.dtype == int32)
        bounds = [self.like(TileType(int32)), self.n]
        if index.type.shape:
            bounds = [self.emit("splat", bound, shape=index.type.shape) for bound in bounds]
        zero = self.like_zero(index.type)
        lower = self.emit("ge", index, zero)
        self.emit("and", lower, self.emit("lt", index, self.random.choice(bounds)))

    def like_zero(self, type_: TileType) -> Value:
        zero = self.emit("constant", value=0, dtype="int32")
        return self.emit("splat", zero, shape=type_.shape) if type_.shape else zero

    # control flow -----------------------------------------------------------------------------

    def body(self, *arg_types: TileType, steps: int, end):
        """A region with random ops, ended by end(args)."""
        outer, self.pool = self.pool, list(self.pool)
        self.depth += 1
        with self.builder.region(*arg_types) as (region, args):
            self.pool += args
            self.steps(steps)
            self.store_something()
            end(args)
        self.depth -= 1
        self.pool = outer
        return region

    def step_branch(self) -> None:
        types = tuple(self.pick().type for _ in range(self.random.randrange(3)))
        condition = self.like(TileType(bool_))
        regions = [self.body(steps=self.random.randrange(4),
                             end=lambda _: self.end("yield", map(self.like, types)))
                   for _ in range(2)]
        self.control("if", condition, regions=regions, result_types=types)

    def step_count(self) -> None:
        initial = [self.pick() for _ in range(self.random.randrange(4))]
        types = [value.type for value in initial]
        bounds = [self.like_small() for _ in range(2)]
        step = self.emit("constant", value=self.random.choice((1, 1, 2, -1)), dtype="int32")
        region = self.body(TileType(int32), *types, steps=self.random.randrange(5),
                           end=lambda args: self.end("yield", self.carried(args[1:], initial)))
        self.control("for", *bounds, step, *initial, regions=[region],
                     **self.random.choice(_HINTS))

    def step_again(self) -> None:
        """A `loop` that counts to 3."""
        zero, one, limit = (self.emit("constant", value=n, dtype="int32") for n in (0, 1, 3))
        initial = [self.pick() for _ in range(self.random.randrange(3))]

        def end(args):
            following = self.emit("add", args[0], one)
            condition = self.emit("lt", following, limit)
            self.end("continue_if", (condition, following, *self.carried(args[1:], initial)))

        region = self.body(TileType(int32), *(v.type for v in initial),
                           steps=self.random.randrange(4), end=end)
        self.control("loop", zero, *initial, regions=[region])

    def carried(self, args, initial) -> list[Value]:
        """A yielded value; sometimes the argument itself, or the initial value."""
        choices = []
        for arg, first in zip(args, initial, strict=True):
            choices.append(self.random.choice((arg, first, self.like(arg.type), self.like(arg.type))))
        return choices

    def like_small(self) -> Value:
        """A scalar from 0 to 3, sometimes a constant."""
        if self.random.random() < 0.5:
            return self.emit("constant", value=self.random.randrange(4), dtype="int32")
        three = self.emit("constant", value=3, dtype="int32")
        return self.emit("and", self.pick(lambda t: t == TileType(int32)), three)

    def end(self, name: str, values) -> None:
        self.builder.emit(OPS[name], *values)

    def control(self, name: str, *operands: Value, **attrs) -> None:
        made = self.builder.emit(OPS[name], *operands, **attrs)
        self.pool += made if isinstance(made, tuple) else (made,)

    # results ----------------------------------------------------------------------------------

    def store_something(self) -> None:
        if self.random.random() < 0.5:
            self.store(self.pick(), self.random.randrange(RESULTS))

    def store(self, value: Value, slot: int) -> None:
        """Store a value where only this program and this slot do."""
        dtype, array = (float32, self.out) if value.type.dtype.is_float else (int32, self.counts)
        value = self.builder.emit(OPS["cast"], value, dtype=dtype.name)
        flat = self.builder.emit(OPS["reshape"], value, shape=(value.type.size,))
        index = self.builder.emit(OPS["arange"], start=slot * ELEMENTS, size=value.type.size)
        start = self.builder.emit(OPS["offset"], array, self.first)
        start = self.builder.emit(OPS["splat"], start, shape=(value.type.size,))
        pointer = self.builder.emit(OPS["offset"], start, index)
        operands = [pointer, flat]
        if self.random.random() < 0.3:
            operands.append(self.like(flat.type.of(bool_)))
        self.builder.emit(OPS["store"], *operands)

    def function(self, steps: int) -> Function:
        parameters = (Parameter("pointer", "x", None, 16), Parameter("pointer", "out"),
                      Parameter("pointer", "counts"), Parameter("extent", "x", 0, 8, 0),
                      Parameter("value", "k"), Parameter("value", "s"))
        types = (TileType(PointerType(float32)), TileType(PointerType(float32)),
                 TileType(PointerType(int32)), TileType(int32), TileType(int32), TileType(float32))
        with self.builder.region(*types, hints=("x", "out", "counts", "n", "k", "s")) as (body, args):
            self.x, self.out, self.counts, self.n, *_ = args
            self.pool += args[3:]
            program = self.emit("program_id", axis=0)
            size = self.emit("constant", value=ELEMENTS * RESULTS, dtype="int32")
            self.first = self.emit("mul", program, size)
            self.steps(steps)
            for slot in range(RESULTS):
                self.store(self.pick(), slot)
            self.end("return", ())
        return Function("random", parameters, body)


def random_function(seed: int, steps: int = 14, folding: bool = False) -> Function:
    """The function of a seed.

    x, out: float32 arrays; counts: an int32 array; n: the extent of x; k: an int; s: a float.
    """
    return _Generator(seed, folding).function(steps)


def results(fn: Function, seed: int) -> list[bytes]:
    """The bits of what a random function stores, every NaN written as one NaN."""
    numbers = np.random.default_rng(seed)
    x = numbers.choice(np.array([*_FLOATS, -7.5, 1e30, 65504], np.float32), ELEMENTS)
    out = np.zeros(ELEMENTS * RESULTS * PROGRAMS, np.float32)
    counts = np.zeros(ELEMENTS * RESULTS * PROGRAMS, np.int32)
    k, s = np.int32(numbers.integers(-9, 9)), np.float32(numbers.choice(np.array([0.5, -0.0, 3.0])))
    interpreter.run(fn, (PROGRAMS, 1, 1), {"x": x, "out": out, "counts": counts, "k": k, "s": s})
    out[np.isnan(out)] = np.nan
    return [out.tobytes(), counts.tobytes()]
