"""Asynchronous mma of warpgroups: descriptors, and results that arrive with the wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.errors import AccessError, SynchronizationError
from blocknumba.emulator.races import MATRIX
from blocknumba.emulator.tensor_map import swizzled
from blocknumba.emulator.waits import Wait

if TYPE_CHECKING:
    from blocknumba.emulator.launch import Launch

WARPS = 4  # of a warpgroup; PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"
THREADS = WARPS * LANES
DEPTH_BYTES = 32  # of a row of an operand in one instruction
_SWIZZLES = {0: 0, 1: 128, 2: 64, 3: 32}  # PTX ISA, "Matrix Descriptor Format", bits 62 to 63
_ADDRESS_MASK, _ADDRESS_SHIFT = 0x3FFF, 4
# A register in flight holds a quiet NaN that names the result it waits for.
_TAG, _TAGS = 0xFFC00000, 1 << 22


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A matrix in shared memory: its address, two strides in bytes, its swizzle."""

    address: int
    leading: int
    stride: int
    swizzle: int

    @classmethod
    def of(cls, bits: int) -> Descriptor:
        """The fields of a descriptor.

        Errors: SynchronizationError for a base offset, which the emulator does not know.
        """
        if bits >> 49 & 7:
            raise SynchronizationError("wgmma: given a base offset, accepted none",
                                       hint="align the pattern to its period")
        fields = [(bits >> shift & _ADDRESS_MASK) << _ADDRESS_SHIFT for shift in (0, 16, 32)]
        return cls(*fields, _SWIZZLES[bits >> 62])

    def offsets(self, rows: int, item: int, transposed: bool) -> np.ndarray:
        """The address of each element before swizzling: (rows, depth).

        rows: of the operand along M or N.   item: bytes of an element.
        transposed: M or N is contiguous, not K.
        Source: PTX ISA, "Strides"; CUTLASS, mma_sm90_desc.hpp.
        """
        kind = _columns_first if transposed else _rows_first
        return self.address + kind(rows, item, self.swizzle, self.leading, self.stride)


@cache
def _rows_first(rows: int, item: int, swizzle: int, leading: int, stride: int) -> np.ndarray:
    """K-major: eight rows to a group, groups stride apart."""
    row = np.arange(rows)[:, None]
    octet = item * np.arange(DEPTH_BYTES // item)[None, :]
    if not swizzle:  # groups of eight rows of 16 bytes, leading apart along K
        return row // 8 * stride + row % 8 * 16 + octet // 16 * leading + octet % 16
    return row // 8 * stride + row % 8 * swizzle + octet


@cache
def _columns_first(rows: int, item: int, swizzle: int, leading: int, stride: int) -> np.ndarray:
    """MN-major: a pattern's width of M or N is contiguous, eight k to a group."""
    row = item * np.arange(rows)[:, None]
    depth = np.arange(DEPTH_BYTES // item)[None, :]
    if not swizzle:
        return row // 16 * stride + row % 16 + depth // 8 * leading + depth % 8 * 16
    return row // swizzle * leading + row % swizzle + depth // 8 * stride + depth % 8 * swizzle


class Flights:
    """The mma of one warpgroup that are in flight: started, not yet computed.

    open: those since the last commit.   groups: committed ones, oldest first.
    results: the registers of computed results by their tags, until they are delivered.
    """

    def __init__(self) -> None:
        self.open: list[Callable[[], None]] = []
        self.groups: list[list[Callable[[], None]]] = []
        self.results: dict[int, np.ndarray] = {}

    def commit(self) -> None:
        """wgmma.commit_group."""
        self.groups.append(self.open)
        self.open = []

    def compute(self, keep: int) -> None:
        """Compute all groups but the latest few."""
        while len(self.groups) > keep:
            for run in self.groups.pop(0):
                run()


class Warpgroups:
    """The flights of all resident warpgroups."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.flights: dict[int, Flights] = {}
        self._next_tag = 0
        self._present: dict[tuple[int, int], int] = {}

    def _firsts(self, warps: np.ndarray) -> np.ndarray:
        """The first warp of the warpgroup of each warp."""
        return warps - warps % self.launch.warps_per_block % WARPS

    def gather(self, cohort: Cohort, pc: int) -> bool:
        """Let warps wait at an instruction for the others of their warpgroup.

        False when the cohort itself has to wait.
        """
        cohort.split_off_absent()
        firsts = self._firsts(cohort.warps)
        found, counts = np.unique(firsts, return_counts=True)
        whole = np.isin(firsts, found[counts == WARPS])
        if whole.all():
            for first in found:
                self._present.pop((int(first), pc), None)
            return True
        early = cohort.keep(whole) if whole.any() else cohort
        early.pc = pc
        keys = self._firsts(early.warps)[:, None]
        for first in keys[:, 0]:
            self._present[int(first), pc] = self._present.get((int(first), pc), 0) + 1

        def ready(rows: np.ndarray) -> np.ndarray:
            return np.array([self._present[int(first), pc] >= WARPS for first in rows[:, 0]])
        early.wait = Wait(keys, ready, lambda row: (
            f"its warpgroup, {self._present[int(row[0]), pc]} of {WARPS} warps there"))
        if early is cohort:
            return False
        self.launch.scheduler.waiting.append(early)
        return True

    def members(self, cohort: Cohort, name: str) -> np.ndarray:
        """The first warp of each warpgroup of a cohort that holds whole ones.

        Errors: SynchronizationError where a lane is missing.
        """
        if cohort.mask is not None and not cohort.mask.all():
            raise SynchronizationError(f"{name}: executed by part of a warp, accepted all of it")
        return np.unique(self._firsts(cohort.warps))

    def of(self, warp: int) -> Flights:
        """The flights of the warpgroup whose first warp this is."""
        return self.flights.setdefault(int(warp), Flights())

    def tags(self, count: int) -> np.ndarray:
        """Fresh contents for registers whose results are in flight."""
        first = self._next_tag
        self._next_tag = (first + count) % _TAGS
        return ((first + np.arange(count)) % _TAGS + _TAG).astype(np.uint32)

    def lanes_of(self, cohort: Cohort, warp: int) -> slice:
        """The lanes of a warpgroup in a cohort."""
        row = int(np.searchsorted(cohort.warps, warp))
        return slice(row * LANES, row * LANES + THREADS)

    def deliver(self, cohort: Cohort, warp: int) -> None:
        """Put results into the registers that wait for them, wherever copies went."""
        flights = self.of(warp)
        if not flights.results:
            return
        lanes = self.lanes_of(cohort, warp)
        results, registers = flights.results, cohort.registers
        for slot, value in enumerate(registers):
            if value.dtype != np.uint32 or len(value) == 1:
                continue
            result = results.get(int(value[lanes.start]))
            if result is not None and (value[lanes] == value[lanes.start]).all():
                value = value.copy()
                value[lanes] = result
                registers[slot] = value
        self._forget(flights)

    def _forget(self, flights: Flights) -> None:
        """Drop results that no mma in flight adds to."""
        if not flights.groups and not flights.open:
            flights.results.clear()

    def read_operand(self, warp: int, bits: int, rows: int, dtype: np.dtype,
                     transposed: bool) -> Callable[[], np.ndarray]:
        """An operand in shared memory, (rows, depth), to be read when the mma is computed."""
        launch = self.launch
        descriptor = Descriptor.of(bits)
        block = int(launch.block_of_thread[warp * LANES])
        offsets = swizzled(descriptor.offsets(rows, dtype.itemsize, transposed), descriptor.swizzle)
        low, high = int(offsets.min()), int(offsets.max())
        if high + dtype.itemsize > launch.layout.shared_end or low < 0:
            raise SynchronizationError(
                f"wgmma: given a descriptor that reaches shared byte {high:#x}, accepted up to "
                f"{launch.layout.shared_end:#x}")
        offsets = offsets + block * launch.shared_stride
        if launch.races is not None:
            cluster, number = divmod(int(warp), launch.races.warps)
            octets = (offsets[:, :, None] + np.arange(dtype.itemsize)).ravel()
            launch.races.async_read(cluster, number, octets,
                                    int(launch.races.agent(number, MATRIX)))
        written = launch.shared_written

        def read() -> np.ndarray:
            if written is not None and not written.data[offsets].all():
                raise AccessError("wgmma: reads shared memory that nothing has written")
            return launch.shared.gather(offsets, dtype.itemsize).view(dtype)
        return read
