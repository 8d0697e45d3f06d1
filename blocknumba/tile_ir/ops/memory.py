"""Ops on global memory: pointer arithmetic, loads, stores, atomics."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, READS, WRITES, op
from blocknumba.tile_ir.ir.types import (
    DTYPES, PointerType, TileType, bfloat16, bool_, float16, float32, float64, int32, int64,
    uint32, uint64,
)


LOAD_CACHE = ("", ".ca", ".cg", ".cs", ".cv")
STORE_CACHE = ("", ".wb", ".cg", ".cs", ".wt")
EVICTION = ("", "evict_first", "evict_last", "no_allocate")


def require_access(name: str, pointer: TileType, mask: TileType | None) -> None:
    """Require a pointer (or a tile of pointers), and a bool mask of its shape if there is one."""
    require(pointer.is_pointer, "{}: given {}, accepted a pointer or a tile of pointers", name,
            pointer)
    if mask is not None:
        require(mask == TileType(bool_, pointer.shape, mask.layout),
                "{}: mask must be a bool tile of shape {}, got {}", name, pointer.shape, mask)


@op(PURE | ELEMENTWISE)
def offset(pointer, count, *, narrow=False) -> TileType:
    """pointer moved by count elements.

    pointer: pointer or tile of pointers; count: its shape, an integer dtype of 32 or 64 bits.
    narrow: counts of elements that are accessed are at least 2**20 away from the ends of int32, so
        that a constant in a count may be added after the rest was widened.
    The result may point outside the array as long as nothing there is accessed.
    """
    require(pointer.is_pointer, "offset: given {}, accepted pointers", pointer)
    require(not count.is_pointer and count.dtype.is_integer and count.dtype.bits >= 32
            and count.shape == pointer.shape,
            "offset: count must be an integer of 32 or 64 bits and of shape {}, got {}",
            pointer.shape, count)
    return pointer


@offset.numpy
def _(pointer, count, narrow=False):
    # the interpreter's addresses count elements
    return pointer + count.astype(np.int64)


@op(PURE | ELEMENTWISE)
def address(pointer) -> TileType:
    """The address that a pointer holds, in bytes, an int64.

    pointer: pointer or tile of pointers.
    """
    require(pointer.is_pointer, "address: given {}, accepted pointers", pointer)
    return pointer.of(int64)


@op(PURE | ELEMENTWISE)
def pointer_at(address, *, dtype) -> TileType:
    """A pointer to elements of dtype (a name) at an address in bytes, wherever that came from.

    address: int64 or uint64, scalar or tile.  Nothing is known of the memory that it points to:
    it may be of any argument, and of none.
    """
    require(address.dtype in (int64, uint64), "pointer_at: given {}, accepted int64 and uint64",
            address)
    return address.of(PointerType(DTYPES[dtype]))


@op(READS)
def load(pointer, mask=None, other=None, *, cache="", eviction="", volatile=False) -> TileType:
    """The elements at pointer; where mask is false, other (0 when not given), unread.

    pointer: pointer or tile; mask: bool of its shape; other: its elements, same shape.
    cache: one of LOAD_CACHE; eviction: one of EVICTION; both change only the speed.
    volatile: the memory is read anew, for another program may have written it.
    Errors: mask or other of another shape or dtype; reading outside an array is an error on
    the CPU and undefined on a GPU.
    Source: PTX, 'ld'.
    """
    require_access("load", pointer, mask)
    value = pointer.of(pointer.dtype.pointee)
    require(other is None or other.of(value.dtype) == other and other.shape == value.shape,
            "load: other must be {}, got {}", value, other)
    require(cache in LOAD_CACHE, "load: cache_modifier must be one of {}, got {!r}", LOAD_CACHE,
            cache)
    require(eviction in EVICTION, "load: eviction_policy must be one of {}, got {!r}", EVICTION,
            eviction)
    return value


@op(WRITES)
def store(pointer, value, mask=None, *, cache="", eviction="") -> None:
    """Write value to pointer where mask is true.

    pointer: pointer or tile; value: its elements, same shape; mask: bool of its shape.
    When two elements have one address, one of them is written.
    cache: one of STORE_CACHE; eviction: one of EVICTION; both change only the speed.
    Errors: value or mask of another shape or dtype; a read-only array.
    Source: PTX, 'st'.
    """
    require_access("store", pointer, mask)
    wanted = pointer.of(pointer.dtype.pointee)
    require(value.dtype == wanted.dtype and value.shape == wanted.shape,
            "store: value must be {}, got {}", wanted, value)
    require(cache in STORE_CACHE, "store: cache_modifier must be one of {}, got {!r}", STORE_CACHE,
            cache)
    require(eviction in EVICTION, "store: eviction_policy must be one of {}, got {!r}", EVICTION,
            eviction)


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
