"""Axis info: contiguity, divisibility and constancy of integers, bools and pointers per axis.

Four powers of two per axis of a value:

contiguity c: in every aligned run of c elements, each is the one before plus 1 (a pointer: plus
    one element).
divisibility m: the first element of every such run is a multiple of m (a pointer: its address in
    bytes).
constancy k: in every aligned run of k elements, all are equal.
falling f (of bools): in every aligned run of f elements, none is true after a false one.

    index:  16 17 18 19 | 32 33 34 35      contiguity 4, divisibility 16, constancy 1
    mask:    T  T  F  F |  T  T  T  T      falling 4: one bound may cut each run

A run is aligned when it starts at a multiple of its length.  The numbers of an axis hold at every
position of the other axes.  A scalar has one axis, of extent 1.

Integers wrap, and after a widening a wrapped run no longer rises by 1.  Only this holds without
conditions: in every aligned run of min(c, m) elements (a pointer: m in elements), the first is a
multiple of that length and each is the one before plus 1.  Longer runs rise by 1 unless the
arithmetic overflowed within them; they serve only to choose an order of axes.
Source: Triton's AxisInfo analysis.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.ir.function import Value

# The divisibility of 0: no address and no index has more trailing zeros that matter.
MAX_DIVISIBILITY = 1 << 62


@dataclass(frozen=True, slots=True)
class Axis:
    """The four numbers of one axis; see the module's docstring."""

    contiguity: int = 1
    divisibility: int = 1
    constancy: int = 1
    falling: int = 1

    def start(self, run: int, unit: int = 1) -> int:
        """Divisibility of the first elements of aligned runs of another length.

        unit: by how much the value rises from one element of a contiguous run to the next.
        """
        if self.contiguity <= run:
            return self.divisibility
        return min(self.divisibility, run * unit)

    @property
    def certain(self) -> int:
        """Length of runs that rise by 1 even where arithmetic overflowed (of integers)."""
        return min(self.contiguity, self.divisibility)

    @property
    def bounded(self) -> int:
        """Length of runs whose true elements, if any, come first (of bools)."""
        return max(self.falling, self.constancy)


@dataclass(frozen=True, slots=True)
class AxisInfo:
    """Axis info of one value: one Axis per axis (of a scalar: one).

    value: the int that every element equals, when it is known at compile time.
    """

    axes: tuple[Axis, ...]
    value: int | None = None

    def joined(self, other: AxisInfo, unit: int = 1) -> AxisInfo:
        """Join in the lattice: the info of a value that is one or the other."""
        if self == other:
            return self
        axes = []
        for a, b in zip(self.axes, other.axes, strict=True):
            run = min(a.contiguity, b.contiguity)
            axes.append(Axis(run, min(a.start(run, unit), b.start(run, unit)),
                             min(a.constancy, b.constancy), min(a.bounded, b.bounded)))
        return AxisInfo(tuple(axes), self.value if self.value == other.value else None)


def unknown(value: Value) -> AxisInfo:
    """Info that holds of any value of that type: nothing is known."""
    return AxisInfo((Axis(),) * max(1, len(value.type.shape)))


def unit_of(value: Value) -> int:
    """Step of a contiguous run from element to element: 1, or the bytes of a pointer's element."""
    return value.type.dtype.pointee.bytes if value.type.is_pointer else 1


def power_of_two_in(number: int) -> int:
    """The greatest power of two that divides a number."""
    return min(number & -number, MAX_DIVISIBILITY) if number else MAX_DIVISIBILITY
