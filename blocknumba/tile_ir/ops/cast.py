"""Ops that change the dtype of a tile."""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, op
from blocknumba.tile_ir.ir.types import DTYPES, TileType
from blocknumba.tile_ir.ops import numerics

ROUNDINGS = ("nearest", "zero", "saturate")


@op(PURE | ELEMENTWISE)
def cast(x, *, dtype, rounding="nearest") -> TileType:
    """x converted to dtype (a name).

    x: tile or scalar of any dtype but a pointer.
    To bool: x != 0, so true for NaN.  Float to integer: towards zero; NaN becomes 0, and values
    out of range the nearest bound.  Integer to integer: modulo 2**bits.  To float: rounded once,
    "nearest" (ties to even; overflow becomes infinity, in float8_e4m3fn NaN), "zero", or
    "saturate": as nearest, but infinities and what overflows become the greatest finite number.
    Errors: rounding "zero" of anything but a float to a narrower float of at least 16 bits;
    "saturate" of anything but such a float to one of 8 bits.
    Source: numpy.ndarray.astype.
    """
    require(not x.is_pointer, "cast: given {}, accepted numbers and bools", x)
    require(rounding in ROUNDINGS, "cast: rounding must be one of {}, got {!r}", ROUNDINGS,
            rounding)
    to = DTYPES[dtype]
    narrower = x.dtype.is_float and to.is_float and 8 < to.bits < x.dtype.bits
    require(rounding != "zero" or narrower,
            "cast: rounding 'zero' needs a narrower float of 16 bits or more, got {} to {}",
            x.dtype, to)
    saturable = x.dtype.is_float and to.is_float and to.bits == 8 < x.dtype.bits
    require(rounding != "saturate" or saturable,
            "cast: rounding 'saturate' needs a float of 16 bits or more and one of 8, got {} to {}",
            x.dtype, to)
    return x.of(to)


@cast.numpy
def _(x, *, dtype, rounding="nearest"):
    return numerics.convert(x, DTYPES[dtype].numpy, rounding)


@op(PURE | ELEMENTWISE)
def bitcast(x, *, dtype) -> TileType:
    """The bits of x taken as dtype (a name) of the same size.

    Source: numpy.ndarray.view.
    """
    to = DTYPES[dtype]
    require(not x.is_pointer and to.bits == x.dtype.bits,
            "bitcast: given {} and {}, accepted dtypes of one size", x, to)
    return x.of(to)


@bitcast.numpy
def _(x, *, dtype):
    return x.view(DTYPES[dtype].numpy)
