"""Cases of the elementwise ops: edge values of every dtype against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import ml_dtypes
import numpy as np

from blocknumba.tile_ir.ir.function import OpDef
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import DTYPES, DType, TileType
from blocknumba.tile_ir.ops.elementwise import ERROR_OF_TERMS, ERROR_ULPS

from case import Case, covers, one_op_case
from oracle import COMPARISON, EXACT, INTEGER, NEAR, near, wrapped
from values import operands

ELEMENTWISE = tuple(dict.fromkeys((*INTEGER, *COMPARISON, *EXACT, "floordiv", *NEAR)))
_EITHER_ZERO = ("minimum", "maximum", "fmin", "fmax")
_SHAPES = ((), (1,), (4,), (2, 1), (4, 8), (2, 4, 8), (2, 2, 2, 2, 2), (2048,), (64, 32),
           (1, 16, 1, 8), (2, 1, 2, 1, 4, 2), (2, 2, 1, 2, 2, 2, 2), (1, 2, 2, 2, 2, 2, 2, 4),
           (1, 1, 1, 1, 1, 1, 1, 1), (1024, 1), (2, 512))
_MANY = 8  # dtypes: an op that takes so many sees half of the shapes with each


def accepts(opdef: OpDef, dtype: DType) -> bool:
    """Whether an elementwise op takes tiles of a dtype."""
    try:
        opdef.infer(*[TileType(dtype)] * len(opdef.operands))
    except TypeError:
        return False
    return True


def element(name: str, dtype: DType, *values: bool | int | float) -> bool | int | float:
    """The result of an elementwise op for one element."""
    if name in COMPARISON:
        return COMPARISON[name](*values)
    if not dtype.is_float:
        result = INTEGER[name](*map(int, values), dtype)
        return bool(result) if dtype.kind == "bool" else wrapped(result, dtype)
    values = tuple(map(float, values))
    return EXACT[name](*values, dtype) if name in EXACT else near(name, values, dtype)


def elementwise_case(name: str, title: str, dtype: DType, tiles: list[np.ndarray]) -> Case:
    """A case whose result is computed element by element."""
    rows = [*zip(*(tile.ravel().tolist() for tile in tiles))]
    kind = np.dtype(bool) if name in COMPARISON else dtype.numpy
    results = [element(name, dtype, *row) for row in rows]
    results = np.array(results, kind if kind.kind in "biu" else np.float64).astype(kind)
    ulps = ERROR_ULPS.get(name, 0) if dtype.is_float else 0
    absolute = np.zeros(tiles[0].size)
    if name in ERROR_OF_TERMS:
        terms = [max(1, near(name, (-x,), dtype)) if -math.inf < x < 0 else 1 for (x,) in rows]
        absolute = ulps * float(ml_dtypes.finfo(kind).eps) * np.array(terms, np.float64)
    return one_op_case(name, title, tiles, [results.reshape(tiles[0].shape)],
                       ulps=min(ulps, 1) if dtype.bits == 16 else ulps, absolute=absolute,
                       signed_zeros=name not in _EITHER_ZERO)


def elementwise_cases(name: str) -> Iterator[Case]:
    """Edge values of every dtype that an op accepts; and every rank."""
    opdef = OPS[name]
    dtypes = [d for d in DTYPES.values() if accepts(opdef, d)]
    for number, dtype in enumerate(dtypes):
        whole = elementwise_case(name, str(dtype), dtype, operands(dtype, len(opdef.operands)))
        yield whole
        for shape in _SHAPES[number % 2::2] if len(dtypes) >= _MANY else _SHAPES:
            yield _drawn(whole, dtype, shape)


def _drawn(whole: Case, dtype: DType, shape: tuple[int, ...]) -> Case:
    """Elements of a case, drawn at random, in a shape."""
    rows = whole.expected["out0"].size
    chosen = np.random.default_rng((len(shape), *shape)).integers(0, rows, shape)
    tiles = [value[chosen] for name, value in whole.arguments.items() if name.startswith("a")]
    return one_op_case(whole.op, f"{dtype}-{'x'.join(map(str, shape)) or 'scalar'}", tiles,
                       [whole.expected["out0"][chosen]], ulps=whole.ulps,
                       absolute=whole.absolute[chosen.ravel()], signed_zeros=whole.signed_zeros)


for _name in ELEMENTWISE:
    covers(_name)(partial(elementwise_cases, _name))
