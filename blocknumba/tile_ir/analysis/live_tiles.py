"""Tiles that are alive at the same time, in words of registers.

Tiles that are computed from scalars alone (indices, masks, addresses) are computed again where they
are needed; between loads and exchanges elementwise ops take one element after the other.  So what
counts is alive where threads wait for memory or for each other:

    x = load p                  held: x
    y = load q                  held: x, y
    s = reduce x * y            exchanged: x, which is used after it
    store p, x / s
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import READS
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ir.uses import carried, is_loop
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.ops.scan import reduce_with, scan

EXCHANGES = frozenset((reduce, arg_reduce, reduce_with, scan))
WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class LiveTiles:
    """The most words that are alive at once.

    held: at loads, exchanges and in loops.  exchanged: at exchanges alone; 0 without any.
    packed: as held, but that outside of loops narrow elements share words as a load brought them.
    """

    held: int
    exchanged: int
    packed: int


def words(tile: TileType) -> int:
    """Registers of a tile, all threads together: a narrow element takes one, as a pointer does."""
    if tile.is_scalar or tile.is_pointer:
        return 1
    return tile.size * max(tile.dtype.bits // WORD_BITS, 1)


def live_tiles(fn: Function) -> LiveTiles:
    """The words that a program of the function holds."""
    walk = _Walk()
    walk.note(fn.body)
    walk.region(fn.body, set())
    return LiveTiles(walk.held, walk.exchanged, walk.packed)


class _Walk:
    """Walks regions from the last op to the first.

    kept: tiles that are not computed again.   held, exchanged: as of LiveTiles, so far.
    """

    def __init__(self):
        self.kept: set[Value] = set()
        self.held = self.exchanged = self.packed = self.loops = 0

    def note(self, region: Region) -> None:
        """Note the tiles of a region that come from memory, from exchanges, or from such tiles."""
        for op in region.ops:
            if is_loop(op):
                self.kept.update(_tiles(carried(op).args))
            for inner in op.regions:
                self.note(inner)
            source = op.regions or op.opdef.has(READS) or op.opdef in EXCHANGES or op.opdef is dot
            if source or any(value in self.kept for value in op.operands):
                self.kept.update(_tiles(op.results))

    def region(self, region: Region, alive: set[Value]) -> set[Value]:
        """The tiles that are alive before a region, of those that are alive after it."""
        alive = set(alive)
        for op in reversed(region.ops):
            if op.regions:
                alive = self._control(op, alive)
                continue
            if op.opdef.has(READS) or op.opdef in EXCHANGES:
                self._measure(op, alive)
            alive.difference_update(op.results)
            alive.update(value for value in op.operands if value in self.kept)
        return alive

    def _measure(self, op: Op, alive: set[Value]) -> None:
        is_exchange = op.opdef in EXCHANGES
        # an operand that elementwise ops make is taken up element by element
        whole = [value for value in op.operands if value.owner is None or value.owner.regions
                 or value.owner.opdef.has(READS)] if is_exchange else op.results
        present = alive | self.kept.intersection(whole)
        self._hold(present)
        if is_exchange:
            self.exchanged = max(self.exchanged, sum(words(value.type) for value in present))

    def _hold(self, present: set[Value]) -> None:
        count = sum(words(value.type) for value in present)
        self.held = max(self.held, count)
        packed = count if self.loops else sum(map(_packed_words, present))
        self.packed = max(self.packed, packed)

    def _control(self, op: Op, alive: set[Value]) -> set[Value]:
        """The tiles that are alive before a loop or a branch.

        In a loop are also those that it only reads, whose next use is in another iteration.
        """
        after = alive.difference(op.results)
        if not is_loop(op):
            return set().union(*(self.region(inner, after) for inner in op.regions),
                               self.kept.intersection(op.operands))
        (region,) = op.regions
        read = self._read(region).difference(region.args)
        self.loops += 1
        inside = self.region(region, after | read)
        self._hold(inside)
        self.loops -= 1
        return (inside | self.kept.intersection(op.operands)).difference(region.args)

    def _read(self, region: Region) -> set[Value]:
        """Kept tiles that ops of a region use and ops outside of it define."""
        used: set[Value] = set()
        made: set[Value] = set()
        for op in region.ops:
            used.update(self.kept.intersection(op.operands))
            made.update(op.results)
            for inner in op.regions:
                used |= self._read(inner).difference(inner.args)
        return used - made


def _packed_words(value: Value) -> int:
    """Words of a tile; narrow elements share them where a load brought the tile."""
    is_loaded = value.owner is not None and value.owner.opdef.has(READS)
    if not is_loaded or value.type.is_scalar or value.type.is_pointer:
        return words(value.type)
    return value.type.size * value.type.dtype.bits // WORD_BITS


def _tiles(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value.type.shape and not value.type.is_pointer]
