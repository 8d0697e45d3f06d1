"""A box of an array: what one tensor copy (TMA) moves.

The launch describes the array: extents and strides are numbers known then.  Where the box starts is
computed in the kernel.  What lies outside of the array reads as 0 and is not written.
Source: CUDA Driver API, 'Tensor Map Object Management'.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.analysis.polynomial import Polynomial
from blocknumba.tile_ir.ir import Parameter, Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.rebuild import Rebuilder
from blocknumba.tile_ir.types import int32, int64

ALIGNMENT = 16  # bytes: of the pointer, of strides, of starts along the axis of unit stride
MOST_AXES = 5


@dataclass(frozen=True, slots=True)
class Product:
    """A number known at launch: a positive factor times kernel parameters."""

    factor: int = 1
    parameters: tuple[Parameter, ...] = ()

    def axes(self, kind: str, argument: str) -> set[int]:
        """The axes whose extent or stride, as kind says, in an array it is."""
        match self:
            case Product(1, (Parameter(kind=own, argument=name, axis=axis, equals=equals),)):
                return {axis for *of, axis in ((own, name, axis), *equals)
                        if of == [kind, argument]}
        return set()


@dataclass(frozen=True, slots=True)
class BoxAxis:
    """An axis of an array that a box lies along.

    extent: of the box; 1 along an axis that one index is taken of.
    tile_axis: the axis of the tile along it; None where one index is taken.
    stride: of the array, in elements.
    bound: extent of the array; None where the kernel checks none, since it stays inside.
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
    def array_axes(self) -> tuple[int, ...] | None:
        """Which axis of the array itself each axis is.

        None where a stride or a bound is not the array's own: then numbers that the kernel was
        given describe an array in the same memory.  An index that nobody checks is taken to be
        inside, as one is of which the kernel made a view; a tile that nobody checks is not.
        """
        unit, *others = self.axes
        found: list[int] = []
        for axis in others:
            places = axis.stride.axes("stride", self.argument) - set(found)
            if axis.bound is not None or axis.tile_axis is not None:
                places &= _extents(axis, self.argument)
            if not places:
                return None
            found.append(min(places))
        left = _extents(unit, self.argument) - set(found)
        return (min(left), *found) if left else None

    @property
    def relies_on(self) -> tuple[str, ...]:
        """The numbers that the kernel was given and that say what its array_axes are."""
        products = (product for axis in self.axes for product in (axis.stride, axis.bound))
        return tuple(dict.fromkeys(
            parameter.argument for product in products if product is not None
            for parameter in product.parameters if parameter.kind == "value"))


def _extents(axis: BoxAxis, argument: str) -> set[int]:
    """The axes of an array whose extent bounds a box."""
    return set() if axis.bound is None else axis.bound.axes("extent", argument)
