"""Effects: the array arguments that a kernel reads, and those that it stores to."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.analysis.provenance import loaded, stored
from blocknumba.tile_ir.ir.function import Function


@dataclass(frozen=True, slots=True)
class Effects:
    """The array arguments, by name, that programs may read and may store to."""

    read: frozenset[str]
    stored: frozenset[str]


def effects(fn: Function) -> Effects:
    """Effects of a function on its arrays."""
    return Effects(loaded(fn), stored(fn))
