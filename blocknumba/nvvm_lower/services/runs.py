"""Runs of elements that a thread holds in registers: which registers hold equal elements.

    n is a multiple of 8, a thread holds 8 neighbours:   i < n   is one comparison, not 8
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import TileType


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
    return sum(held(axis, axes[axis.number].constancy).within for axis in axes_of(value.type))


@dataclass(frozen=True, slots=True)
class AxisBits:
    """An axis of a tile: its number, and the bits of a place in the layout that are its own."""

    layout: LinearLayout
    number: int
    first_bit: int
    bits: int


def axes_of(tile: TileType) -> list[AxisBits]:
    """The axes of a tile, in the order of its layout; of a scalar none."""
    found, first_bit = [], 0
    for name, bits in tile.layout.outs if tile.shape else ():
        found.append(AxisBits(tile.layout, int(name.removeprefix("dim")), first_bit, bits))
        first_bit += bits
    return found


def held(axis: AxisBits, length: int) -> Runs:
    """The part of aligned runs of that length along an axis whose places registers alone decide."""
    registers, columns, within = axis.layout["register"], axis.layout.columns, 0
    bits = min(length.bit_length() - 1, axis.bits)
    for bit in range(bits):
        place = 1 << axis.first_bit + bit
        if place not in registers or sum(bool(column & place) for column in columns) > 1:
            return Runs(1 << bit, within)
        within |= 1 << registers.index(place)
    return Runs(1 << bits, within)
