"""Cases of the ops that make, rearrange and reduce tiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce

import numpy as np

from blocknumba.tile_ir.ir.types import ANY, DTYPES, DType, float32, int32
from blocknumba.tile_ir.ops.reduce import KINDS

from case import Case, covers, one_op_case
from elementwise_cases import element
from oracle import rounded, wrapped
from values import edges

SHAPES = ((1,), (8,), (256,), (4, 8), (16, 1), (2, 4, 8), (1, 1, 1), (2, 4, 2, 4))


def distinct(shape: tuple[int, ...], dtype: DType = int32) -> np.ndarray:
    """A tile whose elements tell where they come from."""
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype.numpy)


def moved(x: np.ndarray, shape: tuple[int, ...],
          source: Callable[..., tuple[int, ...]]) -> np.ndarray:
    """The tile of shape whose element at index is x[source(*index)]."""
    result = np.empty(shape, x.dtype)
    for index in np.ndindex(shape):
        result[index] = x[source(*index)]
    return result


@covers("constant")
def constant_cases() -> Iterator[Case]:
    for dtype in DTYPES.values():
        for value in edges(dtype)[:40]:
            yield one_op_case("constant", f"{dtype}-{value}", [], [np.array(value)],
                              value=value.item() if dtype.bits > 16 else
                              (float(value) if dtype.is_float else value.item()),
                              dtype=dtype.name)


@covers("arange")
def arange_cases() -> Iterator[Case]:
    for start, size in ((0, 1), (0, 128), (-5, 8), (2**31 - 4, 4), (-2**31, 2)):
        expected = np.array(range(start, start + size), np.int32)
        yield one_op_case("arange", f"{start}-{size}", [], [expected], start=start, size=size)


@covers("splat")
def splat_cases() -> Iterator[Case]:
    for dtype in sorted(ANY, key=str):
        yield one_op_case("splat", str(dtype), [distinct((), dtype)],
                          [np.full((4, 2), distinct((), dtype))], shape=(4, 2))
    for shape, dtype in itertools.product(SHAPES, (int32, DTYPES["float64"], DTYPES["int8"])):
        x = distinct((), dtype)
        yield one_op_case("splat", f"{shape}-{dtype}", [x], [np.full(shape, x)], shape=shape)


@covers("broadcast")
def broadcast_cases() -> Iterator[Case]:
    pairs = (((1,), (8,)), ((4, 1), (4, 8)), ((1, 8), (4, 8)), ((1, 1), (2, 2)), ((4,), (4,)),
             ((1, 4, 1), (2, 4, 8)))
    for given, shape in pairs:
        x = distinct(given)
        expected = moved(x, shape, lambda *i: tuple(k % n for k, n in zip(i, x.shape)))
        yield one_op_case("broadcast", f"{given}-{shape}", [x], [expected], shape=shape)


@covers("reshape")
def reshape_cases() -> Iterator[Case]:
    shapes = ((16,), (4, 4), (2, 8), (8, 2), (16, 1), (1, 16), (2, 2, 2, 2))
    for given, shape in itertools.product(shapes, repeat=2):
        x = distinct(given)
        expected = np.array(x.ravel().tolist(), x.dtype).reshape(shape)
        yield one_op_case("reshape", f"{given}-{shape}", [x], [expected], shape=shape)
    yield one_op_case("reshape", "scalar", [distinct((1, 1))], [distinct(())], shape=())


@covers("transpose")
def transpose_cases() -> Iterator[Case]:
    for shape in ((8,), (4, 8), (2, 4, 8), (2, 1, 4, 2)):
        for axes in itertools.permutations(range(len(shape))):
            x = distinct(shape)
            back = [axes.index(axis) for axis in range(len(shape))]
            expected = moved(x, tuple(shape[a] for a in axes),
                             lambda *i, back=back: tuple(i[k] for k in back))
            yield one_op_case("transpose", f"{shape}-{axes}", [x], [expected], axes=axes)


@covers("join", "split")
def pair_cases() -> Iterator[Case]:
    for shape in ((1,), (8,), (4, 8)):
        x, y = distinct(shape), -distinct(shape)
        both = np.empty((*shape, 2), x.dtype)
        both[..., 0], both[..., 1] = x, y
        yield one_op_case("join", str(shape), [x, y], [both])
        yield one_op_case("split", str(shape), [both], [x, y])


@covers("flip")
def flip_cases() -> Iterator[Case]:
    for shape, dtype in itertools.product(SHAPES, (int32, DTYPES["float16"])):
        for axis in range(len(shape)):
            x = distinct(shape, dtype)
            expected = moved(x, shape, lambda *i, a=axis, n=shape[axis]: (
                *i[:a], n - 1 - i[a], *i[a + 1:]))
            yield one_op_case("flip", f"{shape}-{axis}-{dtype}", [x], [expected], axis=axis)


@covers("extract")
def extract_cases() -> Iterator[Case]:
    x = distinct((8, 4))
    for shape in ((8, 4), (4, 2), (1, 1), (2, 4)):
        for starts in itertools.product(range(0, 8, shape[0]), range(0, 4, shape[1])):
            expected = moved(x, shape, lambda i, j, s=starts: (s[0] + i, s[1] + j))
            yield one_op_case("extract", f"{starts}-{shape}", [x], [expected], starts=starts,
                              shape=shape)


# reductions -----------------------------------------------------------------------------------

def _reducible(dtype: DType, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values whose reduction is exact in any order: small for sums, few above 1 for products."""
    generator = np.random.default_rng(len(shape))
    if kind == "prod":
        x = np.where(generator.random(shape) < 0.05, 2, 1)
        signs = [1, -1] if dtype.is_signed else [1]
        return (x * generator.choice(signs, shape)).astype(dtype.numpy)
    low = 0 if dtype.kind in ("bool", "uint") else -100
    return generator.integers(low, 2 if dtype.kind == "bool" else 100, shape).astype(dtype.numpy)


def reduced(x: list[bool | int | float], kind: str, dtype: DType) -> bool | int | float:
    """One reduction, exact until the end."""
    if kind in ("sum", "prod"):
        step = (lambda a, b: a + b) if kind == "sum" else (lambda a, b: a * b)
        exact = reduce(step, map(Fraction, x))
        return rounded(exact, dtype) if dtype.is_float else wrapped(int(exact), dtype)
    name = {"max": "maximum", "min": "minimum"}.get(kind, kind)
    return reduce(lambda a, b: element(name, dtype, a, b), x)


def _along(x: np.ndarray, axis: int, one: Callable[[list], object], dtype: np.dtype) -> np.ndarray:
    """one(elements along axis) at every other index."""
    rows = np.moveaxis(x, axis, -1)
    results = [one(rows[index].tolist()) for index in np.ndindex(rows.shape[:-1])]
    return np.array(results).astype(dtype).reshape(rows.shape[:-1])


@covers("reduce")
def reduce_cases() -> Iterator[Case]:
    for kind, (_, dtypes) in KINDS.items():
        for dtype in sorted(dtypes, key=str):
            for shape in ((64,), (4, 8)) if dtype != float32 else SHAPES:
                x = _reducible(dtype, kind, shape)
                for axis in range(len(shape)):
                    expected = _along(x, axis, lambda row: reduced(row, kind, dtype), x.dtype)
                    yield one_op_case("reduce", f"{kind}-{dtype}-{shape}-{axis}", [x], [expected],
                                      axis=axis, kind=kind, signed_zeros=False)
    # one rounding: in float16 itself the ones would be lost one by one
    tall = np.array([2048.0, *[1.0] * 1023], np.float16)
    yield one_op_case("reduce", "sum-float16-wide", [tall], [np.array(3072.0, np.float16)],
                      axis=0, kind="sum")


@covers("reduce", "arg_reduce")
def nan_cases() -> Iterator[Case]:
    """NaN among numbers, infinities, and equal elements."""
    nan, inf = np.nan, np.inf
    rows = np.array([[nan, 1, 2, 3], [1, nan, nan, 9], [1, 3, 3, 1], [inf, -inf, inf, -inf],
                     [nan, nan, nan, nan], [-1, -1, -1, -2], [0.0, -0.0, 0.0, -0.0], [5, 4, 3, 2]])
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = rows.astype(DTYPES[dtype].numpy)
        for kind in ("max", "min", "fmax", "fmin"):
            expected = _along(x, 1, lambda row: reduced(row, kind, DTYPES[dtype]), x.dtype)
            yield one_op_case("reduce", f"{kind}-{dtype}-nan", [x], [expected], axis=1, kind=kind,
                              signed_zeros=False)


def first_best(row: list[bool | int | float], kind: str) -> int:
    """The index of the first NaN, or of the first greatest or least element."""
    for index, value in enumerate(row):
        if value != value:
            return index
    return row.index(max(row) if kind == "max" else min(row))


@covers("arg_reduce")
def arg_reduce_cases() -> Iterator[Case]:
    for dtype in (d for d in DTYPES.values() if d.bits > 8 or not d.is_float):
        for shape, kind in itertools.product(((64,), (4, 8), (2, 4, 8)), ("max", "min")):
            x = _reducible(dtype, "sum", shape)
            if dtype.is_float:
                x.flat[5] = np.nan
            for axis in range(len(shape)):
                expected = _along(x, axis, lambda row: first_best(row, kind), np.int32)
                yield one_op_case("arg_reduce", f"{kind}-{dtype}-{shape}-{axis}", [x], [expected],
                                  axis=axis, kind=kind)
