"""Runs of elements that a thread holds in registers: what is the same along them is computed once.

    n is a multiple of 8, a thread holds 8 neighbours:   i < n   is one comparison, not 8

Quotients of integers that rise by 1 need one or two divisions for a run:

    x:      32 33 34 35 36 37 38 39      8 elements in one thread, the first a multiple of 8
    x / 24:  1  1  1  1  1  1  1  1      a divisor that is a multiple of 8: one quotient

So are images indexed, `at // width % height`, of any size that is known to be a multiple of
something.  Where the quotient rounds up, as towards zero of numbers below it, or to the floor of a
divisor below zero, the first element may be a multiple of the divisor and differ from the others:
then it is divided by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.nvvm_lower.elements import is_literal, memory_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.tile_ir.analysis.axis import Axis
from blocknumba.tile_ir.analysis.bounds import counts_from_zero
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.types import TileType

Divide = Callable[..., str]  # (emitter, dtype, x, y) -> their quotient; 0 where y is 0


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs that the registers of a thread hold.

    length: elements of a run.   within: bits of a register's index that are its place in its run.
    """

    length: int
    within: int


def equal_registers(emitter: Emitter, value: Value) -> int:
    """Bits of a register's index that choose among registers of a tile with equal elements."""
    axes = emitter.axis_infos[value].axes
    return sum(_held(axis, axes[axis.number].constancy).within for axis in _axes_of(value.type))


@dataclass(frozen=True, slots=True)
class _AxisBits:
    """An axis of a tile: its number, and the bits of a place in the layout that are its own."""

    layout: LinearLayout
    number: int
    first_bit: int
    bits: int


def _axes_of(tile: TileType) -> list[_AxisBits]:
    """The axes of a tile, in the order of its layout; of a scalar none."""
    found, first_bit = [], 0
    for name, bits in tile.layout.outs if tile.shape else ():
        found.append(_AxisBits(tile.layout, int(name.removeprefix("dim")), first_bit, bits))
        first_bit += bits
    return found


def _held(axis: _AxisBits, length: int) -> Runs:
    """The part of aligned runs of that length along an axis whose places registers alone decide."""
    registers, columns, within = axis.layout["register"], axis.layout.columns, 0
    bits = min(length.bit_length() - 1, axis.bits)
    for bit in range(bits):
        place = 1 << axis.first_bit + bit
        if place not in registers or sum(bool(column & place) for column in columns) > 1:
            return Runs(1 << bit, within)
        within |= 1 << registers.index(place)
    return Runs(1 << bits, within)


# quotients of runs -------------------------------------------------------------------------------

def quotients(emitter: Emitter, op: Op, x: Registers, y: Registers,
              divide: Divide) -> Registers | None:
    """Registers of x / y, in fewer divisions than elements; None where that is impossible.

    op: `floordiv` or `mod`, or `truncdiv` or `truncmod`.   divide: rounds as they do.
    """
    dtype, runs = op.result.type.dtype, _runs(emitter, op)
    if runs is None or is_literal(y[0]):  # by a literal, quotients are products already
        return None
    rounds_up = dtype.is_signed and not _rounds_down(emitter, op)
    if runs.length <= 1 + rounds_up:
        return None
    made: dict[int, str] = {}
    for register in range(len(x)):
        source = _source(runs, register, rounds_up)
        if source not in made:
            made[source] = divide(emitter, dtype, x[source], y[source])
    return [made[_source(runs, register, rounds_up)] for register in range(len(x))]


def remainders(emitter: Emitter, op: Op, x: Registers, y: Registers,
               divide: Divide) -> Registers | None:
    """Registers of x - x / y * y, 0 where y is 0; None as of quotients."""
    found = quotients(emitter, op, x, y, divide)
    if found is None:
        return None
    body, type_ = emitter.body, memory_type(op.result.type.dtype)
    rests = []
    for dividend, divisor, quotient in zip(x, y, found, strict=True):
        product = body.binary("mul", type_, quotient, divisor)
        rest = body.binary("sub", type_, dividend, product)
        is_zero = body.compare("icmp eq", type_, divisor, "0")
        rests.append(body.select(is_zero, type_, "0", rest))
    return rests


def _source(runs: Runs, register: int, rounds_up: bool) -> int:
    """The register whose quotient is that of a register: the last of its run, or itself."""
    is_first = not register & runs.within
    return register if rounds_up and is_first else register | runs.within


def _rounds_down(emitter: Emitter, op: Op) -> bool:
    """Whether quotients of signed integers, or their magnitudes, round down.

    As of every quotient towards zero of an index that counts from 0.
    """
    ranges = emitter.axis_infos.ranges
    if op.name in ("floordiv", "mod"):
        return ranges[op.y].low > 0
    return counts_from_zero(op.x, ranges)


def _runs(emitter: Emitter, op: Op) -> Runs | None:
    """The longest runs that threads hold along one axis."""
    x, y = emitter.axis_infos[op.x].axes, emitter.axis_infos[op.y].axes
    found = (_held(axis, _length(x[axis.number], y[axis.number]))
             for axis in _axes_of(op.result.type))
    longest = max(found, key=lambda runs: runs.length, default=Runs(1, 0))
    return longest if longest.length > 1 else None


def _length(x: Axis, y: Axis) -> int:
    """Length of aligned runs that rise by 1 from a multiple of it, as is a constant divisor."""
    return min(x.certain, y.start(1), y.constancy)
