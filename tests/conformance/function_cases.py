"""Cases of functions of the language, as kernels call them, next to NumPy in higher precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import blocknumba as bn
from blocknumba.tile_ir.ir.types import DTYPES, DType

from case import Case, covers, function_case

SHAPES = ((1,), (64,), (2048,), (4, 8), (64, 32), (2, 4, 8), (2, 2, 2, 2, 2, 2, 2, 2))
PLAIN = [dtype for dtype in DTYPES.values() if dtype.bits > 8 or not dtype.is_float]


def _numbers(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Small whole numbers: exact in every dtype, and so are their sums."""
    low = -9 if dtype.is_signed else 0
    high = 2 if dtype.kind == "bool" else 10
    generator = np.random.default_rng((len(shape), *shape))
    return generator.integers(max(low, -high), high, shape).astype(dtype.numpy)


def _along(name: str, of_numpy: Callable, result: Callable[[DType], np.dtype]) -> None:
    """Declare the cases of a function along an axis whose results are exact."""
    function = getattr(bn, name)

    def cases() -> Iterator[Case]:
        for dtype in PLAIN:
            for shape in SHAPES:
                for axis in (None, *range(min(len(shape), 3))):
                    x = _numbers(dtype, shape)
                    wide = x.astype(np.float64 if dtype.is_float else np.int64)
                    expected = np.asarray(of_numpy(wide, axis=axis)).astype(result(dtype))
                    yield function_case(name, f"{dtype}-{shape}-{axis}",
                                        _of_axis(function, axis), [x], [expected],
                                        signed_zeros=False)

    covers(f"bn.{name}")(cases)


def _of_axis(function: Callable, axis: int | None) -> Callable:
    """A function of one tile, along an axis."""
    return lambda x: function(x, axis=axis)


def _same(dtype: DType) -> np.dtype:
    return dtype.numpy


def _sums(dtype: DType) -> np.dtype:
    if dtype.is_float or dtype.bits > 16:
        return dtype.numpy
    return np.dtype(np.uint32 if dtype.kind == "uint" else np.int32)


for _name, _of_numpy, _result in (
        ("sum", np.sum, _sums), ("max", np.max, _same), ("min", np.min, _same),
        ("cumsum", np.cumsum, _sums), ("argmax", np.argmax, lambda _: np.dtype(np.int32)),
        ("argmin", np.argmin, lambda _: np.dtype(np.int32)),
        ("any", np.any, lambda _: np.dtype(bool)), ("all", np.all, lambda _: np.dtype(bool))):
    _along(_name, _of_numpy, _result)


def _shaped(name: str, function: Callable, of_numpy: Callable) -> None:
    """Declare the cases of a function that only moves elements of a tile of rank 2 or more."""
    def cases() -> Iterator[Case]:
        for dtype in DTYPES.values():
            for shape in SHAPES[3:]:
                x = _numbers(dtype, shape)
                yield function_case(name, f"{dtype}-{shape}", function, [x], [of_numpy(x)])

    covers(f"bn.{name}")(cases)


for _name, _function, _of_numpy in (
        ("ravel", bn.ravel, np.ravel), ("trans", bn.trans, np.matrix_transpose),
        ("flip", bn.flip, partial(np.flip, axis=-1)),
        ("swapaxes", lambda x: bn.swapaxes(x, 0, 1), lambda x: np.swapaxes(x, 0, 1)),
        ("zeros_like", bn.zeros_like, np.zeros_like), ("ones_like", bn.ones_like, np.ones_like)):
    _shaped(_name, _function, _of_numpy)
