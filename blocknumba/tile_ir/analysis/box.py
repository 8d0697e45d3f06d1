"""A box of an array: what one tensor copy (TMA) moves.

The launch describes the array: extents and strides are numbers known then.  Where the box starts is
computed in the kernel.  What lies outside of the array reads as 0 and is not written.
Source: CUDA Driver API, 'Tensor Map Object Management'.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.analysis.polynomial import Polynomial
from blocknumba.tile_ir.ir import Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.rebuild import Rebuilder
from blocknumba.tile_ir.tensor_map import MAX_RANK, STRIDE_ALIGNMENT, UNBOUNDED, Number, Product
from blocknumba.tile_ir.types import int32, int64

ALIGNMENT = STRIDE_ALIGNMENT  # also of the pointer, and of starts along the axis of unit stride
MOST_AXES = MAX_RANK


@dataclass(frozen=True, slots=True)
class BoxAxis:
    """An axis of an array that a box lies along.

    extent: of the box; 1 along an axis that one index is taken of.
    tile_axis: the axis of the tile along it; None where one index is taken.
    stride: of the array, in elements.
    bound: extent of the array; None where the kernel checks none, which says that it stays inside.
    start: where the box begins.
    clamped: start may need 64 bits; what does not fit 32 is outside of the array.
    """

    extent: int
    tile_axis: int | None
    stride: Product
    bound: Product | None
    start: Polynomial
    clamped: bool = False

    def emit_start(self, rebuilder: Rebuilder) -> Value:
        """Where the box begins, an int32 scalar, made of new values at the place of the access."""
        if not self.clamped:
            return self.start.emit(rebuilder, int32)
        builder, start = rebuilder.builder, self.start.emit(rebuilder, int64)
        for name, limit in (("maximum", int32.minimum), ("minimum", int32.maximum)):
            start = builder.emit(OPS[name], start, builder.constant(limit, int64))
        return builder.emit(OPS["cast"], start, dtype=int32.name)


@dataclass(frozen=True, slots=True)
class Box:
    """What a load or store touches: axes of the array, the one of unit stride first.

    argument: the array's name.  base: the parameter that points to its first element.
    """

    argument: str
    base: Value
    axes: tuple[BoxAxis, ...]

    @property
    def extents(self) -> tuple[Product, ...]:
        """Of the array, an axis that nobody checks being as long as there are places."""
        return tuple(Product(UNBOUNDED) if axis.bound is None else axis.bound
                     for axis in self.axes)

    @property
    def strides(self) -> tuple[Product, ...]:
        """Of the array, of all axes but the first."""
        return tuple(axis.stride for axis in self.axes[1:])

    @property
    def numbers(self) -> frozenset[Number]:
        """What the launch describes the array with."""
        return frozenset(number for product in (*self.extents, *self.strides)
                         for number in product.numbers)

    @property
    def is_own(self) -> bool:
        """Whether what is not known at compile time are extents and strides of the argument."""
        return (all(extent.is_of("extent", self.argument) for extent in self.extents
                    if extent.numbers)
                and all(stride.is_of("stride", self.argument) for stride in self.strides
                        if stride.numbers))
