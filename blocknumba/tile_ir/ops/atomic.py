"""Atomic read-modify-write ops on global memory."""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import READS, WRITES, op
from blocknumba.tile_ir.ir.types import (
    TileType, bfloat16, float16, float32, float64, int32, int64, uint32, uint64,
)
from blocknumba.tile_ir.ops.memory import require_access

_WORDS = frozenset((int32, int64, uint32, uint64))
_WIDE_FLOATS = frozenset((float32, float64))
KINDS = {
    "add": _WORDS | {float16, bfloat16} | _WIDE_FLOATS,
    "max": _WORDS | _WIDE_FLOATS,
    "min": _WORDS | _WIDE_FLOATS,
    "and": _WORDS,
    "or": _WORDS,
    "xor": _WORDS,
    "exchange": _WORDS | _WIDE_FLOATS,
}
SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "gpu", "sys")


def _require_order(name: str, semantics: str, scope: str) -> None:
    require(semantics in SEMANTICS, "{}: sem must be one of {}, got {!r}", name, SEMANTICS,
            semantics)
    require(scope in SCOPES, "{}: scope must be one of {}, got {!r}", name, SCOPES, scope)


@op(READS | WRITES)
def atomic_rmw(pointer, value, mask=None, *, kind, semantics="acq_rel", scope="gpu") -> TileType:
    """Replace the element at pointer by kind(element, value); returns the old one.

    pointer: pointer or tile; value: its elements, same shape; mask: bool; where it is false
    nothing is touched and the result is 0.  kind: a key of KINDS, which lists its dtypes.
    Elements with one address are all applied, one after the other, in no stated order, each
    seeing the one before.  Integers wrap; a float16 or bfloat16 sum is rounded at each step;
    beside a NaN, max and min may keep either.
    semantics: one of SEMANTICS; scope: one of SCOPES.
    Source: PTX, 'atom'.
    """
    require(kind in KINDS, "atomic_rmw: kind must be one of {}, got {!r}", tuple(KINDS), kind)
    require_access(f"atomic_{kind}", pointer, mask)
    wanted = pointer.of(pointer.dtype.pointee)
    require(wanted.dtype in KINDS[kind], "atomic_{}: given {}, accepted {}", kind, wanted.dtype,
            ", ".join(sorted(map(str, KINDS[kind]))))
    require(value.dtype == wanted.dtype and value.shape == wanted.shape,
            "atomic_{}: value must be {}, got {}", kind, wanted, value)
    _require_order(f"atomic_{kind}", semantics, scope)
    return wanted


@op(READS | WRITES)
def atomic_cas(pointer, compare, value, mask=None, *, semantics="acq_rel",
               scope="gpu") -> TileType:
    """Replace the element at pointer by value if its bits equal compare's; returns the old one.

    pointer: pointer or tile; compare, value: its elements (16, 32 or 64 bits), same shape;
    mask: bool; where it is false nothing is touched and the result is 0.
    Bits are compared: -0.0 is not 0.0, and a NaN equals itself.
    semantics: one of SEMANTICS; scope: one of SCOPES.
    Source: PTX, 'atom.cas'.
    """
    require_access("atomic_cas", pointer, mask)
    wanted = pointer.of(pointer.dtype.pointee)
    require(wanted.dtype.bits >= 16, "atomic_cas: given {}, accepted dtypes of 16, 32 or 64 bits",
            wanted.dtype)
    for name, given in (("compare", compare), ("value", value)):
        require(given.dtype == wanted.dtype and given.shape == wanted.shape,
                "atomic_cas: {} must be {}, got {}", name, wanted, given)
    _require_order("atomic_cas", semantics, scope)
    return wanted
