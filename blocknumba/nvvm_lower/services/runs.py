"""Runs of elements that a thread holds in registers: which registers hold equal elements.

    n is a multiple of 8, a thread holds 8 neighbours:   i < n   is one comparison, not 8
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.tile_ir.ir.function import Value


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs that the registers of a thread hold.

    length: elements of a run.   within: bits of a register's index that are its place in its run.
    """

    length: int
    within: int


def equal_registers(emitter: Emitter, value: Value) -> int:
    """Bits of a register's index that choose among registers of a tile with equal elements."""
    type_, within, first_bit = value.type, 0, 0
    if not type_.shape:
        return 0
    for axis, (_, bits) in zip(emitter.axis_infos[value].axes, type_.layout.outs, strict=True):
        length = min(axis.constancy.bit_length() - 1, bits)
        within |= held(type_.layout, first_bit, length).within
        first_bit += bits
    return within


def held(layout: LinearLayout, first_bit: int, bits: int) -> Runs:
    """The part of runs of 2 ** bits elements whose places registers alone decide."""
    registers, within = layout["register"], 0
    for bit in range(bits):
        place = 1 << first_bit + bit
        if place not in registers or sum(bool(column & place) for column in layout.columns) > 1:
            return Runs(1 << bit, within)
        within |= 1 << registers.index(place)
    return Runs(1 << bits, within)
