"""Code that packs the arguments of a launch into its record and its key.

A word of the key holds what versions may depend on, so that arguments with equal words have one
specialization (`specialize.argument_of`):

    array   bit 0 aligned | 1 wide | 2 irregular | 3 mappable | from 8, a byte an axis:
            stride is 0 | is 1 | its powers of two (3 bits) | if it is 1, those of the extent, else
            its place among the CLOSE_STRIDES of as many powers of two, from 1, or 0 (3 bits)
    int     bits 0-3 powers of two | 4 is 1 | 5 fits 32 bits | 6 positive | 7 out of range
    others  7 out of range
    then    a bit for each pair of arrays: they share memory
    last    the slots of all entries that tensor maps depend on
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir
from numba.core import cgutils, types

from blocknumba.dispatch.launch.specialize import (
    ALIGNMENT, CLOSE_STRIDES, DIVISIBILITY, NARROW_OFFSETS, TILE_DIVISIBILITY,
)
from blocknumba.dispatch.njit.numba_types import DeviceArrayType
from blocknumba.dispatch.njit.record import IRREGULAR, ArrayEntry, Layout, ScalarEntry
from blocknumba.tile_ir.ir.types import DType, float32, int32

I32, I64 = ir.IntType(32), ir.IntType(64)
_WORD_BITS = 64
_PLACES = {stride: [other for other in CLOSE_STRIDES if other & -other == stride & -stride].index(
    stride) + 1 for stride in CLOSE_STRIDES}
assert max(_PLACES.values()) < 8, "a place has 3 bits"


@dataclass(frozen=True, slots=True)
class Packed:
    """Arguments of LAUNCH.

    record, key: pointers.  streams: of the device arrays, in their order.
    """

    record: ir.Value
    key: ir.Value
    streams: list[ir.Value]


@dataclass(frozen=True, slots=True)
class _Array:
    """An array in code: 64-bit values.  strides: in elements.  begin, end: of its bytes."""

    pointer: ir.Value
    shape: list[ir.Value]
    strides: list[ir.Value]
    stream: ir.Value
    begin: ir.Value
    end: ir.Value
    word: ir.Value

    @property
    def slots(self) -> list[ir.Value]:
        return [self.pointer, *self.shape, *self.strides, self.stream]


def key_words(layout: Layout) -> int:
    """The number of words of a key."""
    arrays = sum(isinstance(entry, ArrayEntry) for entry in layout.entries)
    exact = sum(entry.slot_count for entry in layout.entries if entry.name in layout.mapped)
    return len(layout.entries) + -(-math.comb(arrays, 2) // _WORD_BITS) + exact


def pack(context: object, builder: ir.IRBuilder, layout: Layout, of: Sequence[types.Type],
         values: Sequence[ir.Value]) -> Packed:
    """Write record and key of a launch.  of, values: Numba's of each entry's argument."""
    slots, words, arrays, exact = [], [], [], []
    for entry, given, value in zip(layout.entries, of, values, strict=True):
        if isinstance(entry, ArrayEntry):
            array = _array(_Words(context, builder), entry, given, value)
            arrays.append(array)
            own, word = array.slots, array.word
        else:
            own, word = _scalar(_Words(context, builder), entry, value)
        slots += own
        words.append(word)
        exact += own if entry.name in layout.mapped else []
    words += [*_sharing(_Words(context, builder), arrays), *exact]
    streams = [array.stream for array, entry in zip(arrays, (
        e for e in layout.entries if isinstance(e, ArrayEntry))) if entry.device is not None]
    return Packed(_stored(builder, slots, "record"), _stored(builder, words, "key"), streams)


def _stored(builder: ir.IRBuilder, values: Sequence[ir.Value], name: str) -> ir.Value:
    """Pointer to 64-bit values in the caller's frame."""
    memory = cgutils.alloca_once(builder, ir.ArrayType(I64, max(1, len(values))), name=name)
    for index, value in enumerate(values):
        builder.store(value, cgutils.gep_inbounds(builder, memory, 0, index))
    return builder.bitcast(memory, ir.IntType(8).as_pointer())


@dataclass(frozen=True, slots=True)
class _Words:
    """Code for 64-bit words."""

    context: object
    builder: ir.IRBuilder

    def bit(self, condition: ir.Value, place: int = 0) -> ir.Value:
        """A word with one bit."""
        return self.builder.shl(self.builder.zext(condition, I64), I64(place))

    def any(self, conditions: Sequence[ir.Value]) -> ir.Value:
        """Whether any condition holds."""
        found = ir.IntType(1)(0)
        for condition in conditions:
            found = self.builder.or_(found, condition)
        return found

    def joined(self, words: Sequence[ir.Value]) -> ir.Value:
        """The bits of all words."""
        found = I64(0)
        for word in words:
            found = self.builder.or_(found, word)
        return found

    def total(self, words: Sequence[ir.Value]) -> ir.Value:
        """The sum of words."""
        found = I64(0)
        for word in words:
            found = self.builder.add(found, word)
        return found

    def powers(self, value: ir.Value, maximum: int) -> ir.Value:
        """Powers of two in a value, at most those in maximum, which 0 counts as."""
        capped = self.builder.or_(value, I64(maximum))
        return self.builder.cttz(capped, ir.IntType(1)(0))

    def compare(self, relation: str, value: ir.Value, constant: int) -> ir.Value:
        """A signed comparison with a constant."""
        return self.builder.icmp_signed(relation, value, I64(constant))

    def is_no_multiple(self, value: ir.Value, power: int) -> ir.Value:
        """Whether a power of two does not divide a value."""
        return self.compare("!=", self.builder.and_(value, I64(power - 1)), 0)


def _array(code: _Words, entry: ArrayEntry, given: types.Type, value: ir.Value) -> _Array:
    builder, size_bytes = code.builder, entry.dtype.bytes
    pointer, shape, strides, stream, mappable = _members(code, entry, given, value)
    strides = _canonical(code, shape, strides)
    reach = [builder.mul(builder.sub(extent, I64(1)), stride)
             for extent, stride in zip(shape, strides)]
    low = code.total([_negative_part(code, r) for r in reach])
    high = code.total([builder.sub(r, _negative_part(code, r)) for r in reach])
    is_empty = code.any([code.compare("==", extent, 0) for extent in shape])
    begin = builder.add(pointer, builder.mul(low, I64(size_bytes)))
    end = builder.add(pointer, builder.mul(builder.add(high, I64(1)), I64(size_bytes)))
    wide = code.any([code.compare("<", low, -NARROW_OFFSETS),
                     code.compare(">", high, NARROW_OFFSETS),
                     *(code.compare(">", extent, NARROW_OFFSETS) for extent in shape)])
    irregular = code.any([code.is_no_multiple(pointer, size_bytes),
                          *(code.compare("==", stride, IRREGULAR) for stride in strides)])
    word = code.joined([
        code.bit(builder.not_(code.is_no_multiple(pointer, ALIGNMENT))), code.bit(wide, 1),
        code.bit(irregular, 2), code.bit(mappable, 3), *_axis_bits(code, shape, strides)])
    return _Array(pointer, shape, strides, stream, begin,
                  builder.select(is_empty, begin, end), word)


def _members(code: _Words, entry: ArrayEntry, given: types.Type, value: ir.Value,
             ) -> tuple[ir.Value, list[ir.Value], list[ir.Value], ir.Value, ir.Value]:
    """Address, extents, strides in elements and stream of an array, and whether it is mappable.

    A host array has stream 0, and no tensor map.
    """
    builder = code.builder
    if isinstance(given, DeviceArrayType):
        array = cgutils.create_struct_proxy(given)(code.context, builder, value=value)
        shape = cgutils.unpack_tuple(builder, array.shape, entry.rank)
        strides = cgutils.unpack_tuple(builder, array.strides, entry.rank)
        return array.pointer, shape, strides, array.stream, code.compare(
            "!=", array.mappable, 0)
    array = code.context.make_array(given)(code.context, builder, value)
    shape = cgutils.unpack_tuple(builder, array.shape, entry.rank)
    in_bytes = cgutils.unpack_tuple(builder, array.strides, entry.rank)
    strides = [_in_elements(code, extent, stride, entry.dtype.bytes)
               for extent, stride in zip(shape, in_bytes)]
    return builder.ptrtoint(array.data, I64), shape, strides, I64(0), ir.IntType(1)(0)


def _in_elements(code: _Words, extent: ir.Value, stride: ir.Value, size_bytes: int) -> ir.Value:
    """A stride in elements; IRREGULAR where it has none, and is stepped along."""
    builder = code.builder
    has_none = builder.and_(code.is_no_multiple(stride, size_bytes), code.compare(">", extent, 1))
    elements = builder.ashr(stride, I64(size_bytes.bit_length() - 1))
    return builder.select(has_none, I64(IRREGULAR), elements)


def _canonical(code: _Words, shape: Sequence[ir.Value], strides: Sequence[ir.Value],
               ) -> list[ir.Value]:
    """Strides, those of axes of length 1 as contiguity would make them; see arrays.py."""
    builder, step, canonical = code.builder, I64(1), []
    for extent, stride in zip(reversed(shape), reversed(strides)):
        stride = builder.select(code.compare("==", extent, 1), step, stride)
        canonical.append(stride)
        length = builder.select(code.compare("<", stride, 0), builder.neg(stride), stride)
        length = builder.select(code.compare("==", stride, 0), step, length)
        step = builder.mul(length, extent)
    return canonical[::-1]


def _negative_part(code: _Words, value: ir.Value) -> ir.Value:
    return code.builder.select(code.compare("<", value, 0), value, I64(0))


def _axis_bits(code: _Words, shape: Sequence[ir.Value], strides: Sequence[ir.Value],
               ) -> list[ir.Value]:
    builder, words = code.builder, []
    for axis, (extent, stride) in enumerate(zip(shape, strides)):
        is_one = code.compare("==", stride, 1)
        close = code.joined([builder.select(code.compare("==", stride, known), I64(place), I64(0))
                             for known, place in _PLACES.items()])
        rest = builder.select(is_one, code.powers(extent, DIVISIBILITY), close)
        own = code.joined([
            code.bit(code.compare("==", stride, 0)), code.bit(is_one, 1),
            builder.shl(code.powers(stride, DIVISIBILITY), I64(2)), builder.shl(rest, I64(5))])
        words.append(builder.shl(own, I64(8 + 8 * axis)))
    return words


def _sharing(code: _Words, arrays: Sequence[_Array]) -> list[ir.Value]:
    """The words that say which pairs of arrays share memory."""
    builder, bits = code.builder, []
    for number, (one, other) in enumerate(itertools.combinations(arrays, 2)):
        shares = builder.icmp_unsigned("<", one.begin, other.end)
        for first, last in ((other.begin, one.end), (one.begin, one.end), (other.begin, other.end)):
            shares = builder.and_(shares, builder.icmp_unsigned("<", first, last))
        bits.append(code.bit(shares, number % _WORD_BITS))
    return [code.joined(bits[start:start + _WORD_BITS])
            for start in range(0, len(bits), _WORD_BITS)]


def _scalar(code: _Words, entry: ScalarEntry, value: ir.Value) -> tuple[list[ir.Value], ir.Value]:
    """Slots and word of a number."""
    builder = code.builder
    given = _as_word(builder, value, entry.given)
    if entry.is_integer_of_python:
        maximum = TILE_DIVISIBILITY if entry.is_divisor else DIVISIBILITY
        fits = _is_in_range(code, given, int32)
        word = code.joined([
            code.powers(given, maximum), code.bit(code.compare("==", given, 1), 4),
            code.bit(fits, 5), code.bit(code.compare(">", given, 0), 6)])
        return [given, given], word
    if entry.declared in (None, entry.given) or not entry.is_converted_natively:
        return [given, given], I64(0)
    if entry.declared.is_integer:
        fits = _converts(code, given, entry.given, entry.declared)
        return [given, given], code.bit(builder.not_(fits), 7)
    converted, is_lost = _as_float(code, value, entry)
    return [given, _as_word(builder, converted, entry.declared)], code.bit(is_lost, 7)


def _as_word(builder: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """A number in the low bits of a word; ints are extended."""
    if dtype.is_float:
        value = builder.bitcast(value, ir.IntType(dtype.bits))
    if value.type.width == _WORD_BITS:
        return value
    is_signed = dtype.is_integer and dtype.is_signed
    return builder.sext(value, I64) if is_signed else builder.zext(value, I64)


def _is_in_range(code: _Words, value: ir.Value, dtype: DType) -> ir.Value:
    """Whether a signed word is in the range of a dtype."""
    return code.builder.and_(code.compare(">=", value, dtype.minimum),
                             code.compare("<=", value, min(dtype.maximum, (1 << 63) - 1)))


def _converts(code: _Words, value: ir.Value, given: DType, declared: DType) -> ir.Value:
    """Whether an int of one dtype, as a word, is in the range of another."""
    if given.is_signed or given.bits < _WORD_BITS:
        return _is_in_range(code, value, declared)
    # an unsigned word
    return code.builder.icmp_unsigned("<=", value, I64(declared.maximum))


def _as_float(code: _Words, value: ir.Value, entry: ScalarEntry) -> tuple[ir.Value, ir.Value]:
    """A number as the declared float, and whether a finite one became infinite.

    Ints are rounded to float64 first, as NumPy rounds Python's.
    """
    builder, double = code.builder, ir.DoubleType()
    if entry.given.is_integer:
        value = (builder.sitofp if entry.given.is_signed else builder.uitofp)(value, double)
    elif entry.given is float32:
        value = builder.fpext(value, double)
    if entry.declared is not float32:
        return value, ir.IntType(1)(0)
    narrow = builder.fptrunc(value, ir.FloatType())
    infinite = code.any([builder.fcmp_ordered("==", narrow, ir.FloatType()(sign * math.inf))
                         for sign in (1, -1)])
    was = code.any([builder.fcmp_ordered("==", value, double(sign * math.inf))
                    for sign in (1, -1)])
    return narrow, builder.and_(infinite, builder.not_(was))
