"""Statistics of a compiled kernel: what it uses, and what the compiler did with its ops.

Records of compiled.stats, built from the remarks of the passes.

Each pass that decides leaves remarks in the function (tile_ir/ir/remarks.py): a topic, the op's
location and details.  They are stored with the machine code, in the disk cache too.  Nothing is
laid out or compiled again:

    passes --Remark--> Function.remarks --> MachineCode.remarks --explain--> Access, Dot, Ring

Remarks on one op are brought together by its location.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.errors import Loc
from blocknumba.tile_ir.ir.remarks import (
    BY_THREADS, DOT, DOUBLES, NOT_EARLY, NOT_IN_ORDER, NOT_PARTITIONED, NOT_TMA, NOT_WGMMA,
    PRODUCERS, RING, TMA as BY_TMA, Remark,
)
from blocknumba.tables import html_table
from blocknumba.wording import file_name


Cells = tuple[str, str, str]  # of a row: a place in the source, what is there, how it is done

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
        return _line(self)

    @property
    def cells(self) -> Cells:
        """Where, what and how."""
        width = f", {self.width_bytes} bytes at a time" if self.width_bytes else ""
        width += f", {self.cut_bytes} where the mask cuts them" if self.cut_bytes else ""
        width += f", a portion by each of {self.blocks} blocks" if self.blocks > 1 else ""
        width += f"; by each block for itself: {self.undivided}" if self.undivided else ""
        whys = ("not TMA", "not early")
        reasons = "".join(f"; {why}: {reason}" for why, reason in zip(whys, self.reasons))
        return _location(self.loc), f"{self.array} {self.tile}", f"{self.way}{width}{reasons}"


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot of tiles.

    extents: M, N and K, after those of a batch.  acc: dtype of the accumulator.
    way: "wgmma", an mma instruction of warps, or "multiply-add" without tensor cores.
    reason: why not wgmma.
    k_slices: slices of K, each read while the one before is computed; 1 if whole.
    """

    extents: tuple[int, ...]
    operands: str
    acc: str
    loc: Loc
    way: str
    reason: str
    k_slices: int = 1

    def __str__(self) -> str:
        return _line(self)

    @property
    def cells(self) -> Cells:
        """Where, what and how."""
        extents = "x".join(map(str, self.extents))
        ahead = f", operands of {self.k_slices} k slices read ahead" if self.k_slices > 1 else ""
        reason = f"; not wgmma: {self.reason}" if self.reason else ""
        return (_location(self.loc), f"{extents}, {self.operands} in {self.acc}",
                f"{self.way}{ahead}{reason}")


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
        return _line(self)

    @property
    def cells(self) -> Cells:
        """Nowhere in particular, what and how."""
        together = f", filled by {self.blocks} blocks together" if self.blocks > 1 else ""
        return ("", f"{self.array} {self.tile}",
                f"{self.copies} copies, {self.size_bytes} bytes{together}")


def _line(record: Access | Dot | Ring) -> str:
    """The cells of a record as a line."""
    where, what, how = record.cells
    return f"{where}  {what}: {how}" if where else f"{what}: {how}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Accesses, dots and rings of a kernel, in the order of its source.

    producers: additional warps that issue TMA copies.
    doubles: where scalar functions compute in float64, though nothing they are given has 64 bits.
    not_partitioned: why the kernel is not partitioned over the blocks of num_ctas, or gains
        nothing; empty if it gains.
    """

    accesses: tuple[Access, ...]
    products: tuple[Dot, ...]
    rings: tuple[Ring, ...]
    producers: int
    not_partitioned: str = ""
    doubles: tuple[str, ...] = ()


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
                           tuple(self._rings(loads)), producers, unused, self._doubles())

    def _doubles(self) -> tuple[str, ...]:
        return tuple(f"{_location(remark.loc)}  {remark.details['function']}: Numba's rules make "
                     "this float64; numpy.float32(...) of an operand avoids it"
                     for remark in self._of(DOUBLES))

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

    def _dots(self) -> Iterator[Dot]:
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
            yield Dot((*rows_and_columns, count * depth),
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
    return f"{file_name(loc.file)}:{loc.line}{called}"


_GLOBAL_LOAD = re.compile(r"ld\.global\S*?(?:\.v(\d+))?\.[bfsu](\d+)\b")


@dataclass(frozen=True)
class Stats:
    """Resource use and compilation records of a kernel; `print` shows all of it.

    registers, spills, stack_bytes: per thread; spills and stack in bytes of local memory.
    shared_bytes: per block, static and dynamic.
    occupancy: fraction of a multiprocessor's threads that can be resident at once, 0 to 1.
    warnings: of the assembler.
    The properties are computed when they are read.
    """

    registers: int
    spills: int
    stack_bytes: int
    shared_bytes: int
    occupancy: float
    warnings: tuple[str, ...]
    _name: str = field(repr=False, compare=False)
    _specialization: Specialization = field(repr=False, compare=False)
    _machine: MachineCode = field(repr=False, compare=False)
    _ptx: Callable[[], str] = field(repr=False, compare=False)
    _chosen: Callable[[], str] = field(repr=False, compare=False)
    _advice: Callable[[], tuple[str, ...]] = field(repr=False, compare=False)

    @staticmethod
    def of(name: str, specialization: Specialization, machine: MachineCode,
           ptx: Callable[[], str], chosen: Callable[[], str],
           advice: Callable[[], tuple[str, ...]]) -> Stats:
        """The stats of a kernel's machine code.

        ptx: makes its PTX, which may take compiling.  chosen: the tiles of the last launch.
        advice: what its tile IR tells.
        """
        target, assembled = specialization.target, machine.assembled
        shared_bytes = machine.shared_bytes + assembled.shared_bytes
        blocks = target.resident_blocks(machine.threads // target.warp_size, assembled.registers,
                                        shared_bytes)
        return Stats(assembled.registers, assembled.spill_bytes, assembled.stack_bytes,
                     shared_bytes, blocks * machine.threads / target.threads_per_processor,
                     assembled.warnings, name, specialization, machine, ptx, chosen, advice)

    @cached_property
    def loads(self) -> tuple[int, ...]:
        """Bytes that one thread fetches at a time, for each load from global memory in the PTX."""
        found = _GLOBAL_LOAD.findall(self._ptx())
        return tuple(int(count or 1) * int(bits) // 8 for count, bits in found)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Each load and store of a tile: how wide, by whom, and why not by TMA."""
        return self._explanation.accesses

    @property
    def products(self) -> tuple[Dot, ...]:
        """Each dot of tiles: by which instruction, and why not by wgmma."""
        return self._explanation.products

    @property
    def rings(self) -> tuple[Ring, ...]:
        """Rings of buffers in shared memory, some filled while others are read."""
        return self._explanation.rings

    @property
    def producers(self) -> int:
        """Additional warps that issue TMA copies."""
        return self._explanation.producers

    @property
    def doubles(self) -> tuple[str, ...]:
        """Lines where scalar functions compute in float64, though nothing given has 64 bits."""
        return self._explanation.doubles

    @property
    def tiles(self) -> str:
        """The tiles that the compiler chose, and what came next; empty if they were given."""
        return self._chosen()

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """Lines on what is slow as the kernel is written, and what to write instead."""
        spilled = (f"{self.spills} bytes of values go through memory, as registers do not hold "
                   "them: take smaller tiles, or more warps",) if self.spills else ()
        exact = (f"{_location(product.loc)}  exact products of float32 use no tensor cores: "
                 "precision=\"tf32\", if 11 significant bits will do" for product in self.products
                 if product.operands == "float32" and product.way == "multiply-add")
        return (*self._advice(), *spilled, *dict.fromkeys(exact))

    @property
    def unused_options(self) -> tuple[str, ...]:
        """Options without effect, and why."""
        reason, asked = self._explanation.not_partitioned, self._specialization.options
        return (f"num_ctas={asked.num_ctas}: {reason}",) if reason else ()

    @cached_property
    def _explanation(self) -> Explanation:
        return explain(self._machine.remarks)

    def __str__(self) -> str:
        lines = [self._summary]
        for title, records in self._sections():
            lines += [title, *(f"  {record}" for record in records)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same as notebooks show it: a table for each kind of record."""
        return f"<p>{escape(self._summary)}</p>" + "".join(
            html_table((), [(record,) if isinstance(record, str) else record.cells
                            for record in records], title)
            for title, records in self._sections())

    @property
    def _summary(self) -> str:
        machine, target = self._machine, self._specialization.target
        warps = machine.threads // target.warp_size
        cluster = f"{machine.cluster} blocks of " if machine.cluster > 1 else ""
        producing = f" and {self.producers} that fetch" if self.producers else ""
        spills = f"{self.spills} bytes of spills" if self.spills else "no spills"
        return (f"{self._name} for {target}: {cluster}"
               f"{warps - self.producers} warps{producing}, {self.registers} registers, {spills}, "
               f"{self.shared_bytes} bytes of shared memory, occupancy {self.occupancy:.0%}")

    def _sections(self) -> Iterator[tuple[str, Sequence[Access | Dot | Ring | str]]]:
        """Titles, and the records under each, where there are any."""
        by_title = {f"{kind}s": [a for a in self.accesses if a.kind == kind]
                    for kind in ("load", "store")}
        by_title |= {"products": self.products, "rings": self.rings, "float64": self.doubles,
                     "tiles": [*filter(None, [self.tiles])],
                     "options without effect": self.unused_options, "warnings": self.warnings,
                     "advice": self.advice}
        yield from ((title, records) for title, records in by_title.items() if records)
