"""Order along an axis: sort, argsort, topk, median.

Elements are sorted as integers, the keys.  Floats become integers in the same order; where equal
elements must stay in order, the index is put below the key:

    float16 and its index      key << 16 | index << 1 | is -0        one int32
    float32 and its index      key << 32 | index << 1 | is -0        one int64
    float64 and its index      key, index << 1 | is -0               int64 and int32
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DTYPES, DType, bool_, float32, int32, int64, uint32, uint64
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import function
from blocknumba.typing.functions.reduce import as_tile, kept_axes
from blocknumba.typing.functions.statistics import as_floats
from blocknumba.typing.static_values import static, static_axes, static_axis, static_int

WORD_BITS, HALF_BITS = 32, 16


@function
def sort(context, x, axis=-1, descending=False, stable=False):
    """The elements along axis in ascending order.

    axis: None flattens the tile first.   descending: the greatest element first.
    NaN is greater than any number: last, or first where descending; its bits are not kept.
    stable: zeros, which are equal whatever their sign, stay in order; no other elements that are
    equal can be told apart.  Otherwise -0.0 comes before 0.0.
    Elements that were loaded outside an array are 0: load them as `other` instead, inf for
    instance.
    Source: numpy.sort.

    Example:
    >>> bn.evaluate(bn.sort, [3.0, np.nan, 1.0, 2.0])
    array([ 1.,  2.,  3., nan])
    """
    tile, along = _tile(context, "sort", x, axis)
    downwards = bool(static("sort: descending", descending))
    keeps = static("sort: stable", stable) and tile.type.dtype.is_float
    order = _Order(context, tile, along, downwards, with_index=bool(keeps))
    return order.values(order.sorted(tile.type.shape[along]))


@function
def argsort(context, x, axis=-1, descending=False, stable=True):
    """The indices that sort x along axis, int32.

    axis, descending, NaN: as of sort.   Equal elements stay in order, the lowest index first,
    with descending too: stable=False makes no difference.
    Source: numpy.argsort.

    Example:
    >>> bn.evaluate(bn.argsort, [3, 1, 2, 1])
    array([1, 3, 2, 0], dtype=int32)
    """
    static("argsort: stable", stable)
    tile, along = _tile(context, "argsort", x, axis)
    downwards = bool(static("argsort: descending", descending))
    order = _Order(context, tile, along, downwards, with_index=True, has_sign=False)
    return order.indices(order.sorted(tile.type.shape[along]))


@function
def topk(context, x, k, axis=-1, largest=True, return_indices=False):
    """The k greatest elements along axis, the greatest first.

    k: a power of two, at most the extent of the axis.   largest: False takes the least ones, the
    least first.   return_indices: give (values, indices), int32; of equal elements the lowest
    index comes first.
    NaN is greater than any number; its bits are not kept.
    Elements that were loaded outside an array are 0: load them as `other` instead, -inf for
    instance.
    Errors: k that is no power of two, or more than there are.
    Source: Triton's topk; torch.topk.

    Example:
    >>> bn.evaluate(bn.topk, [3, 1, 4, 2], 2)
    array([4, 3])
    """
    tile, along = _tile(context, "topk", x, axis)
    extent, count = tile.type.shape[along], static_int("topk: k", k)
    require(0 < count <= extent and not count & count - 1,
            "topk: k must be a power of two up to {}, got {}", extent, count,
            hint=_rounded_up(count, extent))
    gives_indices = bool(static("topk: return_indices", return_indices))
    downwards = bool(static("topk: largest", largest))
    order = _Order(context, tile, along, downwards, with_index=gives_indices)
    least = order.sorted(count)
    values = order.values(least)
    return (values, order.indices(least)) if gives_indices else values


def _rounded_up(count: int, extent: int) -> str:
    """A hint at the next power of two, if the axis has as many elements."""
    following = 1 << max(0, count - 1).bit_length()
    return f"use topk(x, {following}) and leave out what is too much" if (
        0 < count < following <= extent) else ""


@function
def median(context, x, axis=None, keep_dims=False, keepdims=False):
    """The median along axis, along several, or of all elements (axis=None); NaN if there is one.

    The mean of the two elements in the middle.  dtypes: as of mean.
    Elements that were loaded outside an array are 0, and counted.
    Source: numpy.median.

    Example:
    >>> bn.evaluate(bn.median, [1, 9, 2, 3])
    np.float64(2.5)
    """
    tile, wanted = as_floats(context, "median", x)
    shape = tile.type.shape
    dropped = static_axes("median", axis, len(shape))
    found = _median_of(context, tile, dropped) if dropped else tile
    return kept_axes(context, context.cast(found, wanted), shape, dropped, keep_dims or keepdims)


def _median_of(context: Context, tile: Value, dropped: tuple[int, ...]) -> Value:
    """The median of floats along some axes, which are dropped."""
    shape = tile.type.shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in dropped)
    outer, extent = tuple(shape[a] for a in kept), math.prod(shape[a] for a in dropped)
    rows = context.emit("transpose", tile, axes=(*kept, *dropped))
    if extent == 1:
        return context.emit("reshape", rows, shape=outer)
    rows = context.emit("reshape", rows, shape=(*outer, extent))
    axis = len(outer)
    order = _Order(context, rows, axis, descending=False, with_index=False)
    halves = context.emit("reshape", order.values(order.sorted(extent)),
                          shape=(*outer, 2, extent // 2))
    halves = context.emit("transpose", halves, axes=(*range(axis), axis + 1, axis))
    # NaN, which is greatest, is in the upper half
    low, high = (context.emit("reduce", half, axis=axis, kind=kind)
                 for half, kind in zip(context.emit("split", halves), ("max", "min")))

    def halved(value: Value) -> Value:
        return context.emit("mul", value, context.broadcast_to(
            context.constant(0.5, value.type.dtype), value.type.shape))
    total = context.emit("add", low, high)
    # of great numbers, whose sum overflows
    apart = context.emit("add", halved(low), halved(high))
    return context.emit("select", context.emit("isfinite", total), halved(total), apart)


def _tile(context: Context, name: str, x: object, axis: object) -> tuple[Value, int]:
    """A tile and an axis of it; flattened where the axis is None.

    Errors: what is no tile.
    """
    tile = as_tile(context, name, x)
    require(tile.type.shape, "{}: given {}, accepted a tile", name, describe(x))
    if axis is not None:
        return tile, static_axis(name, axis, len(tile.type.shape))
    if len(tile.type.shape) > 1:
        tile = context.emit("reshape", tile, shape=(tile.type.size,))
    return tile, 0


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of the elements of a tile, which are compared as integers, the keys.

    with_index: whether elements that are equal are ordered by their index along axis.
    has_sign: whether the sign of zeros, which are equal then, is kept besides.
    """

    context: Context
    tile: Value
    axis: int
    descending: bool
    with_index: bool
    has_sign: bool = True

    @property
    def _dtype(self) -> DType:
        return self.tile.type.dtype

    @property
    def _signs(self) -> int:
        """The bits below the index: whether a zero is -0."""
        return int(self.has_sign and self._dtype.is_float)

    @property
    def _index_bits(self) -> int:
        extent = self.tile.type.shape[self.axis]
        return extent.bit_length() - 1 + self._signs

    @property
    def _key_dtype(self) -> DType:
        signed = self._dtype.is_float or self._dtype.is_signed
        if self._dtype.bits > WORD_BITS:
            return int64 if signed else uint64
        return int32 if signed else uint32

    @property
    def _shift(self) -> int:
        """The bits that keys are shifted by for the index; 0 where it is a tile of its own."""
        if self._dtype.bits <= HALF_BITS and self._index_bits <= HALF_BITS:
            return HALF_BITS
        return WORD_BITS if self._dtype.bits <= WORD_BITS else 0

    def sorted(self, count: int) -> tuple[Value, ...]:
        """The least `count` keys in order, as sort returns them."""
        key = self._key()
        tiles = self._with_index(key) if self.with_index else (key,)
        made = self.context.emit("sort", *tiles, axis=self.axis, kept=count)
        return made if isinstance(made, tuple) else (made,)

    def values(self, ordered: tuple[Value, ...]) -> Value:
        """The elements of keys that were sorted."""
        key = ordered[0]
        if self.with_index and self._shift:
            key = self.context.cast(self._number("shr", key, self._shift), self._key_dtype)
        if self.descending:
            key = self.context.emit("invert", key)
        if not self._dtype.is_float:
            return self._boolean(key) if self._dtype == bool_ else self.context.cast(
                key, self._dtype)
        bits = self._mirrored(key)
        if self.with_index and self._signs:
            sign = self._number("and", self._below(ordered), 1)
            is_negative = self.context.emit("and", self._number("eq", bits, 0),
                                            self._number("ne", sign, 0))
            bits = self.context.emit("select", is_negative, self._filled(bits, self._least), bits)
        bits = self.context.cast(bits, DTYPES[f"int{self._dtype.bits}"])
        return self.context.emit("bitcast", bits, dtype=self._dtype.name)

    def indices(self, ordered: tuple[Value, ...]) -> Value:
        """The indices along the axis of keys that were sorted."""
        below = self._below(ordered)
        return self._number("shr", below, 1) if self._signs else below

    def _below(self, ordered: tuple[Value, ...]) -> Value:
        """The bits below the key, int32."""
        if not self._shift:
            return ordered[1]
        mask = (1 << self._index_bits) - 1
        return self.context.cast(self._number("and", ordered[0], mask), int32)

    def _key(self) -> Value:
        """The elements as integers in the same order; in the reverse one where descending."""
        context, dtype = self.context, self._dtype
        if dtype.is_float:
            bits = context.emit("bitcast", self.tile, dtype=f"int{dtype.bits}")
            key = self._mirrored(context.cast(bits, self._key_dtype))
            widened = context.cast(self.tile, float32) if dtype.bits == 8 else self.tile
            is_nan = context.emit("isnan", widened)
            key = context.emit("select", is_nan, self._filled(key, self._magnitudes), key)
        else:
            key = context.cast(self.tile, self._key_dtype)
        if self.with_index and dtype.is_float:  # -0, which is -1 here, equals 0
            key = context.emit("select", self._number("eq", key, -1), self._filled(key, 0), key)
        return context.emit("invert", key) if self.descending else key

    def _with_index(self, key: Value) -> tuple[Value, ...]:
        context, shape = self.context, key.type.shape
        below = context.emit("arange", start=0, size=shape[self.axis])
        below = context.emit("reshape", below, shape=tuple(
            extent if axis == self.axis else 1 for axis, extent in enumerate(shape)))
        below = context.broadcast_to(below, shape)
        if self._signs:
            bits = context.emit("bitcast", self.tile, dtype=f"int{self._dtype.bits}")
            is_negative = self._number("eq", bits, DTYPES[f"int{self._dtype.bits}"].minimum)
            below = context.emit("or", self._number("shl", below, 1),
                                 context.cast(is_negative, int32))
        if not self._shift:
            return key, below
        packed = self._key_dtype
        if self._shift == WORD_BITS:
            packed = int64 if packed.is_signed else uint64
        key = self._number("shl", context.cast(key, packed), self._shift)
        return (context.emit("or", key, context.cast(below, packed)),)

    @property
    def _magnitudes(self) -> int:
        """The bits of a float but the sign, all set: the key of NaN."""
        return (1 << self._dtype.bits - 1) - 1

    @property
    def _least(self) -> int:
        """The bits of -0 in a key's dtype."""
        return -1 - self._magnitudes

    def _mirrored(self, bits: Value) -> Value:
        """Bits of floats, sign extended, to integers in the same order, and back."""
        sign = self._number("shr", bits, bits.type.dtype.bits - 1)
        return self.context.emit("xor", bits, self._number("and", sign, self._magnitudes))

    def _boolean(self, key: Value) -> Value:
        return self._number("ne", self._number("and", key, 1), 0)

    def _number(self, name: str, x: Value, number: int) -> Value:
        """An op on a tile and a number."""
        return self.context.emit(name, x, self._filled(x, number))

    def _filled(self, like: Value, number: int) -> Value:
        constant = self.context.constant(number, like.type.dtype)
        return self.context.broadcast_to(constant, like.type.shape)
