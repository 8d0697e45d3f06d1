"""Ops that change the dtype of a tile."""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, op
from blocknumba.tile_ir.ir.types import DTYPES, TileType
from blocknumba.tile_ir.ops import numerics

ROUNDINGS = ("nearest", "zero")


@op(PURE | ELEMENTWISE)
def cast(x, *, dtype, rounding="nearest") -> TileType:
    """x converted to dtype (a name).

    x: tile or scalar of any dtype but a pointer.
    To bool: x != 0, so true for NaN.  Float to integer: towards zero; NaN becomes 0, and values
    out of range the nearest bound.  Integer to integer: modulo 2**bits.  To float: rounded once,
    "nearest" (ties to even; overflow becomes infinity, in float8_e4m3fn NaN) or "zero".
    Errors: rounding "zero" of anything but a float to a narrower float of at least 16 bits.
    Source: numpy.ndarray.astype.
    """
    require(not x.is_pointer, "cast: given {}, accepted numbers and bools", x)
    require(rounding in ROUNDINGS, "cast: rounding must be one of {}, got {!r}", ROUNDINGS,
            rounding)
    to = DTYPES[dtype]
    narrower = x.dtype.is_float and to.is_float and 8 < to.bits < x.dtype.bits
    require(rounding == "nearest" or narrower,
            "cast: rounding 'zero' needs a narrower float of 16 bits or more, got {} to {}",
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
