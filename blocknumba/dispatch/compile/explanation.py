"""What became of a kernel's loads, stores and products, and why nothing better did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.resources import layout_options
from blocknumba.errors import Loc
from blocknumba.gpu_layout.async_copies.ops import async_copy, stage, wgmma
from blocknumba.gpu_layout.async_copies.pipelining import continues, pipelining_of
from blocknumba.gpu_layout.async_copies.schedule import Schedule, plan_schedule
from blocknumba.gpu_layout.async_copies.specialize_warps import specialize_warps
from blocknumba.gpu_layout.clusters.partition import refusal, spread_blocks
from blocknumba.gpu_layout.dots.map_wgmma import refusals
from blocknumba.gpu_layout.dots.ops import PRODUCTS, mma
from blocknumba.gpu_layout.layouts.shared import access
from blocknumba.gpu_layout.memory.allocate_shared import size_bytes
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import MAPPING_PASSES, lay_out
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.kernel import fetches, producers
from blocknumba.nvvm_lower.ops.memory import access_width, guarded_width
from blocknumba.nvvm_lower.ptx.async_copy import SIZES
from blocknumba.nvvm_lower.services.async_copies import copied_at_once
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ops.memory import load, store

_PRODUCERS = re.compile(r"\bwarp_roles \{[^}]*\bproducers=(\d+)")  # in the text of a kernel
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


def explain_compiled(compiled: Compiled) -> Explanation:
    """How a kernel that has machine code was compiled."""
    machine, specialization = compiled.machine, compiled.specialization
    warps = machine.threads // specialization.target.warp_size
    fetching = _PRODUCERS.search(machine.gpu)
    num_warps = warps - int(fetching[1]) if fetching else warps
    return explain(compiled.tile, layout_options(specialization, num_warps))


def explain(fn: Function, options: LayoutOptions) -> Explanation:
    """How a function of the tile IR is compiled with these options."""
    return _Explaining(fn, options).explanation()


class _Explaining:
    """Lays a function out again, and asks the passes' plans what they did and why.

    Ops of different passes are the same if they have the same place in the source.
    """

    def __init__(self, fn: Function, options: LayoutOptions):
        self._fn = fn
        self._options = options
        after: dict[str, Function] = {}
        self._final = lay_out(fn, options, observer=lambda pass_, result, _:
                              after.__setitem__(pass_.name, result))
        before_fetches = MAPPING_PASSES[MAPPING_PASSES.index(specialize_warps) - 1]
        self._mapped = after[before_fetches.name]
        specialized, self._spread = after[specialize_warps.name], after[spread_blocks.name]
        self._producers = producers(self._final)
        planned = plan_schedule(self._mapped, options)
        self._schedule = planned if fetches(self._final) else Schedule(reasons=planned.reasons)
        self._not_fetched = _by_place(planned.reasons)
        self._not_early = _by_place(pipelining_of(specialized, options).reasons)
        self._staged = {op.x.owner.loc for op in walk(self._mapped.body)
                        if op.opdef is stage and op.x.owner is not None}

    def explanation(self) -> Explanation:
        """All that is known."""
        accesses = tuple(sorted(dict.fromkeys((*self._copied(), *self._by_threads())),
                                key=lambda access: (access.loc.line, access.loc.column)))
        loads = {access.loc: access for access in accesses if access.kind == "load"}
        return Explanation(accesses, tuple(dict.fromkeys(self._products())),
                           tuple(self._rings(loads)), self._producers, self._why_not_spread())

    def _why_not_spread(self) -> str:
        """Why blocks do not share what a program fetches, if they were to."""
        if self._options.num_ctas == 1:
            return ""
        nothing_shared = "" if self._schedule.blocks > 1 else "they would fetch nothing together"
        return refusal(self._fn, self._options) or nothing_shared

    # accesses -----------------------------------------------------------------------------------
    def _copied(self) -> Iterator[Access]:
        """What the copy engine does."""
        groups = (group for ring in self._schedule.rings for group in ring.groups)
        for fetch in (fetch for group in groups for fetch in group.fetches):
            loaded = fetch.stage.x
            source = loaded.owner
            yield Access("load", fetch.copy.map.argument, _tile(loaded.type), source.loc, TMA, 0,
                         (), blocks=fetch.copy.blocks,
                         undivided=self._schedule.undivided.get(source, ""))
        for op, parts in self._schedule.stores.items():
            yield Access("store", parts[0].map.argument, _tile(op.value.type), op.loc, TMA,
                         0, ())

    def _by_threads(self) -> Iterator[Access]:
        """What threads do."""
        infos, pointees = AxisInfos(self._final), origins(self._final)
        for op in walk(self._final.body):
            if op.opdef not in (load, store, async_copy) or not op.pointer.type.shape:
                continue
            way, width_bytes, cut_bytes = _widths(op, infos)
            pointer = op.pointer
            kind = "store" if op.opdef is store else "load"
            tile = TileType(pointer.type.dtype.pointee, pointer.type.shape)
            reasons = [self._why_not_copied(op.loc, kind)]
            if way != ASYNCHRONOUS and op.loc in self._not_early:
                reasons.append(self._not_early[op.loc])
            yield Access(kind, " or ".join(sorted(pointees.get(pointer, ()))), _tile(tile), op.loc,
                         way, width_bytes, tuple(reasons), cut_bytes)

    def _why_not_copied(self, loc: Loc, kind: str) -> str:
        """Why the copy engine does not do an access."""
        if "tma" not in self._options.features:
            return "the target has no tensor maps"
        if loc in self._not_fetched:
            return self._not_fetched[loc]
        if kind == "load" and loc not in self._staged:
            return "no product reads it"
        if self._schedule.rings:
            return "it is not in the order of what is fetched"
        return "nothing is fetched in a loop"

    # products -----------------------------------------------------------------------------------
    def _products(self) -> Iterator[Product]:
        """Each product once, whole if it is done part by part."""
        reasons = _by_place(refusals(self._spread, self._options))
        parts: dict[Op, int] = {}
        whole: dict[Op, Op] = {}
        for op in walk(self._final.body):
            if op.opdef is wgmma or op.opdef in PRODUCTS:
                whole[op] = whole.get(continues(op), op)
                parts[whole[op]] = parts.get(whole[op], 0) + 1
        for op, count in parts.items():
            a, b, sums = op.a.type, op.b.type, op.acc.type
            way = op.name if op.opdef is wgmma else "multiply-add"
            if op.opdef is mma:
                way = f"mma {attribute(op, 'instruction')}"
            operands = f"{a.dtype}" if a.dtype == b.dtype else f"{a.dtype} by {b.dtype}"
            reason = "" if op.opdef is wgmma else reasons.get(op.loc, "")
            yield Product((*sums.shape, count * a.shape[-1]), operands, str(sums.dtype), op.loc,
                          way, reason, count)

    # rings --------------------------------------------------------------------------------------
    def _rings(self, loads: dict[Loc, Access]) -> Iterator[Ring]:
        """Buffers of tiles that are loaded.  loads: by their places."""
        for op in walk(self._final.body):
            if op.opdef is shared_allocate and attribute(op, "copies") > 1 and op.loc in loads:
                load_ = loads[op.loc]
                yield Ring(load_.array, _tile(op.result.type), attribute(op, "copies"),
                           size_bytes(op), load_.blocks)


def _by_place(reasons: dict[Op, str]) -> dict[Loc, str]:
    return {op.loc: reason for op, reason in reasons.items()}


def _widths(op: Op, infos: AxisInfos) -> tuple[str, int, int]:
    """How threads do an access, and how many bytes each moves at once: usually, and if cut."""
    pointer = op.pointer.type
    width, bits = access_width(infos, op), element_bits(pointer.dtype.pointee)
    if op.opdef is async_copy:
        plan = access(pointer.layout, op.buffer.type.layout, bits)
        copied_bytes = copied_at_once(plan, width) * bits // 8
        if copied_bytes in SIZES:
            return ASYNCHRONOUS, copied_bytes, 0
    guarded = 1 if op.opdef is async_copy else guarded_width(infos, op)
    if guarded > width:
        return THREADS, guarded * bits // 8, width * bits // 8
    return THREADS, width * bits // 8, 0


def _tile(tile: TileType) -> str:
    """A tile's extents and dtype."""
    return f"{'x'.join(map(str, tile.shape))}x{tile.dtype}"


def _place(loc: Loc) -> str:
    """File and line, and the line of the call that it is of."""
    called = f" called in {loc.caller.line}" if loc.caller else ""
    return f"{Path(loc.file).name}:{loc.line}{called}"
