"""Functions of the language in NumPy alone that combine elements, and all others, in FUNCTIONS.

Sums of floats are exact where they are given small whole numbers, as generated kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy_elementwise import FLOAT32, FUNCTIONS, language, where
from numpy_tiles import (
    BOOL, DTYPES, HALVES, Reference, Span, Tile, as_dtype, computed, converted, float_dtype,
    is_float, result_dtype, tile,
)

INT32, UINT32 = DTYPES["int32"], DTYPES["uint32"]

# reductions and scans -------------------------------------------------------------------------

def _sum_dtype(dtype: np.dtype) -> np.dtype:
    if is_float(dtype) or dtype.itemsize > 2:
        return dtype
    return UINT32 if dtype.kind == "u" else INT32


def _least(dtype: np.dtype) -> object:
    return -math.inf if is_float(dtype) else False if dtype == BOOL else np.iinfo(dtype).min


def _most(dtype: np.dtype) -> object:
    return math.inf if is_float(dtype) else True if dtype == BOOL else np.iinfo(dtype).max


def _axes(x: np.ndarray, axis: object) -> tuple[int, ...]:
    given = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(own % x.ndim for own in given)


def _reduction(function: Callable, identity: Callable, dtype_of: Callable = lambda d: d,
               wide: np.dtype | None = None) -> Callable:
    def reduce_along(x: Tile, axis: object = None, keep_dims: bool = False, where: object = None,
                     initial: object = None) -> Tile:
        dtype = dtype_of(x.dtype)
        values = converted(x.array, dtype)
        if where is not None:
            values = np.where(where.array, values, as_dtype(identity(dtype), dtype)).astype(dtype)
        computed_in = wide if wide and is_float(dtype) else dtype
        with np.errstate(all="ignore"):
            found = np.asarray(function(values.astype(computed_in), axis=_axes(x.array, axis),
                                        keepdims=keep_dims))
        result = Tile(converted(found.astype(computed_in), dtype))
        return result if initial is None else computed(
            _COMBINING[function], dtype, result, initial)
    return reduce_along


def _extreme(ufunc: np.ufunc) -> Callable:
    return lambda x, axis, keepdims: ufunc.reduce(x, axis=axis, keepdims=keepdims)


_MAX, _MIN, _XOR, _OR, _AND = map(_extreme, (np.maximum, np.minimum, np.bitwise_xor,
                                             np.bitwise_or, np.bitwise_and))
_COMBINING = {np.sum: np.add, np.prod: np.multiply, _MAX: np.maximum, _MIN: np.minimum,
              _XOR: np.bitwise_xor, _OR: np.bitwise_or, _AND: np.bitwise_and}
_F64 = DTYPES["float64"]
for _name, _made in {
        "sum": _reduction(np.sum, lambda d: 0, _sum_dtype, _F64),
        "prod": _reduction(np.prod, lambda d: 1, _sum_dtype, _F64),
        "max": _reduction(_MAX, _least), "min": _reduction(_MIN, _most),
        "xor_sum": _reduction(_XOR, lambda d: 0), "reduce_or": _reduction(_OR, lambda d: 0),
        "reduce_and": _reduction(_AND, lambda d: True if d == BOOL else -1)}.items():
    FUNCTIONS[_name] = _made


@language
def any_(x, axis=None, keep_dims=False, where=None):
    return _reduction(_OR, lambda d: False, lambda d: BOOL)(x, axis, keep_dims, where)


@language
def all_(x, axis=None, keep_dims=False, where=None):
    return _reduction(_AND, lambda d: True, lambda d: BOOL)(x, axis, keep_dims, where)


@language
def count_nonzero(x, axis=None, keep_dims=False):
    return FUNCTIONS["sum"](x.to(BOOL), axis, keep_dims)


@language
def ptp(x, axis=None):
    return FUNCTIONS["max"](x, axis) - FUNCTIONS["min"](x, axis)


@language
def mean(x, axis=None, keep_dims=False, where=None):
    dtype = float_dtype(x)
    wide = FLOAT32 if dtype in HALVES else dtype
    counts = Tile(np.ones(x.shape, wide))
    total, count = (FUNCTIONS["sum"](v, axis, keep_dims, where) for v in (x.to(wide), counts))
    return (total / count).to(dtype)


def _without_nan(name: str, filling: Callable) -> Callable:
    def along(x: Tile, axis: object = None) -> Tile:
        kept = x if not is_float(x.dtype) else where(FUNCTIONS["isnan"](x), Tile(
            as_dtype(filling(x.dtype), x.dtype)), x)
        found = FUNCTIONS[name](kept, axis)
        if name not in ("max", "min") or not is_float(x.dtype):
            return found
        empty = all_(FUNCTIONS["isnan"](x), axis)
        return where(empty, Tile(as_dtype(math.nan, x.dtype)), found)
    return along


for _name, _filling in {"sum": lambda d: 0, "prod": lambda d: 1, "max": _least,
                        "min": _most}.items():
    FUNCTIONS[f"nan{_name}"] = _without_nan(_name, _filling)


def _moments(x: Tile, axis: object, ddof: int = 0) -> tuple[np.ndarray, np.ndarray, np.dtype]:
    """Mean and variance in higher precision, and the dtype of the result."""
    wide = x.array.astype(np.longdouble if x.dtype.itemsize == 8 else np.float64)
    axes = _axes(wide, axis)
    return wide.mean(axis=axes), wide.var(axis=axes, ddof=ddof), float_dtype(x)


def _narrowed(values: np.ndarray, dtype: np.dtype) -> Tile:
    return Tile(converted(np.asarray(values, np.float64), dtype))


@language
def var(x, axis=None, ddof=0):
    return _narrowed(_moments(x, axis, ddof)[1], _moments(x, axis)[2])


@language
def std(x, axis=None, ddof=0):
    return _narrowed(np.sqrt(_moments(x, axis, ddof)[1]), _moments(x, axis)[2])


@language
def welford(x, axis=None):
    mean_of, variance, dtype = _moments(x, axis)
    dtype = FLOAT32 if dtype in HALVES else dtype
    count = x.array.size // max(mean_of.size, 1)
    return tuple(_narrowed(v, dtype) for v in (
        mean_of, variance * count, np.full(mean_of.shape, count)))


@language
def logsumexp(x, axis=None):
    wide = x.array.astype(np.float64)
    return _narrowed(np.log(np.exp(wide).sum(axis=_axes(wide, axis))), float_dtype(x))


@language
def softmax(x, dim=0):
    powers = np.exp(x.array.astype(np.float64))
    return _narrowed(powers / powers.sum(axis=dim, keepdims=True), float_dtype(x))


def _ignoring_nan(function: Callable) -> Callable[..., Tile]:
    """A function of NumPy that leaves NaN out, in float64; the dtype of a mean."""
    def along(x: Tile, axis: object = None) -> Tile:
        wide = x.array.astype(np.float64)
        return _narrowed(function(wide, axis=_axes(wide, axis)), float_dtype(x))
    return along


FUNCTIONS |= {"nanmean": _ignoring_nan(np.nanmean), "nanvar": _ignoring_nan(np.nanvar),
              "nanstd": _ignoring_nan(np.nanstd)}


def _ranks(x: np.ndarray) -> np.ndarray:
    """Ints in the order of the elements: NaN is greatest, zeros are equal."""
    found = np.unique(x.astype(np.float64) if x.dtype in HALVES else x, return_inverse=True)[1]
    return found.reshape(x.shape).astype(np.int64)


def _index_of(x: Tile, axis: int | None, keep_dims: bool, where: Tile | None, is_max: bool) -> Tile:
    array = x.array.reshape(-1) if axis is None else x.array
    at = 0 if axis is None else axis % array.ndim
    keys = _ranks(array)
    keys = keys if is_max else -keys
    if is_float(x.dtype):  # NaN is the greatest and the least
        keys = np.where(np.isnan(array), 1 << 60, keys)
    if where is not None:
        mask = np.broadcast_to(where.array, x.shape).reshape(array.shape)
        keys = np.where(mask, keys, -1 << 60)
    found = np.argmax(keys, axis=at).astype(np.int32)
    if keep_dims:
        found = found.reshape((1,) * x.array.ndim) if axis is None else np.expand_dims(found, at)
    return tile(found)


@language
def argmax(x, axis=None, keep_dims=False, where=None):
    return _index_of(x, axis, keep_dims, where, True)


@language
def argmin(x, axis=None, keep_dims=False, where=None):
    return _index_of(x, axis, keep_dims, where, False)


@language
def nanargmax(x, axis=None):
    return argmax(x, axis, where=~FUNCTIONS["isnan"](x))


@language
def nanargmin(x, axis=None):
    return argmin(x, axis, where=~FUNCTIONS["isnan"](x))


def _scan(ufunc: np.ufunc, dtype_of: Callable) -> Callable:
    def scan(x: Tile, axis: int | None = None, reverse: bool = False) -> Tile:
        dtype = dtype_of(x.dtype)
        values = converted(x.array, dtype)
        values = values.reshape(-1) if axis is None else values
        at = 0 if axis is None else axis
        wide = _F64 if is_float(dtype) else dtype
        values = np.flip(values, at) if reverse else values
        with np.errstate(all="ignore"):
            found = ufunc.accumulate(values.astype(wide), axis=at, dtype=wide)
        found = converted(found, dtype)
        return tile(np.flip(found, at) if reverse else found)
    return scan


for _name, _ufunc, _dtype_of in (
        ("cumsum", np.add, _sum_dtype), ("cumprod", np.multiply, _sum_dtype),
        ("cummax", np.maximum, lambda d: d), ("cummin", np.minimum, lambda d: d)):
    FUNCTIONS[_name] = _scan(_ufunc, _dtype_of)


FUNCTIONS |= {f"nan{name}": lambda x, axis=None, _n=name, _f=filling: FUNCTIONS[_n](
    where(FUNCTIONS["isnan"](x), Tile(np.asarray(_f, x.dtype)), x) if is_float(x.dtype) else x,
    axis) for name, filling in (("cumsum", 0), ("cumprod", 1))}


def _folded(tiles: object, axis: int, combine: Callable, reverse: bool) -> list[list[Tile]]:
    """The combinations of the first elements along an axis, for each number of them."""
    given = tiles if isinstance(tiles, tuple) else (tiles,)
    extent = given[0].shape[axis]
    order = range(extent)[::-1] if reverse else range(extent)
    found: list[list[Tile]] = []
    for i in order:
        own = [tile(np.take(t.array, i, axis)) for t in given]
        if found:
            made = combine(*found[-1], *own)
            made = made if isinstance(made, tuple) else (made,)
            own = [Tile(as_dtype(m, t.dtype)) for m, t in zip(made, given)]
        found.append(own)
    return found[::-1] if reverse else found


@language
def associative_scan(tiles, axis, combine, reverse=False):
    found = _folded(tiles, axis, combine, reverse)
    made = tuple(tile(np.stack([row[i].array for row in found], axis))
                 for i in range(len(found[0])))
    return made if isinstance(tiles, tuple) else made[0]


@language
def reduce(tiles, axis, combine):
    made = tuple(_folded(tiles, axis, combine, False)[-1])
    return made if isinstance(tiles, tuple) else made[0]


# order ----------------------------------------------------------------------------------------

def _argsorted(x: Tile, axis: int, descending: bool) -> np.ndarray:
    ranks = _ranks(x.array)
    return np.argsort(-ranks if descending else ranks, axis=axis, stable=True)


@language
def argsort(x, axis=-1, descending=False):
    return tile(_argsorted(x, axis, descending).astype(np.int32))


@language
def sort(x, axis=-1, descending=False):
    return tile(np.take_along_axis(x.array, _argsorted(x, axis, descending), axis))


@language
def topk(x, k, axis=-1, largest=True, return_indices=False):
    places = np.take(_argsorted(x, axis, largest), np.arange(k), axis)
    values = tile(np.take_along_axis(x.array, places, axis))
    return (values, tile(places.astype(np.int32))) if return_indices else values


@language
def median(x, axis=None):
    dtype = float_dtype(x)
    return Tile(converted(np.asarray(np.median(x.array.astype(np.float64), axis)), dtype))


@language
def histogram(x, bins, mask=None):
    counted = x.array if mask is None else x.array[np.broadcast_to(mask.array, x.shape)]
    counted = counted[(counted >= 0) & (counted < bins)].astype(np.int64)
    return tile(np.bincount(counted.reshape(-1), minlength=bins).astype(np.int32))


@language
def searchsorted(a, v, side="left"):
    dtype = result_dtype(a, v)
    keys, wanted = as_dtype(a, dtype), as_dtype(v, dtype)
    if dtype in HALVES:  # ml_dtypes does not put NaN last
        keys, wanted = keys.astype(np.float32), wanted.astype(np.float32)
    return tile(np.searchsorted(keys, wanted, side).astype(np.int32))


@language
def unique_counts(x):
    values, counts = np.unique(x.array, return_counts=True, equal_nan=False)
    rest = x.array.size - len(values)
    return (tile(np.concatenate([values, np.repeat(values[-1:], rest)])),
            tile(np.pad(counts, (0, rest)).astype(np.int32)), tile(np.int32(len(values))))


# products, random numbers, memory -------------------------------------------------------------

@language
def dot(a, b, acc=None, out_dtype=None):
    integers = a.dtype.kind in "iu"
    sums = INT32 if integers else FLOAT32 if a.dtype in HALVES else a.dtype
    found = np.matmul(a.array.astype(np.int64 if integers else np.float64),
                      b.array.astype(np.int64 if integers else np.float64))
    if acc is not None:
        found = found + acc.array.astype(found.dtype)
    return Tile(converted(found, out_dtype or sums))


def _philox(seed: int, counter: np.ndarray) -> list[np.ndarray]:
    """Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011)."""
    low32 = np.uint64(2**32 - 1)
    words = counter.astype(np.int64).astype(np.uint64)
    c = [words & low32, words >> np.uint64(32), np.zeros_like(words), np.zeros_like(words)]
    key = [seed & 2**32 - 1, seed >> 32 & 2**32 - 1]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), second & low32,
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), first & low32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return [word.astype(np.uint32) for word in c]


def _uniform(bits: np.ndarray) -> np.ndarray:
    signed = bits.astype(np.int32)
    positive = np.where(signed < 0, ~signed, signed)
    return positive.astype(np.float32) * np.float32(4.6566127342e-10)


@language
def randint(seed, offset):
    return tile(_philox(seed, offset.array)[0])


@language
def randint4x(seed, offset):
    return tuple(map(tile, _philox(seed, offset.array)))


@language
def rand(seed, offset):
    return tile(_uniform(_philox(seed, offset.array)[0]))


@language
def rand4x(seed, offset):
    return tuple(tile(_uniform(word)) for word in _philox(seed, offset.array))


def _normal(u1: np.ndarray, u2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958)."""
    u1, u2 = np.maximum(u1, np.float32(1e-7)).astype(np.float64), u2.astype(np.float64)
    radius, angle = np.sqrt(-2 * np.log(u1)), 2 * np.pi * u2
    return radius * np.cos(angle), radius * np.sin(angle)


@language
def randn(seed, offset):
    words = [_uniform(word) for word in _philox(seed, offset.array)]
    return _narrowed(_normal(*words[:2])[0], FLOAT32)


@language
def randn4x(seed, offset):
    words = [_uniform(word) for word in _philox(seed, offset.array)]
    return tuple(_narrowed(v, FLOAT32) for pair in (words[:2], words[2:]) for v in _normal(*pair))


@language
def pair_uniform_to_normal(u1, u2):
    return tuple(_narrowed(v, FLOAT32) for v in _normal(u1.array, u2.array))


@language
def uint_to_uniform_float(x):
    return tile(_uniform(x.array))


@language
def philox(seed, c0, c1, c2, c3):
    """Of counters whose words 2 and 3 are 0."""
    return tuple(map(tile, _philox(seed, c0.array.astype(np.int64))))


@language
def load(pointer, mask=True, other=0):
    return pointer.read(mask, other)


@language
def store(pointer: Reference, value, mask=True):
    pointer.write(value, mask)


for _name, _function in {
        "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor, "xchg": lambda old, new: new}.items():
    FUNCTIONS[f"atomic_{_name}"] = lambda pointer, value, mask=True, _f=_function: (
        pointer.update(_f, value, mask))

@language
def swizzle2d(i, j, size_i, size_j, size_g):
    """The walk through a grid in groups of rows, written out."""
    places = []
    for first in range(0, size_i, size_g):
        rows = range(first, min(first + size_g, size_i))
        places += [(row, column) for column in range(size_j) for row in rows]
    flat = i.array * size_j + j.array
    return tuple(tile(np.take([place[k] for place in places], flat, mode="clip").astype(np.int32))
                 for k in (0, 1))


@language
def spans(stop, size, start=0, step=None):
    return (Span(first, size) for first in range(start, stop, step or size))


@language
def map_(function, x):
    """Of a function of one int that returns two."""
    found = [function(int(v)) for v in x.array.reshape(-1)]
    return tuple(tile(np.array([pair[k] for pair in found], np.int64).reshape(x.shape))
                 for k in (0, 1))


@language
def atomic_cas(pointer, wanted, value):
    wanted = as_dtype(wanted, pointer.array.dtype)
    return pointer.update(lambda old, new: new if old == wanted else old, value)


FUNCTIONS |= {"static_range": range, "range": lambda *bounds, **hints: range(*bounds),
              "constexpr": None, "span": Span,
              "multiple_of": lambda x, n: x, "assume": lambda condition: None,
              "next_power_of_2": lambda n: 2 ** math.ceil(math.log2(n)),
              "cdiv": lambda x, y: -(-x // y)}
