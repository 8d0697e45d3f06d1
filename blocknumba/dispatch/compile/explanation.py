"""Records of compiled.stats, built from the remarks of the passes.

Each pass that decides leaves remarks in the function (tile_ir/ir/remarks.py): a topic, the op's
location and details.  They are stored with the machine code, in the disk cache too.  Nothing is
laid out or compiled again:

    passes --Remark--> Function.remarks --> MachineCode.remarks --explain--> Access, Product, Ring

Remarks on one op are brought together by its location.
"""

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
    way: TMA; ASYNCHRONOUS, by threads that do not wait (cp.async); THREADS.
    width_bytes: bytes that a thread moves with one instruction; 0 with TMA.
    cut_bytes: the same where a mask ends within such a vector; 0 if no mask can.
    reasons: why not TMA; then, of operands of a dot, why they are not loaded iterations ahead.
    blocks: blocks of the cluster that each bring a shard to all; 1 if each loads its own tile.
    undivided: why the blocks do not share the load, though all need the same tile.
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
        return f"{_location(self.loc)}  {self.array} {self.tile}: {self.way}{width}{reasons}"


@dataclass(frozen=True, slots=True)
class Product:
    """A dot of tiles.

    extents: M, N and K, after those of a batch.  sums: dtype of the accumulator.
    way: "wgmma", an mma instruction of warps, or "multiply-add" without tensor cores.
    reason: why not wgmma.
    parts: k slices, whose operands are read while the slice before is computed; 1 if whole.
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
        return (f"{_location(self.loc)}  {extents}, {self.operands} in {self.sums}: "
                f"{self.way}{parts}{reason}")


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring of buffers in shared memory: some are filled while others are read.

    array: the argument that is loaded.  tile: of one buffer.  copies: buffers, as num_stages.
    size_bytes: of all buffers.
    blocks: blocks of the cluster that fill it together; 1 if each fills its own.
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
    """Accesses, dots and rings of a kernel, in the order of its source.

    producers: additional warps that issue TMA copies.
    why_not_spread: why the kernel is not partitioned over the blocks of num_ctas, or gains
        nothing; empty if it gains.
    """

    accesses: tuple[Access, ...]
    products: tuple[Product, ...]
    rings: tuple[Ring, ...]
    producers: int
    why_not_spread: str = ""


def explain(remarks: Iterable[Remark]) -> Explanation:
    """The records of a kernel, from its remarks."""
    return _Explaining(remarks).explanation()


class _Explaining:
    """Join of the remarks on each op, by the op's location."""

    def __init__(self, remarks: Iterable[Remark]):
        self._by_topic: dict[str, list[Remark]] = {}
        for remark in remarks:
            self._by_topic.setdefault(remark.topic, []).append(remark)

    def explanation(self) -> Explanation:
        """All records."""
        accesses = tuple(sorted(dict.fromkeys((*self._copied(), *self._by_threads())),
                                key=lambda access: (access.loc.line, access.loc.column)))
        loads = {access.loc: access for access in accesses if access.kind == "load"}
        producers = sum(remark.details["warps"] for remark in self._of(PRODUCERS))
        unused = next((remark.reason for remark in self._of(NOT_PARTITIONED)), "")
        return Explanation(accesses, tuple(dict.fromkeys(self._dots())),
                           tuple(self._rings(loads)), producers, unused)

    def _of(self, topic: str) -> list[Remark]:
        return self._by_topic.get(topic, [])

    def _reasons(self, topic: str) -> dict[Loc, str]:
        return {remark.loc: remark.reason for remark in self._of(topic)}

    def _copied(self) -> Iterator[Access]:
        """Accesses by TMA."""
        for remark in self._of(BY_TMA):
            of = remark.details
            yield Access(of["kind"], of["array"], of["tile"], remark.loc, TMA, 0, (),
                         blocks=of["blocks"], undivided=of["undivided"])

    def _by_threads(self) -> Iterator[Access]:
        """Accesses by threads."""
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

    def _dots(self) -> Iterator[Product]:
        """Each dot once, whole if it is done in k slices."""
        reasons, dots = self._reasons(NOT_WGMMA), []
        for remark in self._of(DOT):
            if remark.details["continues"]:
                last = next(slices for slices in reversed(dots) if slices[0].loc == remark.loc)
                last.append(remark)
            else:
                dots.append([remark])
        for first, *further in dots:
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


def _location(loc: Loc) -> str:
    """File and line, and the line of the call that it was inlined at."""
    called = f" called in {loc.caller.line}" if loc.caller else ""
    return f"{Path(loc.file).name}:{loc.line}{called}"
