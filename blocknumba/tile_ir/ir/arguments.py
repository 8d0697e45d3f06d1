"""Argument info: properties of arguments that a kernel is specialised on and may rely on."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.ir.types import DType


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array of any rank from 0 to 6 in global memory.

    strides: per axis, in elements, when it is a compile-time constant (0 or 1), else None.
    extents: per axis, when it is a compile-time constant, else None.
    alignment: the address of the first element is a multiple of this many bytes.
    stride_divisibility, extent_divisibility: per axis, the value is a multiple of this.
    wide: element offsets may not fit in 32 bits.
    mappable: it has several axes, and a tensor map can describe it, whatever the box.
    """

    dtype: DType
    strides: tuple[int | None, ...]
    extents: tuple[int | None, ...]
    alignment: int = 1
    stride_divisibility: tuple[int, ...] = ()
    extent_divisibility: tuple[int, ...] = ()
    wide: bool = False
    mappable: bool = False

    @property
    def rank(self) -> int:
        return len(self.strides)


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number given at launch.

    value: when it is a compile-time constant of that dtype (an int equal to 1), else None.
    divisibility: the value is a multiple of this.
    minimum: the value is at least this; None when nothing is known.
    weak: it is a Python number, which takes the dtype of what it meets: an int of 32 or 64 bits,
        or a float64.
    """

    dtype: DType
    value: int | None = None
    divisibility: int = 1
    minimum: int | None = None
    weak: bool = False


Argument = ArrayArgument | ScalarArgument
