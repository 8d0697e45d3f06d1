"""Cases of the ops that change dtypes or choose between tiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from blocknumba.tile_ir.ir.types import ANY, DTYPES, DType, float8_e4m3fn, float8_e5m2

from case import Case, covers, one_op_case
from oracle import converted
from values import edges, padded, random

FLOAT8 = (float8_e4m3fn, float8_e5m2)


def _values(dtype: DType) -> np.ndarray:
    """Edges, random values, and for floats the neighbourhood of every integer dtype's bounds."""
    arrays = [edges(dtype), random(dtype, np.random.default_rng(0), 100)]
    if dtype.is_float and dtype.bits > 8:
        bounds = [sign * 2.0**bits for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1)]
        with np.errstate(over="ignore"):
            near = np.array([*bounds, 0.5, 448, 464, 480, 61439, 61441, 65519, 65520, 1e-8])
            arrays += [(near * factor).astype(dtype.numpy) for factor in (1, 1 - 2**-8, 1 + 2**-8)]
    if dtype.is_integer and dtype.bits == 64:
        # two roundings would go wrong here
        ties = [(257 << k) + d for k in (20, 40, 54) for d in (-1, 0, 1)]
        arrays.append(np.array(ties, dtype.numpy))
    return padded([np.concatenate(arrays)])[0]


@covers("cast")
def cast_cases() -> Iterator[Case]:
    """Every dtype to every dtype, and to narrower floats towards zero."""
    for given, to in itertools.product(DTYPES.values(), repeat=2):
        narrower = given.is_float and to.is_float and 8 < to.bits < given.bits
        x = _values(given)
        plain = x.astype(np.float64) if given.is_float else x
        for rounding in ("nearest", "zero") if narrower else ("nearest",):
            results = [converted(v, given, to, rounding == "zero") for v in plain.tolist()]
            expected = np.array(results, None if to.is_float else to.numpy)
            yield one_op_case("cast", f"{given}-{to}-{rounding}", [x],
                              [expected.astype(np.float64).astype(to.numpy) if to.is_float
                               else expected], dtype=to.name, rounding=rounding)


@covers("cast")
def saturating_cast_cases() -> Iterator[Case]:
    """Floats to 8-bit floats, of which none becomes infinite."""
    for name, to in itertools.product(("float16", "bfloat16", "float32", "float64"), FLOAT8):
        given = DTYPES[name]
        x, greatest = _values(given), float(ml_dtypes.finfo(to.numpy).max)
        limited = [v if v != v else min(max(v, -greatest), greatest)
                   for v in x.astype(np.float64).tolist()]
        expected = np.array([converted(v, given, to) for v in limited]).astype(to.numpy)
        yield one_op_case("cast", f"{name}-{to}-saturate", [x], [expected], dtype=to.name,
                          rounding="saturate")


@covers("cast")
def cast_midpoint_cases() -> Iterator[Case]:
    """Floats at, and next to, all that lies halfway between two 8-bit floats."""
    for name, to in itertools.product(("float16", "bfloat16", "float32", "float64"), FLOAT8):
        given = DTYPES[name]
        values = sorted(v for v in edges(to).astype(np.float64).tolist() if v >= 0 and v < np.inf)
        values.append(2 * values[-1] - values[-2])  # the first that there is no room for
        middle = [(a + b) / 2 for a, b in itertools.pairwise(values)]
        factors = [[1], [1 - 2.0**-8], [1 + 2.0**-8], [1 - 2.0**-40], [1 + 2.0**-40]]
        exact = (np.array([*values, *middle]) * factors).ravel()
        with np.errstate(over="ignore"):
            x = padded([np.concatenate([exact, -exact]).astype(given.numpy)])[0]
        expected = np.array([converted(v, given, to) for v in x.astype(np.float64).tolist()])
        yield one_op_case("cast", f"{given}-{to}-midpoints", [x], [expected.astype(to.numpy)],
                          dtype=to.name)


@covers("bitcast")
def bitcast_cases() -> Iterator[Case]:
    """Every pair of dtypes of one size; bits are compared through integers."""
    for given, to in itertools.product(DTYPES.values(), repeat=2):
        if given.bits == to.bits and "bool" not in (given.kind, to.kind):
            x = _values(given)
            expected = np.frombuffer(x.tobytes(), to.numpy)
            yield one_op_case("bitcast", f"{given}-{to}", [x], [expected], dtype=to.name)


@covers("select")
def select_cases() -> Iterator[Case]:
    for dtype in sorted(ANY, key=str):
        x = _values(dtype)
        y = x[::-1].copy()
        for title, condition in (("some", np.arange(len(x)) % 3 == 0), ("all", x == x),
                                 ("none", np.zeros(len(x), bool))):
            expected = x.copy()
            expected[~condition] = y[~condition]
            yield one_op_case("select", f"{dtype}-{title}", [condition, x, y], [expected])


@covers("hint")
def hint_cases() -> Iterator[Case]:
    x = np.arange(64, dtype=np.int32) * 4
    yield one_op_case("hint", "true", [x], [x], divisibility=(4,), constancy=(1,))
