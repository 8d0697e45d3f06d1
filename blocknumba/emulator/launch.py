"""One run of some thread blocks: their registers, memories and barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from blocknumba.emulator.barriers import Barriers
from blocknumba.emulator.cluster_barrier import ClusterBarrier
from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.counters import Counters
from blocknumba.emulator.decoding import Step
from blocknumba.emulator.errors import EmulatorError
from blocknumba.emulator.layout import Layout
from blocknumba.emulator.mbarriers import MBarriers
from blocknumba.emulator.memory import (
    PARAMETER_WINDOW,
    WINDOWS,
    Bytes,
    GlobalMemory,
    region_of,
)
from blocknumba.emulator.races import Races
from blocknumba.emulator.scheduler import Scheduler
from blocknumba.emulator.syntax import Instruction, Program, Variable
from blocknumba.emulator.tensor_map import SIZE, TensorMap, decode, made_map
from blocknumba.emulator.values import container_of
from blocknumba.emulator.wgmma import Warpgroups

CLUSTER_RANK_SHIFT = 24  # bit of a shared::cluster address where the CTA rank begins, as on sm_90


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch's extents, each (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def cluster_blocks(self) -> int:
        """Blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a launch.

    seed: run warps in a random order that this determines; None for the order of the barriers.
    races: find races over shared memory.
    uninitialized: find reads of shared and local memory that nothing has written.
    instruction_limit: for all warps of a batch of blocks, before it counts as endless.
    output: where the kernel prints; standard output when it is None.
    """

    seed: int | None = None
    races: bool = True
    uninitialized: bool = True
    instruction_limit: int = 5_000_000
    output: TextIO | None = None


class Launch:
    """The blocks that are resident together, and all that they share.

    code: a step for each instruction.   entry: where the kernel begins.
    """

    def __init__(self, program: Program, code: Sequence[Step], instructions: Sequence[Instruction],
                 layout: Layout, shape: Shape, blocks: np.ndarray, memory: GlobalMemory,
                 parameters: Bytes, counters: Counters, options: Options):
        self.program, self.code, self.instructions = program, code, instructions
        self.layout, self.shape, self.memory = layout, shape, memory
        self.parameters, self.counters, self.options = parameters, counters, options
        self.block_numbers = blocks
        self.warps_per_block = -(-shape.threads // LANES)
        self.block_of_thread = np.repeat(np.arange(len(blocks)), self.warps_per_block * LANES)
        self.shared_stride = -(-layout.shared_end // 1024) * 1024
        self.shared = Bytes.zeros(len(blocks) * self.shared_stride)
        self.local_stride = -(-layout.local_end // 16) * 16
        threads = len(self.block_of_thread)
        self.local = Bytes.zeros(threads * self.local_stride)
        watched = options.uninitialized
        self.shared_written = Bytes.zeros(len(self.shared.data)) if watched else None
        self.local_written = Bytes.zeros(len(self.local.data)) if watched else None
        self._addresses: dict[Variable, np.ndarray] = {}
        self._index_threads()
        self.races = Races(self) if options.races else None
        self.barriers = Barriers(self)
        self.cluster_barrier = ClusterBarrier(self)
        self.mbarriers = MBarriers(self.races)
        self.warpgroups = Warpgroups(self)
        self.scheduler = Scheduler(self, options.seed, options.instruction_limit)

    def _index_threads(self) -> None:
        """Number the threads of each block, and mark those that fill up its last warp."""
        shape = self.shape
        number = np.tile(np.arange(self.warps_per_block * LANES), len(self.block_numbers))
        width, height, _ = shape.block
        self.thread_in_block = number
        self.thread_index = [axis.astype(np.uint32) for axis in (
            number % width, number // width % height, number // (width * height))]
        columns, rows, _ = shape.grid
        block = self.block_numbers
        self.block_index = [axis.astype(np.uint32) for axis in (
            block % columns, block // columns % rows, block // (columns * rows))]
        exists = number < shape.threads
        self.exists = exists
        self.live_threads = exists.reshape(-1, LANES).sum(1)

    # ---- running

    def run(self, entry: int) -> None:
        """Run all resident blocks to their end."""
        types = self.program.register_types
        contents = {type_: np.full(1, -1, np.int64).astype(container_of(type_))
                    for type_ in set(types)}
        registers = [contents[type_] for type_ in types]
        mask = None if self.exists.all() else self.exists
        warps = np.arange(len(self.live_threads))
        self.scheduler.add(Cohort(self, warps, registers, entry, mask))
        with np.errstate(all="ignore"):
            self.scheduler.run()

    def retire(self, cohort: Cohort) -> None:
        """Count the active lanes of a cohort as ended."""
        ended = cohort.active_by_warp().sum(1)
        self.live_threads[cohort.warps] -= ended
        self.barriers.leave(cohort.blocks[::LANES], ended)
        gone = (ended > 0) & (self.live_threads[cohort.warps] == 0)
        if gone.any():
            self.cluster_barrier.leave(cohort.warps[gone])

    # ---- addresses

    def address_of(self, variable: Variable, cohort: Cohort) -> np.ndarray:
        """A variable's address in its space, for all lanes or for each."""
        address = self._addresses.get(variable)
        if address is None:
            address = np.array([self.layout.addresses[variable]], np.int64)
            self._addresses[variable] = address
        if variable.space == "shared" and self.shape.cluster_blocks > 1:
            return address + (self.cluster_rank(cohort.blocks) << CLUSTER_RANK_SHIFT)
        return address

    def cluster_rank(self, blocks: np.ndarray) -> np.ndarray:
        """The rank of resident blocks in their clusters, which are resident as a whole."""
        return blocks % self.shape.cluster_blocks

    def window_of(self, space: str) -> int:
        """The generic address of a space's address 0."""
        return WINDOWS.get(space, 0)

    def is_in_space(self, address: np.ndarray, space: str) -> np.ndarray:
        """Whether generic addresses lie in a space."""
        names = np.array([region_of(int(one)) for one in address])
        return names == ("global" if space == "const" else space)

    def tensor_map_at(self, address: int) -> TensorMap | None:
        """The tensor map that lies at a generic address, or None."""
        if region_of(address) == "param":
            start = address - PARAMETER_WINDOW
            octets = self.parameters.data[start:start + SIZE]
        else:
            segment = self.memory.find(address, address + SIZE)
            if segment is None:
                return None
            octets = segment.bytes.data[address - segment.base:address - segment.base + SIZE]
        index = decode(octets.tobytes())
        if index is not None:
            return self.memory.tensor_maps[index]
        return made_map(octets, self.memory.bytes_from)

    # ---- names and locations, for messages

    def block_name(self, block: int) -> str:
        """A resident block's index in the grid."""
        return "({}, {}, {})".format(*[int(axis[block]) for axis in self.block_index])

    def thread_name(self, cohort: Cohort, lane: int) -> str:
        """A lane's thread and block index."""
        thread = int(cohort.threads[lane])
        index = ", ".join(str(int(axis[thread])) for axis in self.thread_index)
        return f"thread ({index}) of block {self.block_name(int(self.block_of_thread[thread]))}"

    def location_of(self, pc: int) -> str:
        """An instruction's PTX line and text, and its source line."""
        instruction = self.instructions[pc]
        source = f" ({instruction.loc})" if instruction.loc.file else ""
        return f"PTX line {instruction.line}: {self.text_of(pc)}{source}"

    def text_of(self, pc: int) -> str:
        """An instruction's line of PTX."""
        line = self.instructions[pc].line
        return self.program.lines[line - 1].strip() if line else ""

    def located(self, error: EmulatorError, pc: int) -> EmulatorError:
        """An error with the location of the instruction that raised it."""
        instruction = self.instructions[pc]
        return error.in_instruction(instruction.line, self.text_of(pc), instruction.loc)
