"""What became of a kernel's loads, stores and products, and why nothing better did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from blocknumba.errors import Loc
from blocknumba.tile_ir.ir.remarks import (
    BY_THREADS, DOT, NOT_EARLY, NOT_IN_ORDER, NOT_PARTITIONED, NOT_TMA, NOT_WGMMA, PRODUCERS, RING,
    TMA as BY_TMA, Remark,
)

TMA, ASYNCHRONOUS, THREADS = "TMA", "asynchronous", "threads"


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store of a tile in global memory.

    kind: "load" or "store".  array: the argument.  tile: its extents and dtype.
    way: TMA, by the copy engine; ASYNCHRONOUS, by threads that do not wait; THREADS.
    width_bytes: what a thread moves at once; 0 with TMA.
    cut_bytes: the same, where the bound of a mask cuts what is moved at once; 0 if none can.
    reasons: why not TMA; then, of what a product reads, why it is not loaded rounds early.
    blocks: of the program, each of which brings a portion to all; 1 where each has its own tile.
    undivided: why not so, though all blocks need the same tile.
    """

    kind: str
    array: str
    tile: str
    loc: Loc
    way: str
    width_bytes: int
    reasons: tuple[str, ...]
    cut_bytes: int = 0
    blocks: int = 1
    undivided: str = ""

    def __str__(self) -> str:
        width = f", {self.width_bytes} bytes at a time" if self.width_bytes else ""
        width += f", {self.cut_bytes} where the mask cuts them" if self.cut_bytes else ""
        width += f", a portion by each of {self.blocks} blocks" if self.blocks > 1 else ""
        width += f"; by each block for itself: {self.undivided}" if self.undivided else ""
        whys = ("not TMA", "not early")
        reasons = "".join(f"; {why}: {reason}" for why, reason in zip(whys, self.reasons))
        return f"{_place(self.loc)}  {self.array} {self.tile}: {self.way}{width}{reasons}"


@dataclass(frozen=True, slots=True)
class Product:
    """A product of tiles.

    extents: M, N and K, after those of a batch.  way: "wgmma", an instruction of warps, or
    "multiply-add" without tensor cores.  reason: why not wgmma.
    parts: it is done in, where the operands of each are read before the part before it is.
    """

    extents: tuple[int, ...]
    operands: str
    sums: str
    loc: Loc
    way: str
    reason: str
    parts: int = 1

    def __str__(self) -> str:
        extents = "x".join(map(str, self.extents))
        parts = f", operands of {self.parts} parts read ahead" if self.parts > 1 else ""
        reason = f"; not wgmma: {self.reason}" if self.reason else ""
        return (f"{_place(self.loc)}  {extents}, {self.operands} in {self.sums}: "
                f"{self.way}{parts}{reason}")


@dataclass(frozen=True, slots=True)
class Ring:
    """Copies of a buffer that are filled in turn, while others are read.

    array: what is loaded to it.  tile: of one copy.  copies: as num_stages.
    size_bytes: of all copies.
    blocks: of the program, which fill it together; 1 where each fills its own.
    """

    array: str
    tile: str
    copies: int
    size_bytes: int
    blocks: int = 1

    def __str__(self) -> str:
        together = f", filled by {self.blocks} blocks together" if self.blocks > 1 else ""
        return f"{self.array} {self.tile}: {self.copies} copies, {self.size_bytes} bytes{together}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Accesses, products and rings of a kernel, in the order of its source.

    producers: warps besides those of the program, which tell the copy engine what to fetch.
    why_not_spread: over the blocks that were asked for, or to what avail; empty where it pays.
    """

    accesses: tuple[Access, ...]
    products: tuple[Product, ...]
    rings: tuple[Ring, ...]
    producers: int
    why_not_spread: str = ""


def explain(remarks: Iterable[Remark]) -> Explanation:
    """How a kernel was compiled, as its remarks tell."""
    return _Explaining(remarks).explanation()


class _Explaining:
    """Brings remarks on one op together: ops are the same if their locations are."""

    def __init__(self, remarks: Iterable[Remark]):
        self._by_topic: dict[str, list[Remark]] = {}
        for remark in remarks:
            self._by_topic.setdefault(remark.topic, []).append(remark)

    def explanation(self) -> Explanation:
        """All that is known."""
        accesses = tuple(sorted(dict.fromkeys((*self._copied(), *self._by_threads())),
                                key=lambda access: (access.loc.line, access.loc.column)))
        loads = {access.loc: access for access in accesses if access.kind == "load"}
        producers = sum(remark.details["warps"] for remark in self._of(PRODUCERS))
        alone = next(iter(self._of(NOT_PARTITIONED)), None)
        return Explanation(accesses, tuple(dict.fromkeys(self._products())),
                           tuple(self._rings(loads)), producers, alone.reason if alone else "")

    def _of(self, topic: str) -> list[Remark]:
        return self._by_topic.get(topic, [])

    def _reasons(self, topic: str) -> dict[Loc, str]:
        return {remark.loc: remark.reason for remark in self._of(topic)}

    def _copied(self) -> Iterator[Access]:
        """What the copy engine does."""
        for remark in self._of(BY_TMA):
            of = remark.details
            yield Access(of["kind"], of["array"], of["tile"], remark.loc, TMA, 0, (),
                         blocks=of["blocks"], undivided=of["undivided"])

    def _by_threads(self) -> Iterator[Access]:
        """What threads do."""
        not_early = self._reasons(NOT_EARLY)
        not_copied = {(remark.details["kind"], remark.loc): remark.reason
                      for remark in self._of(NOT_TMA)}
        of_all = next((remark.reason for remark in self._of(NOT_TMA)
                       if remark.details["kind"] == "all"), NOT_IN_ORDER)
        for remark in self._of(BY_THREADS):
            of, loc = remark.details, remark.loc
            reasons = [not_copied.get((of["kind"], loc), of_all)]
            if of["way"] != ASYNCHRONOUS and loc in not_early:
                reasons.append(not_early[loc])
            yield Access(of["kind"], of["array"], of["tile"], loc, of["way"], of["width_bytes"],
                         tuple(reasons), of["cut_bytes"])

    def _products(self) -> Iterator[Product]:
        """Each product once, whole if it is done part by part."""
        reasons, parts = self._reasons(NOT_WGMMA), []
        for remark in self._of(DOT):
            if remark.details["continues"]:
                last = next(done for done in reversed(parts) if done[0].loc == remark.loc)
                last.append(remark)
            else:
                parts.append([remark])
        for first, *further in parts:
            of, count = first.details, 1 + len(further)
            *rows_and_columns, depth = of["extents"]
            reason = "" if of["instruction"] == "wgmma" else reasons.get(first.loc, "")
            yield Product((*rows_and_columns, count * depth),
                          " by ".join(dict.fromkeys(of["dtypes"])), of["acc"], first.loc,
                          of["instruction"], reason, count)

    def _rings(self, loads: dict[Loc, Access]) -> Iterator[Ring]:
        """Buffers of tiles that are loaded.  loads: by location."""
        for remark in self._of(RING):
            if remark.loc in loads:
                load, of = loads[remark.loc], remark.details
                yield Ring(load.array, of["tile"], of["copies"], of["size_bytes"], load.blocks)


def _place(loc: Loc) -> str:
    """File and line, and the line of the call that it is of."""
    called = f" called in {loc.caller.line}" if loc.caller else ""
    return f"{Path(loc.file).name}:{loc.line}{called}"
