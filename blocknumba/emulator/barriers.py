"""The barriers of thread blocks: bar.sync, bar.arrive and bar.red."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.waits import Wait

BARRIERS = 16  # PTX ISA, "bar": barrier resources 0 to 15 of a CTA


class Barriers:
    """The barriers of all resident blocks.

    arrived: threads that wait or have arrived, by block and barrier.
    expected: what the instructions said, 0 for all threads of the block.
    generation: how often the barrier was completed.
    live: threads of each block that have not ended.
    votes: of bar.red, by block, barrier and generation: how many said yes, and how many voted.
    """

    def __init__(self, live: np.ndarray):
        blocks = len(live)
        self.live = live.copy()
        self.arrived = np.zeros((blocks, BARRIERS), np.int64)
        self.expected = np.zeros((blocks, BARRIERS), np.int64)
        self.generation = np.zeros((blocks, BARRIERS), np.int64)
        self.votes: dict[tuple[int, int, int], list[int]] = {}

    def arrive(self, cohort: Cohort, barrier: int, count: int) -> np.ndarray:
        """All warps of a cohort arrive; the generation that each warp has to see the end of.

        count: threads that take part, 0 for all.
        """
        if not 0 <= barrier < BARRIERS:
            raise SynchronizationError(f"bar: given the barrier {barrier}, accepted 0 to 15")
        if count % LANES:
            raise SynchronizationError(
                f"bar: given {count} threads, accepted a multiple of the warp size, {LANES}")
        blocks = cohort.blocks[::LANES]
        present = cohort.launch.live_threads[cohort.warps]
        waited_for = self.generation[blocks, barrier]
        here, first = np.unique(blocks, return_index=True)
        self._agree(here, barrier, count)
        np.add.at(self.arrived[:, barrier], blocks, np.where(count > 0, LANES, present))
        self.expected[here, barrier] = count
        self.complete(here, barrier)
        return waited_for

    def _agree(self, blocks: np.ndarray, barrier: int, count: int) -> None:
        pending = self.arrived[blocks, barrier] > 0
        others = self.expected[blocks, barrier]
        if (pending & (others != count)).any():
            other = int(others[pending & (others != count)][0])
            raise SynchronizationError(
                f"bar: barrier {barrier} given {count or 'all'} threads, but warps already wait "
                f"there for {other or 'all'}")

    def complete(self, blocks: np.ndarray, barrier: int) -> None:
        """Open a barrier of these blocks where everyone has arrived."""
        arrived = self.arrived[blocks, barrier]
        stated = self.expected[blocks, barrier]
        needed = np.where(stated > 0, stated, self.live[blocks])
        if (arrived > needed).any():
            raise SynchronizationError(
                f"bar: {int(arrived.max())} threads at barrier {barrier}, which is for "
                f"{int(needed[arrived > needed][0])}",
                hint="a warp came again before the barrier was complete")
        done = blocks[(arrived == needed) & (arrived > 0)]
        self.arrived[done, barrier] = 0
        self.generation[done, barrier] += 1

    def leave(self, blocks: np.ndarray, threads: np.ndarray) -> None:
        """Threads ended: barriers for all threads no longer wait for them."""
        np.subtract.at(self.live, blocks, threads)
        here = np.unique(blocks)
        for barrier in np.flatnonzero(self.arrived[here].any(0)):
            self.complete(here, int(barrier))

    def wait(self, cohort: Cohort, barrier: int, generation: np.ndarray,
             resume: Callable[[Cohort, np.ndarray], None] | None = None) -> Wait:
        """What the warps of a cohort wait for after they arrived: keys (block, generation)."""
        keys = np.stack((cohort.blocks[::LANES], generation), 1)

        def ready(rows: np.ndarray) -> np.ndarray:
            return self.generation[rows[:, 0], barrier] > rows[:, 1]

        def reason(row: np.ndarray) -> str:
            block = int(row[0])
            needed = self.expected[block, barrier] or self.live[block]
            return f"barrier {barrier}, {self.arrived[block, barrier]} of {needed} threads there"
        return Wait(keys, ready, reason, resume)
