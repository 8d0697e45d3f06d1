"""Ops on global memory: pointer arithmetic, loads and stores."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, READS, WRITES, op
from blocknumba.tile_ir.ir.types import TileType, bool_

LOAD_CACHE = ("", ".ca", ".cg", ".cv")
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
def offset(pointer, count) -> TileType:
    """pointer moved by count elements.

    pointer: pointer or tile of pointers; count: its shape, an integer dtype of 32 or 64 bits.
    The result may point outside the array as long as nothing there is accessed.
    """
    require(pointer.is_pointer, "offset: given {}, accepted pointers", pointer)
    require(not count.is_pointer and count.dtype.is_integer and count.dtype.bits >= 32
            and count.shape == pointer.shape,
            "offset: count must be an integer of 32 or 64 bits and of shape {}, got {}",
            pointer.shape, count)
    return pointer


@offset.numpy
def _(pointer, count):
    # the interpreter's addresses count elements
    return pointer + count.astype(np.int64)


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
