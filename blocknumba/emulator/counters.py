"""Counters of a launch: instructions, sectors and bank conflicts, by instruction and line."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.syntax import Instruction
from blocknumba.errors import Loc

SECTOR_BYTES = 32  # Nsight Compute documentation, "L1/TEX cache": a request's unit of transfer
BANKS = 32  # CUDA Programming Guide, "Shared Memory": 32 banks of 4 bytes
BANK_BYTES = 4
PHASE_BYTES = 128  # of shared memory in one wavefront without conflicts

_SPACES = frozenset(("global", "shared", "local", "param", "const"))
_CLASSES = {
    **dict.fromkeys(("mma", "wgmma"), "tensor core"),
    **dict.fromkeys(("ldmatrix", "stmatrix", "movmatrix"), "matrix movement"),
    "cp": "asynchronous copy",
    **dict.fromkeys(("bar", "barrier", "mbarrier", "fence", "membar"), "synchronization"),
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit", "skip", "trap"), "control flow"),
    **dict.fromkeys(("shfl", "vote", "redux", "match", "activemask", "elect"), "warp exchange"),
    **dict.fromkeys(("mov", "cvt", "cvta", "mapa", "selp"), "moves and conversions"),
}


@dataclass(slots=True)
class Count:
    """Counters of one instruction, or of one source line.

    executed: executions by warps.
    requests, sectors: warp accesses to global memory, and the 32-byte sectors they touched.
    ideal_sectors: the sectors that the same bytes would fill if they were contiguous.
    wavefronts, ideal_wavefronts: passes over shared memory, and without bank conflicts.
    """

    executed: int = 0
    requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0

    @property
    def bank_conflicts(self) -> int:
        """Passes over shared memory that conflicts added."""
        return self.wavefronts - self.ideal_wavefronts

    def add(self, other: Count) -> None:
        """Count another's work too."""
        for name in Count.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True)
class Report:
    """The counters of a launch.

    total: of all instructions.   by_line: of each source line.
    by_opcode, by_class: executions by warps of each opcode, and of each class of opcodes.
    by_ptx_line: of each line of the PTX text.
    """

    total: Count
    by_line: dict[Loc, Count]
    by_opcode: dict[str, int]
    by_class: dict[str, int]
    by_ptx_line: dict[int, Count] = field(repr=False)

    @property
    def bank_conflicts(self) -> int:
        """Passes over shared memory that conflicts added, in all."""
        return self.total.bank_conflicts

    @property
    def sectors_per_request(self) -> float:
        """The mean number of sectors of a global access."""
        return self.total.sectors / self.total.requests if self.total.requests else 0.0


class Counters:
    """The counters of a launch while it runs."""

    def __init__(self, instructions: int):
        self.executed = [0] * instructions
        self.counts: dict[int, Count] = {}

    def _count(self, pc: int) -> Count:
        count = self.counts.get(pc)
        if count is None:
            count = self.counts[pc] = Count()
        return count

    def global_access(self, pc: int, cohort: Cohort, address: np.ndarray, size: int) -> None:
        """Count an access of size bytes at each active lane's address."""
        count = self._count(pc)
        active = cohort.active_by_warp()
        lanes = active.sum(1)
        sectors = cohort.by_warp(address) // SECTOR_BYTES
        if size > SECTOR_BYTES:
            raise AssertionError("an access is larger than a sector")
        count.requests += int((lanes > 0).sum())
        touched = _distinct(sectors, active)
        count.sectors += int(touched.sum())
        count.ideal_sectors += int(np.minimum(touched, -(-lanes * size // SECTOR_BYTES)).sum())

    def shared_access(self, pc: int, cohort: Cohort, address: np.ndarray, size: int) -> None:
        """Count an access of size bytes at each active lane's shared address."""
        phases = max(1, size * LANES // PHASE_BYTES)
        self.shared_rows(pc, cohort.by_warp(address), cohort.active_by_warp(), size, phases)

    def shared_rows(self, pc: int, address: np.ndarray, active: np.ndarray, size: int,
                    phases: int) -> None:
        """Count accesses to shared memory: one row for each request, a column for each lane.

        phases: passes that a request of more than 128 bytes is cut into.
        """
        count = self._count(pc)
        words = max(1, size // BANK_BYTES)
        address = address.reshape(len(address) * phases, -1) // BANK_BYTES
        active = active.reshape(address.shape)
        if words > 1:
            address = (address[:, :, None] + np.arange(words)).reshape(len(address), -1)
            active = np.repeat(active, words, 1)
        wavefronts = _max_in_a_bank(address, active)
        count.wavefronts += int(wavefronts.sum())
        count.ideal_wavefronts += int((wavefronts > 0).sum())

    def report(self, instructions: list[Instruction]) -> Report:
        """The counters, by source line."""
        total, by_line, by_opcode = Count(), {}, {}
        by_ptx_line: dict[int, Count] = {}
        for pc, instruction in enumerate(instructions):
            if not self.executed[pc] or not instruction.line:
                continue
            count = self.counts.get(pc, Count())
            count.executed = self.executed[pc]
            total.add(count)
            by_line.setdefault(instruction.loc, Count()).add(count)
            by_ptx_line.setdefault(instruction.line, Count()).add(count)
            by_opcode[instruction.name] = by_opcode.get(instruction.name, 0) + count.executed
        by_class: dict[str, int] = {}
        for opcode, executed in by_opcode.items():
            name = class_of(opcode)
            by_class[name] = by_class.get(name, 0) + executed
        return Report(total, by_line, by_opcode, by_class, by_ptx_line)


def class_of(opcode: str) -> str:
    """The class of instructions that an opcode belongs to."""
    name, *modifiers = opcode.split(".")
    if name in ("ld", "st", "ldu", "atom", "red"):
        space = next((modifier.split("::")[0] for modifier in modifiers
                      if modifier.split("::")[0] in _SPACES), "generic")
        return f"{space} memory"
    return _CLASSES.get(name, "arithmetic")


def _distinct(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Number of distinct active values in each row."""
    ordered = np.sort(np.where(active, values, -1), axis=1)
    fresh = ordered[:, 1:] != ordered[:, :-1]
    return fresh.sum(1) + (ordered[:, 0] >= 0)


def _max_in_a_bank(words: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Maximum number of distinct active words of a row in one bank."""
    ordered = np.sort(np.where(active, words, -1), axis=1)
    fresh = ordered >= 0
    fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    rows, columns = np.nonzero(fresh)
    if not len(rows):
        return np.zeros(len(words), np.int64)
    hits = np.bincount(rows * BANKS + ordered[rows, columns] % BANKS, minlength=len(words) * BANKS)
    return hits.reshape(-1, BANKS).max(1)
