"""Functions of the language in NumPy alone that keep elements apart: arithmetic, shapes, parts.

FUNCTIONS has them by name, as kernels write bn.<name>.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy_tiles import (
    BOOL, BYTE_FLOATS, DTYPES, HALVES, Span, Tile, as_dtype, computed, converted, float_dtype,
    result_dtype, tile,
)

FLOAT32 = DTYPES["float32"]
FUNCTIONS: dict[str, object] = {name if name != "bool" else "bool_": dtype
                                for name, dtype in DTYPES.items()} | {
    "span": Span, **{dtype.name: dtype for dtype in BYTE_FLOATS}}


def language(function: Callable) -> Callable:
    """Decorator: a function of the language under its own name."""
    FUNCTIONS[function.__name__.rstrip("_")] = function
    return function


# elementwise ----------------------------------------------------------------------------------

def _umulhi(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"uint{x.dtype.itemsize * 8}")
    wide = x.astype(unsigned).astype(object) * y.astype(unsigned).astype(object)
    return np.asarray(wide >> unsigned.itemsize * 8).astype(unsigned).astype(x.dtype)


for _name, _function in {"minimum": np.minimum, "maximum": np.maximum, "umulhi": _umulhi}.items():
    FUNCTIONS[_name] = lambda x, y, _f=_function: computed(_f, result_dtype(x, y), x, y)

# computed in float64 of float32 operands: nearer than the bounds that are tested
_WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.float64): np.dtype(np.longdouble)}
_EXACT_OF_FLOATS = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "round": np.rint,
    "sqrt": np.sqrt, "sqrt_rn": np.sqrt, "fmin": np.fmin, "fmax": np.fmax,
    "copysign": np.copysign, "div": np.divide, "fdiv": np.divide, "div_rn": np.divide,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
for _name, _function in _EXACT_OF_FLOATS.items():
    FUNCTIONS[_name] = lambda *given, _f=_function: computed(_f, float_dtype(*given), *given)


def _near(function: Callable) -> Callable[..., Tile]:
    def apply(*given: object) -> Tile:
        dtype = float_dtype(*given)
        wide = _WIDE[FLOAT32 if dtype in HALVES else dtype]
        with np.errstate(all="ignore"):
            found = np.asarray(function(*(as_dtype(x, dtype).astype(wide) for x in given)))
        return Tile(converted(found, dtype) if wide != np.longdouble else found.astype(dtype))
    return apply


def _by_math(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of Python's math, element by element, in float64."""
    return lambda x: np.vectorize(function, otypes=[np.float64])(x.astype(np.float64))


NEAR = {"exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
        "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
        "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
        "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
        "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x), "hypot": np.hypot,
        "atan2": np.arctan2, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "erf": _by_math(math.erf), "erfc": _by_math(math.erfc), "gamma": _by_math(math.gamma),
        "lgamma": _by_math(math.lgamma)}
for _name, _function in NEAR.items():
    FUNCTIONS[_name] = _near(_function)


@language
def abs_(x):
    return abs(x)


@language
def where(condition, x, y):
    dtype = result_dtype(x, y)
    return tile(np.where(as_dtype(condition, BOOL), as_dtype(x, dtype), as_dtype(y, dtype)))


@language
def nextafter(x, y):
    """Towards y; of halves by their bits."""
    dtype = float_dtype(x, y)
    a, b = as_dtype(x, dtype), as_dtype(y, dtype)
    return tile(np.nextafter(a, b))


@language
def clamp(x, low, high):
    return FUNCTIONS["minimum"](FUNCTIONS["maximum"](x, low), high)


@language
def fma(x, y, z):
    """Of small whole numbers, so that products and sums are exact."""
    dtype = float_dtype(x, y, z)
    return Tile(converted(as_dtype(x, dtype).astype(np.float64) * as_dtype(y, dtype)
                          + as_dtype(z, dtype), dtype))


def _bits(x: Tile) -> np.ndarray:
    return x.array.view(f"u{x.dtype.itemsize}")


@language
def popc(x):
    return tile(np.bitwise_count(_bits(x)).astype(x.dtype))


@language
def clz(x):
    width = x.dtype.itemsize * 8
    return tile(np.vectorize(lambda v: width - int(v).bit_length())(_bits(x)).astype(x.dtype))


@language
def ffs(x):
    return tile(np.vectorize(lambda v: (int(v) & -int(v)).bit_length())(_bits(x)).astype(x.dtype))


@language
def cast(x, dtype, bitcast=False):
    if bitcast:
        return Tile(np.ascontiguousarray(x.array).view(dtype).reshape(x.shape))
    return x.to(dtype) if isinstance(x, Tile) else Tile(as_dtype(x, dtype))


# tiles of one value, shapes and parts ---------------------------------------------------------

@language
def arange(start, stop):
    return tile(np.arange(start, stop, dtype=np.int32))


@language
def full(shape, value, dtype):
    return tile(np.full(shape, as_dtype(value, dtype)))


FUNCTIONS["zeros"] = lambda shape, dtype: full(shape, 0, dtype)
FUNCTIONS["ones"] = lambda shape, dtype: full(shape, 1, dtype)
FUNCTIONS["zeros_like"] = lambda x: full(x.shape, 0, x.dtype)
FUNCTIONS["ones_like"] = lambda x: full(x.shape, 1, x.dtype)
FUNCTIONS["full_like"] = lambda x, value: full(x.shape, value, x.dtype)


def _moved(function: Callable) -> Callable[..., Tile]:
    return lambda x, *given, **named: tile(function(x.array, *given, **named))


for _name, _function in {
        "reshape": np.reshape, "view": np.reshape, "ravel": np.ravel, "permute": np.transpose,
        "swapaxes": np.swapaxes, "expand_dims": np.expand_dims, "squeeze": np.squeeze,
        "broadcast_to": np.broadcast_to, "repeat": np.repeat, "roll": np.roll,
        "flip": lambda x, dim=-1: np.flip(x, dim), "item": lambda x: x.reshape(()),
        "trans": lambda x, *order: np.transpose(x, order) if order else np.matrix_transpose(x),
        }.items():
    FUNCTIONS[_name] = _moved(_function)


def _of_one_dtype(tiles: tuple[Tile, ...]) -> list[np.ndarray]:
    dtype = result_dtype(*tiles)
    return [as_dtype(x, dtype) for x in tiles]


@language
def join(x, y):
    return tile(np.stack(np.broadcast_arrays(*_of_one_dtype((x, y))), -1))


@language
def split(x):
    return tile(x.array[..., 0]), tile(x.array[..., 1])


@language
def interleave(x, y):
    both = join(x, y)
    return tile(both.array.reshape(*both.shape[:-2], -1))


@language
def concatenate(tiles, axis=0):
    return tile(np.concatenate(_of_one_dtype(tiles), axis))


@language
def stack(tiles, axis=0):
    return tile(np.stack(_of_one_dtype(tiles), axis))


@language
def cat(x, y, dim=0):
    return concatenate((x, y), dim)


@language
def broadcast(x, y):
    a, b = np.broadcast_arrays(x.array, y.array)
    return tile(a), tile(b)


@language
def extract(x, starts, shape):
    places = np.ix_(*(np.arange(start, start + size) for start, size in zip(starts, shape)))
    inside = np.ones(shape, bool)
    for own, extent in zip(places, x.shape):
        inside = inside & (own >= 0) & (own < extent)
    kept = tuple(np.clip(own, 0, extent - 1) for own, extent in zip(places, x.shape))
    return tile(np.where(inside, x.array[kept], np.zeros((), x.dtype)))


@language
def insert(x, part, starts):
    found, values = x.array.copy(), as_dtype(part, x.dtype)
    for place in np.ndindex(part.shape):
        to = tuple(start + own for start, own in zip(starts, place))
        if all(0 <= i < n for i, n in zip(to, x.shape)):
            found[to] = values[place]
    return tile(found)


@language
def gather(x, index, axis):
    extent, places = x.shape[axis], index.array.astype(np.int64)
    inside = (places >= 0) & (places < extent)
    found = np.take_along_axis(x.array, np.where(inside, places, 0), axis)
    return tile(np.where(inside, found, np.zeros((), x.dtype)))


@language
def scatter(x, index, values, axis):
    found, values = x.array.copy(), np.broadcast_to(as_dtype(values, x.dtype), index.shape)
    for place in np.ndindex(index.shape):
        at = int(index.array[place])
        if 0 <= at < x.shape[axis]:
            found[(*place[:axis], at, *place[axis + 1:])] = values[place]
    return tile(found)
