"""Tiles and arrays of the language in NumPy alone: dtypes, operators, loads and stores.

Nothing here uses blocknumba: it is written from docs/numbers.md and docs/memory.md, so that kernels
which run on both find faults of either.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BFLOAT16)
FLOATS = (*HALVES, np.dtype(np.float32), np.dtype(np.float64))
BYTE_FLOATS = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
INTS = tuple(np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64))
BOOL = np.dtype(bool)
DTYPES = {dtype.name: dtype for dtype in (BOOL, *INTS, *FLOATS)}


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is a float; NumPy's kind of bfloat16 is "V"."""
    return dtype in FLOATS


def promoted(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype of two tiles together."""
    if a == b or BFLOAT16 not in (a, b):
        return np.promote_types(a, b)
    other = b if a == BFLOAT16 else a
    if other == BOOL or other.kind in "iu" and other.itemsize == 1:
        return BFLOAT16
    return np.dtype(np.float32) if other.kind in "iu" or other.itemsize == 2 else other


def converted(values: np.ndarray, to: np.dtype) -> np.ndarray:
    """The elements in another dtype: ints wrap, floats become the nearest int that there is."""
    if values.dtype == to:
        return values
    if to == BOOL:
        return values != 0
    with np.errstate(all="ignore"):
        if not is_float(to) and to not in BYTE_FLOATS:
            return _as_ints(values, to) if is_float(values.dtype) else values.astype(to)
        if to in (*HALVES, *BYTE_FLOATS) and values.dtype.itemsize == 8:
            return _rounded_to_odd(values.astype(np.float64)).astype(to)
        through = {BFLOAT16, *BYTE_FLOATS} & {to, values.dtype}
        return (values.astype(np.float32) if through else values).astype(to)


def _as_ints(values: np.ndarray, to: np.dtype) -> np.ndarray:
    limits, wide = np.iinfo(to), np.trunc(values.astype(np.float64))
    inside = (wide >= float(limits.min)) & (wide < float(limits.max) + (to.itemsize < 8))
    found = np.where(inside, wide, 0).astype(to)
    beyond = np.where(wide > 0, limits.max, limits.min).astype(to)
    return np.where(inside | np.isnan(wide), found, beyond)


def _rounded_to_odd(values: np.ndarray) -> np.ndarray:
    """float64 as float32 whose last bit says that something was lost: it can be rounded again."""
    near = np.asarray(values.astype(np.float32))
    bits = near.view(np.uint32).copy()
    lost = np.isfinite(near) & (near != values)
    bits -= (lost & (np.abs(near) > np.abs(values))).astype(np.uint32)
    return (bits | lost).view(np.float32)


@dataclass(frozen=True, eq=False)
class Tile:
    """A tile; a scalar is one of no axes.  Python's ints and floats are weak beside it."""

    array: np.ndarray

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def to(self, dtype: np.dtype) -> Tile:
        return Tile(converted(self.array, dtype))

    def __bool__(self) -> bool:
        return bool(self.array.reshape(()))

    def __int__(self) -> int:
        return int(self.array.reshape(()))

    def __iter__(self) -> None:
        raise TypeError("tiles are not iterated over")

    def __getitem__(self, index: object) -> Tile:
        """Elements in a span, the last of an index, that are outside are 0."""
        *before, last = index if isinstance(index, tuple) else (index,)
        if not isinstance(last, Span):
            return Tile(self.array[index])
        indices, axis = last.index.array, len(before)
        inside = (indices >= 0) & (indices < self.shape[axis])
        found = np.moveaxis(np.take(self.array, np.where(inside, indices, 0), axis), axis, -1)
        return Tile(np.moveaxis(np.where(inside, found, np.zeros((), self.dtype)), -1, axis))

    def __neg__(self) -> Tile:
        return tile(np.negative(self.array))

    def __invert__(self) -> Tile:
        return tile(np.invert(self.array))

    def __abs__(self) -> Tile:
        return tile(np.abs(self.array))

    @property
    def T(self) -> Tile:  # noqa: N802  NumPy's name
        return Tile(self.array.T)


def tile(values: object) -> Tile:
    """What NumPy computed as a tile."""
    return Tile(np.asarray(values))


def _is_scalar(operand: Tile) -> bool:
    return operand.shape == ()


def result_dtype(*operands: object) -> np.dtype:
    """The dtype in which an operation on tiles and Python numbers is done."""
    tiles = [x for x in operands if isinstance(x, Tile)]
    floats = [x for x in tiles if is_float(x.dtype)]
    # an int scalar takes the dtype of floats, a float scalar beside int tiles keeps its own
    counted = [x for x in tiles if is_float(x.dtype) or not floats or not (
        _is_scalar(x) and x.dtype.kind in "iu")]
    dtype = counted[0].dtype
    for other in counted[1:]:
        dtype = promoted(dtype, other.dtype)
    if floats and all(map(_is_scalar, floats)) and len(counted) > len(floats):
        own = floats[0].dtype
        for other in floats[1:]:
            own = promoted(own, other.dtype)
        dtype = np.dtype(np.float32) if own in HALVES and dtype.itemsize > 2 else own
    for number in operands:
        if isinstance(number, float) and not is_float(dtype):
            dtype = np.dtype(np.float32)
        elif isinstance(number, int) and not isinstance(number, bool) and dtype == BOOL:
            dtype = np.dtype(np.int32)
    return dtype


def float_dtype(*operands: object) -> np.dtype:
    """The dtype in which an operation that makes floats is done."""
    dtype = result_dtype(*operands)
    return dtype if is_float(dtype) else np.dtype(f"float{64 if dtype.itemsize == 8 else 32}")


class IntOutOfRange(UserWarning):
    """NumPy raises OverflowError for an int beside an array whose dtype does not hold it."""


warnings.simplefilter("ignore", IntOutOfRange)


def as_dtype(operand: object, dtype: np.dtype) -> np.ndarray:
    """A tile or a Python number in a dtype; ints of run time wrap."""
    if isinstance(operand, Tile):
        return converted(operand.array, dtype)
    if isinstance(operand, int) and not isinstance(operand, bool) and not is_float(dtype):
        if dtype in INTS and not np.iinfo(dtype).min <= operand <= np.iinfo(dtype).max:
            warnings.warn(f"{operand} for {dtype}", IntOutOfRange, stacklevel=2)
        return np.asarray(operand & 2**64 - 1, np.uint64).astype(dtype)
    return converted(np.asarray(operand, np.float64), dtype)


def computed(function: Callable, dtype: np.dtype, *operands: object) -> Tile:
    """An operation of NumPy in a dtype; of 16-bit floats in float32, rounded once."""
    wide = np.dtype(np.float32) if dtype in HALVES else dtype
    values = [as_dtype(operand, dtype).astype(wide) for operand in operands]
    with np.errstate(all="ignore"):
        found = np.asarray(function(*values))
    return Tile(found if found.dtype == BOOL else converted(found, dtype))


def _operator(name: str, function: Callable, swapped: bool) -> Callable[[Tile, object], Tile]:
    def apply(x: Tile, y: object) -> Tile:
        dtype = float_dtype(x, y) if name == "truediv" else result_dtype(x, y)
        if dtype == BOOL and name in ("floordiv", "mod", "pow", "lshift", "rshift"):
            dtype = np.dtype(np.int8)
        return computed(function, dtype, *((y, x) if swapped else (x, y)))
    return apply


def _comparison(function: Callable) -> Callable[[Tile, object], Tile]:
    def apply(x: Tile, y: object) -> Tile:
        tiles = (x, y) if isinstance(y, Tile) else (x,)
        if isinstance(y, int) or all(t.dtype.kind in "iu" for t in tiles) and len(tiles) == 2:
            if not is_float(x.dtype):
                return tile(function(x.array, y.array if len(tiles) == 2 else y))
        return computed(function, result_dtype(x, y), x, y)
    return apply


def _shifted(function: Callable) -> Callable:
    def apply(x: np.ndarray, count: np.ndarray) -> np.ndarray:
        bits = x.dtype.itemsize * 8
        inside = (count >= 0) & (count < bits)
        beyond = np.where(x < 0, -1, 0).astype(x.dtype) if function is np.right_shift else (
            np.zeros_like(x))
        return np.where(inside, function(x, np.where(inside, count, 0).astype(x.dtype)), beyond)
    return apply


for _name, _function in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
        "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "lshift": _shifted(np.left_shift), "rshift": _shifted(np.right_shift)}.items():
    setattr(Tile, f"__{_name}__", _operator(_name, _function, False))
    setattr(Tile, f"__r{_name}__", _operator(_name, _function, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Tile, f"__{_name}__", _comparison(getattr(operator, _name)))


# memory ---------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Span:
    """Consecutive indices of an axis."""

    start: int
    size: int

    @property
    def index(self) -> Tile:
        return tile(np.arange(self.start, self.start + self.size, dtype=np.int32))


@dataclass(frozen=True)
class Reference:
    """Elements of an array: their flat numbers, and which of them are inside."""

    array: np.ndarray
    places: np.ndarray
    inside: np.ndarray

    def __add__(self, offsets: object) -> Reference:
        """Pointers to elements further on in a contiguous array."""
        more = offsets.array if isinstance(offsets, Tile) else np.asarray(offsets)
        places = self.places + more.astype(np.int64)
        return Reference(self.array, places, (places >= 0) & (places < self.array.size))

    def read(self, mask: object = True, other: object = 0) -> Tile:
        """The elements; other where they are outside or masked off."""
        allowed = self.inside & _mask(mask)
        dtype = self.array.dtype
        flat = self.array.reshape(-1) if self.array.size else np.zeros(1, dtype)
        found = flat[np.where(allowed, self.places, 0)]
        return Tile(np.where(allowed, found, as_dtype(other, dtype)).astype(dtype))

    def write(self, value: object, mask: object = True) -> None:
        """Replace the elements that are inside and not masked off."""
        allowed = np.broadcast_to(self.inside & _mask(mask), self.places.shape)
        values = np.broadcast_to(as_dtype(value, self.array.dtype), self.places.shape)
        self.array.reshape(-1)[self.places[allowed]] = values[allowed]

    def update(self, function: Callable, value: object, mask: object = True) -> Tile:
        """Combine elements with values, one after the other; what they were before."""
        allowed = np.broadcast_to(self.inside & _mask(mask), self.places.shape)
        values = np.broadcast_to(as_dtype(value, self.array.dtype), self.places.shape)
        flat, before = self.array.reshape(-1), np.zeros(self.places.shape, self.array.dtype)
        for place in zip(*np.nonzero(allowed)) if self.places.shape else [()] * bool(allowed):
            at = self.places[place]
            before[place] = flat[at]
            with np.errstate(all="ignore"):
                flat[at] = function(flat[at], values[place])
        return Tile(before)


def _mask(mask: object) -> np.ndarray:
    return mask.array if isinstance(mask, Tile) else np.asarray(mask)


@dataclass(frozen=True)
class Array:
    """An array argument, or a view of one; what is outside reads as 0 and is not written.

    array: contiguous, all of the argument.   numbers: of the elements of a view in it.
    """

    array: np.ndarray
    numbers: np.ndarray | None = None

    @property
    def places(self) -> np.ndarray:
        """The numbers of its elements in the argument."""
        if self.numbers is not None:
            return self.numbers
        return np.arange(self.array.size).reshape(self.array.shape)

    @property
    def at(self) -> _At:
        return _At(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape if self.numbers is None else self.numbers.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of the argument, in elements."""
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    @property
    def T(self) -> Array:  # noqa: N802  NumPy's name
        return Array(self.array, self.places.T)

    def __getitem__(self, index: object) -> Tile | Array:
        given = index if isinstance(index, tuple) else (index,)
        is_view = any(isinstance(i, slice) for i in given) or len(given) < len(self.shape)
        return Array(self.array, self.places[given]) if is_view else self.at[index].read()

    def __setitem__(self, index: object, value: object) -> None:
        self.at[index].write(value)

    def __add__(self, offsets: object) -> Reference:
        return Reference(self.array, np.asarray(0), np.asarray(True)) + offsets


@dataclass(frozen=True)
class _At:
    view: Array

    def __getitem__(self, index: object) -> Reference:
        """A literal that is negative counts from the end; nothing else here is."""
        given = index if isinstance(index, tuple) else (index,)
        shape, places = self.view.shape, self.view.places
        indices = _grid([i + extent if isinstance(i, int) and i < 0 else i
                         for i, extent in zip(given, shape, strict=True)])
        inside = np.asarray(True)
        for extent, own in zip(shape, indices):
            inside = inside & (own >= 0) & (own < extent)
        if not places.size:
            return Reference(self.view.array, np.zeros(inside.shape, np.int64),
                             np.zeros(inside.shape, bool))
        found = places[tuple(np.where(inside, own, 0) for own in indices)]
        return Reference(self.view.array, np.asarray(found), np.broadcast_to(inside, found.shape))


def _grid(index: Sequence[object]) -> list[np.ndarray]:
    """Indices of every axis that broadcast to the shape of the result."""
    spans = [i for i in index if isinstance(i, Span)]
    found, axis = [], 0
    for i in index:
        if isinstance(i, Span):
            shape = [1] * len(spans)
            shape[axis], axis = i.size, axis + 1
            found.append(i.index.array.astype(np.int64).reshape(shape))
        else:
            found.append((i.array if isinstance(i, Tile) else np.asarray(i)).astype(np.int64))
    return list(np.broadcast_arrays(*found)) if found else []
