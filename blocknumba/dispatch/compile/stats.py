"""Resource use of a compiled kernel, and how its loads, stores and dots were compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from blocknumba.dispatch.compile.explanation import Access, Explanation, Product, Ring, explain
from blocknumba.dispatch.compile.machine_code import MachineCode
from blocknumba.dispatch.launch.specialize import Specialization

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

    @staticmethod
    def of(name: str, specialization: Specialization, machine: MachineCode,
           ptx: Callable[[], str]) -> Stats:
        """The stats of a kernel's machine code.  ptx: makes its PTX, which may take compiling."""
        target, assembled = specialization.target, machine.assembled
        shared_bytes = machine.shared_bytes + assembled.shared_bytes
        blocks = target.resident_blocks(machine.threads // target.warp_size, assembled.registers,
                                        shared_bytes)
        return Stats(assembled.registers, assembled.spill_bytes, assembled.stack_bytes,
                     shared_bytes, blocks * machine.threads / target.threads_per_processor,
                     assembled.warnings, name, specialization, machine, ptx)

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
    def products(self) -> tuple[Product, ...]:
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
    def unused_options(self) -> tuple[str, ...]:
        """Options without effect, and why."""
        reason, asked = self._explanation.why_not_spread, self._specialization.options
        return (f"num_ctas={asked.num_ctas}: {reason}",) if reason else ()

    @cached_property
    def _explanation(self) -> Explanation:
        return explain(self._machine.remarks)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        machine, target = self._machine, self._specialization.target
        warps = machine.threads // target.warp_size
        cluster = f"{machine.cluster} blocks of " if machine.cluster > 1 else ""
        producing = f" and {self.producers} that fetch" if self.producers else ""
        spills = f"{self.spills} bytes of spills" if self.spills else "no spills"
        yield (f"{self._name} for {target}: {cluster}"
               f"{warps - self.producers} warps{producing}, {self.registers} registers, {spills}, "
               f"{self.shared_bytes} bytes of shared memory, occupancy {self.occupancy:.0%}")
        for kind in ("load", "store"):
            yield from _titled(f"{kind}s", (a for a in self.accesses if a.kind == kind))
        yield from _titled("products", self.products)
        yield from _titled("rings", self.rings)
        yield from _titled("options without effect", self.unused_options)
        yield from _titled("warnings", self.warnings)


def _titled(title: str, rows: Iterable[object]) -> Iterator[str]:
    """A title and indented rows, if there are any."""
    lines = [f"  {row}" for row in rows]
    if lines:
        yield from (title, *lines)
