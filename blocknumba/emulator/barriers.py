"""The barriers of thread blocks: bar.sync, bar.arrive and bar.red."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.waits import Wait

if TYPE_CHECKING:
    from blocknumba.emulator.launch import Launch

BARRIERS = 16  # PTX ISA, "bar": barrier resources 0 to 15 of a CTA


class Barriers:
    """The barriers of all resident blocks.

    arrived: threads that wait or have arrived, by block and barrier.
    expected: what the instructions said, 0 for all threads of the block.
    generation: how often the barrier was completed.
    live: threads of each block that have not ended.
    coming, past: what the warps had seen that arrived, since and before the last completion.
    votes: of bar.red, by block, barrier and generation: how many said yes, and how many voted.
    """

    def __init__(self, launch: Launch):
        blocks = len(launch.block_numbers)
        self.races = launch.races
        self.live = np.full(blocks, launch.shape.threads)
        self.arrived = np.zeros((blocks, BARRIERS), np.int64)
        self.expected = np.zeros((blocks, BARRIERS), np.int64)
        self.generation = np.zeros((blocks, BARRIERS), np.int64)
        if self.races is not None:
            clocks = (blocks, BARRIERS, 2, self.races.agents)
            self.coming, self.past = np.zeros(clocks, np.uint32), np.zeros(clocks, np.uint32)
        self.votes: dict[tuple[int, int, int], list[int]] = {}

    def arrive(self, cohort: Cohort, barrier: np.ndarray, count: np.ndarray) -> np.ndarray:
        """All warps of a cohort arrive; the keys (block, barrier, generation) of what each awaits.

        barrier: of each warp.   count: participating threads, 0 for all.
        """
        _check(barrier, count)
        blocks = cohort.blocks[::LANES]
        present = cohort.launch.live_threads[cohort.warps]
        keys = np.stack((blocks, barrier, self.generation[blocks, barrier]), 1)
        self._agree(blocks, barrier, count)
        np.add.at(self.arrived, (blocks, barrier), np.where(count > 0, LANES, present))
        if self.races is not None:
            clocks = self.races.snapshot(*self.races.members(cohort))
            np.maximum.at(self.coming, (blocks, barrier), clocks)
        here = np.unique(blocks * BARRIERS + barrier)
        self.complete(here // BARRIERS, here % BARRIERS)
        return keys

    def _agree(self, blocks: np.ndarray, barrier: np.ndarray, count: np.ndarray) -> None:
        """Note how many threads each barrier is for, which all that arrive there must say."""
        fresh = self.arrived[blocks, barrier] == 0
        self.expected[blocks[fresh], barrier[fresh]] = count[fresh]
        others = self.expected[blocks, barrier]
        wrong = others != count
        if wrong.any():
            row = int(wrong.argmax())
            raise SynchronizationError(
                f"bar: barrier {barrier[row]} given {count[row] or 'all'} threads, but other "
                f"warps say {others[row] or 'all'}")

    def complete(self, blocks: np.ndarray, barrier: np.ndarray) -> None:
        """Open the barriers where everyone has arrived.

        Errors: SynchronizationError where more have.
        """
        arrived, stated = self.arrived[blocks, barrier], self.expected[blocks, barrier]
        needed = np.where(stated > 0, stated, self.live[blocks])
        if (arrived > needed).any():
            row = int((arrived > needed).argmax())
            raise SynchronizationError(
                f"bar: {arrived[row]} threads at barrier {barrier[row]}, which is for "
                f"{needed[row]}", hint="a warp came again before the barrier was complete")
        done = (arrived == needed) & (arrived > 0)
        index = (blocks[done], barrier[done])
        self.arrived[index] = 0
        self.generation[index] += 1
        if self.races is not None:
            self.past[index] = self.coming[index]
            self.coming[index] = 0

    def leave(self, blocks: np.ndarray, threads: np.ndarray) -> None:
        """Threads ended: barriers for all threads no longer wait for them."""
        np.subtract.at(self.live, blocks, threads)
        here = np.unique(blocks)
        rows, barrier = np.nonzero(self.arrived[here])
        if len(rows):
            self.complete(here[rows], barrier)

    def wait(self, keys: np.ndarray,
             resume: Callable[[Cohort, np.ndarray], None] | None = None) -> Wait:
        """The wait of warps that have arrived."""
        def ready(rows: np.ndarray) -> np.ndarray:
            return self.generation[rows[:, 0], rows[:, 1]] > rows[:, 2]

        def reason(row: np.ndarray) -> str:
            block, barrier = int(row[0]), int(row[1])
            needed = self.expected[block, barrier] or self.live[block]
            return f"barrier {barrier}, {self.arrived[block, barrier]} of {needed} threads there"

        def go_on(woken: Cohort, rows: np.ndarray) -> None:
            if self.races is not None:
                self.races.acquire(*self.races.members(woken), self.past[rows[:, 0], rows[:, 1]])
            if resume is not None:
                resume(woken, rows)
        return Wait(keys, ready, reason, go_on)


def _check(barrier: np.ndarray, count: np.ndarray) -> None:
    """Refuse numbers that no barrier has."""
    if (barrier >= BARRIERS).any():
        raise SynchronizationError(
            f"bar: given the barrier {barrier.max()}, accepted 0 to {BARRIERS - 1}")
    if (count % LANES).any():
        raise SynchronizationError(f"bar: given {count[(count % LANES).argmax()]} threads, "
                                   f"accepted a multiple of the warp size, {LANES}")
