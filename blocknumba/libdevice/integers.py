"""Functions of integers, by bits and by halves."""

from __future__ import annotations

from blocknumba.libdevice.parts import integers
from blocknumba.tile_ir.ir.types import int32, int64, uint32, uint64
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import (
    BIT_FUNCTIONS, absolute, maximum, minimum, umulhi, where as _where,
)

popc, clz, ffs = (BIT_FUNCTIONS[name] for name in ("popc", "clz", "ffs"))
abs, max, min = absolute, maximum, minimum  # noqa: A001


def llabs(x):
    """|x| of int64."""
    return absolute(integers(x, int64))


def popcll(x):
    """Number of bits set of an int64, int32."""
    return cast(popc(integers(x, int64)), int32)


def clzll(x):
    """Number of leading zero bits of an int64, int32."""
    return cast(clz(integers(x, int64)), int32)


def ffsll(x):
    """1 + the index of the lowest set bit of an int64, or 0; int32."""
    return cast(ffs(integers(x, int64)), int32)


def _extremum(name, function, dtype):
    def extremum(x, y):
        return function(integers(x, dtype), integers(y, dtype))

    extremum.__name__ = extremum.__qualname__ = name
    extremum.__doc__ = f"The {'greater' if function is maximum else 'lesser'} of two {dtype}."
    return extremum


umax, llmax, ullmax = (_extremum(name, maximum, dtype) for name, dtype in (
    ("umax", uint32), ("llmax", int64), ("ullmax", uint64)))
umin, llmin, ullmin = (_extremum(name, minimum, dtype) for name, dtype in (
    ("umin", uint32), ("llmin", int64), ("ullmin", uint64)))


def hadd(x, y):
    """(x + y) // 2 without overflow."""
    return (x & y) + ((x ^ y) >> 1)


def rhadd(x, y):
    """(x + y + 1) // 2 without overflow."""
    return (x | y) - ((x ^ y) >> 1)


def uhadd(x, y):
    """(x + y) // 2 of two uint32 without overflow."""
    return hadd(integers(x, uint32), integers(y, uint32))


def urhadd(x, y):
    """(x + y + 1) // 2 of two uint32 without overflow."""
    return rhadd(integers(x, uint32), integers(y, uint32))


def mulhi(x, y):
    """High half of the product of two int32."""
    return cast((cast(x, int64) * cast(y, int64)) >> 32, int32)


def umul64hi(x, y):
    """High half of the product of two uint64."""
    return umulhi(integers(x, uint64), integers(y, uint64))


def mul64hi(x, y):
    """High half of the product of two int64."""
    a, b = integers(x, int64), integers(y, int64)
    high = cast(umul64hi(a, b), int64)
    return high - _where(a < 0, b, 0) - _where(b < 0, a, 0)


def mul24(x, y):
    """Low 32 bits of the product of the low 24 bits of two int32, taken as signed."""
    a, b = integers(x, int32), integers(y, int32)
    return (a << 8 >> 8) * (b << 8 >> 8)


def umul24(x, y):
    """Low 32 bits of the product of the low 24 bits of two uint32."""
    return (integers(x, uint32) & 0xFFFFFF) * (integers(y, uint32) & 0xFFFFFF)


def sad(x, y, z):
    """|x - y| + z of int32 x and y, modulo 2**32; uint32."""
    a, b = integers(x, int32), integers(y, int32)
    distance = _where(a > b, cast(a, uint32) - cast(b, uint32), cast(b, uint32) - cast(a, uint32))
    return distance + integers(z, uint32)


def usad(x, y, z):
    """|x - y| + z of uint32, modulo 2**32."""
    a, b = integers(x, uint32), integers(y, uint32)
    return _where(a > b, a - b, b - a) + integers(z, uint32)


def brev(x):
    """The bits of an int32 in the opposite order."""
    bits = integers(x, uint32)
    for width, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        bits = ((bits >> width) & mask) | ((bits & mask) << width)
    return cast((bits >> 16) | (bits << 16), int32)


def brevll(x):
    """The bits of an int64 in the opposite order."""
    bits = integers(x, uint64)
    high = cast(brev(cast(bits, uint32)), uint32)
    low = cast(brev(cast(bits >> 32, uint32)), uint32)
    return cast((cast(high, uint64) << 32) | cast(low, uint64), int64)


def byte_perm(x, y, s):
    """Four of the eight bytes of y and x, int32: byte i is that of number (s >> 4 * i) & 7.

    Bytes 0 to 3 are those of x, from its lowest on, 4 to 7 those of y.
    """
    both = (cast(integers(y, uint32), uint64) << 32) | cast(integers(x, uint32), uint64)
    selector = integers(s, uint32)
    result = selector * 0
    for index in (0, 1, 2, 3):
        shift = cast(((selector >> (4 * index)) & 7) * 8, uint64)
        result |= cast((both >> shift) & 255, uint32) << (8 * index)
    return cast(result, int32)
