"""Ops for the programmer: printing, assertions, hints."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import EFFECT, ELEMENTWISE, PURE, op
from blocknumba.tile_ir.ir.types import TileType, bool_


@op(EFFECT)
def print_(*values, prefix, hexadecimal=False) -> None:
    """Print every element of values, one line each, in the format of `print_line`.

    values: tiles or scalars of any shapes and dtypes; without any, one line per program.
    prefix: str; hexadecimal: print the bits of each element as hexadecimal digits.
    """


def print_line(program: tuple[int, int, int], prefix: str, index: tuple[int, ...] = (),
               shape: tuple[int, ...] = (), element: np.generic | None = None,
               operand: int | None = None, hexadecimal: bool = False) -> str:
    """The line that the op `print` prints for one element; the GPU prints the same.

    shape: of the tile; the numbers of an axis are as wide as its last.
    operand: its number when there are several.  Floats have six decimals, as C's %f.
    """
    told = f"pid ({', '.join(map(str, program))})"
    name = f" {prefix}" if prefix else ""
    if element is None:
        return told + name
    numbers = ", ".join(f"{i:{width}}" for i, width in zip(index, index_widths(shape)))
    where = f"{told} idx ({numbers}){name}"
    number = "" if operand is None else f"(operand {operand}) "
    if hexadecimal:
        digits = element.dtype.itemsize * 2
        return f"{where}: {number}0x{int.from_bytes(element.tobytes(), 'little'):0{digits}x}"
    if element.dtype.kind in "biu":
        return f"{where}: {number}{int(element)}"
    return f"{where}: {number}{float(element):f}"


def index_widths(shape: tuple[int, ...]) -> list[int]:
    """Characters of the last index of each axis."""
    return [len(str(extent - 1)) for extent in shape]


@op(EFFECT)
def assert_(condition, *, message) -> None:
    """Stop the kernel with message where an element of condition (bool) is false."""
    require(condition.dtype == bool_, "assert: condition must be bool, got {}", condition)


@op(EFFECT)
def check_index(index, extent, mask=None, *, array, axis) -> None:
    """With debug=True: stop where index is not in [0, extent) of that axis of an array.

    index: int tile or scalar; extent: its dtype, same shape; mask: bool; elements where it is
    false are not checked.  array: the argument's name.
    """
    require(index == extent, "check_index: given {} and {}, accepted one type", index, extent)
    require(mask is None or (mask.dtype == bool_ and mask.shape == index.shape),
            "check_index: mask must be a bool tile of shape {}, got {}", index.shape, mask)


@op(PURE | ELEMENTWISE)
def hint(x, *, divisibility=(), contiguity=(), constancy=()) -> TileType:
    """x, assumed to have these properties, one number per axis (of a scalar: one).

    divisibility: the first element of each contiguous run is a multiple of it.
    contiguity: elements come in aligned runs of that length that rise by 1.
    constancy: elements come in aligned runs of that length that are equal.
    """
    for hinted in (divisibility, contiguity, constancy):
        require(not hinted or len(hinted) == max(1, len(x.shape)),
                "hint: one number per axis of {}, got {}", x, hinted)
    return x


@hint.numpy
def _(x, *, divisibility=(), contiguity=(), constancy=()):
    return x


@op(EFFECT)
def assume(condition) -> None:
    """Assume a scalar condition; the behaviour of a program in which it is false is undefined."""
    require(condition == TileType(bool_), "assume: condition must be a scalar bool, got {}",
            condition)
