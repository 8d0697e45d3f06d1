"""Ops that make values from nothing: constants, ranges, program ids."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import PURE, op
from blocknumba.tile_ir.ir.types import DTYPES, MAX_RANK, PointerType, TileType, int32


def require_shape(name: str, shape: tuple[int, ...]) -> None:
    """Require a tuple of powers of two, of rank MAX_RANK at most."""
    require(isinstance(shape, tuple) and all(isinstance(n, int) for n in shape),
            "{}: shape must be compile-time ints, got {!r}", name, shape)
    require(len(shape) <= MAX_RANK, "{}: given rank {}, accepted at most {}", name, len(shape),
            MAX_RANK)
    for extent in shape:
        require(extent > 0 and extent & extent - 1 == 0,
                "{}: every extent must be a power of two, got {}", name, shape,
                hint=f"the next valid extent is {1 << (extent - 1).bit_length()}; mask the rest"
                if extent > 0 else "")


@op(PURE)
def constant(*, value, dtype) -> TileType:
    """A scalar known at compile time.

    value: bool, int or float, exactly representable in dtype; dtype: its name.
    """
    return TileType(DTYPES[dtype])


@constant.numpy
def _(*, value, dtype):
    return np.asarray([value]).astype(DTYPES[dtype].numpy)


@op(PURE)
def undefined(*, dtype, shape, zero=False, variable="") -> TileType:
    """A value that no path of the program uses; any bits.

    dtype: a dtype's name, or "ptr<name>"; shape: of the tile, () for a scalar.
    zero: whether it has to be 0 all the same, for a program that does use it.
    variable: its name in the program, for messages.
    """
    if dtype.startswith("ptr<"):
        return TileType(PointerType(DTYPES[dtype[4:-1]]), shape)
    return TileType(DTYPES[dtype], shape)


@undefined.numpy
def _(*, dtype, shape, zero=False, variable=""):
    return np.zeros((1, *shape), np.int64 if dtype.startswith("ptr<") else DTYPES[dtype].numpy)


@op(PURE)
def arange(*, start, size) -> TileType:
    """start, start+1, ..., start+size-1 as an int32 tile of shape (size,).

    Errors: size is not a power of two; the last element does not fit int32.
    Source: numpy.arange.
    """
    require(size > 0, "arange: given {} to {}, accepted a stop that is greater than start", start,
            start + size)
    require(size & size - 1 == 0, "arange: size must be a power of two, got {}", size,
            hint=f"use arange({1 << (size - 1).bit_length()}) and a mask")
    require(int32.minimum <= start and start + size - 1 <= int32.maximum,
            "arange: given {} to {}, accepted int32", start, start + size)
    return TileType(int32, (size,))


@arange.numpy
def _(*, start, size):
    return np.arange(start, start + size, dtype=np.int32)[None]


@op(PURE)
def program_id(*, axis) -> TileType:
    """Index of this program along a grid axis (0, 1 or 2), int32."""
    require(axis in (0, 1, 2), "program_id: axis must be 0, 1 or 2, got {!r}", axis)
    return TileType(int32)


@op(PURE)
def num_programs(*, axis) -> TileType:
    """Number of programs along a grid axis (0, 1 or 2), int32."""
    require(axis in (0, 1, 2), "num_programs: axis must be 0, 1 or 2, got {!r}", axis)
    return TileType(int32)
