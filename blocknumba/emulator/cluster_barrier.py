"""The hardware barrier of a thread block cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.waits import Wait

if TYPE_CHECKING:
    from blocknumba.emulator.launch import Launch


class ClusterBarrier:
    """barrier.cluster of all resident clusters.

    arrived: warps that have arrived.   expected: the generation that each warp's wait is for.
    """

    def __init__(self, launch: Launch):
        blocks = launch.shape.cluster_blocks
        clusters = len(launch.block_numbers) // blocks
        self.launch, self.races = launch, launch.races
        self.warps = blocks * launch.warps_per_block
        self.live = np.full(clusters, self.warps)
        self.arrived = np.zeros(clusters, np.int64)
        self.generation = np.zeros(clusters, np.int64)
        self.expected = np.full(clusters * self.warps, -1, np.int64)
        if self.races is not None:
            clocks = (clusters, 2, self.races.agents)
            self.coming, self.past = np.zeros(clocks, np.uint32), np.zeros(clocks, np.uint32)

    def arrive(self, cohort: Cohort, relaxed: bool) -> None:
        """All warps of a cohort arrive.

        Errors: SynchronizationError for a warp that has arrived and not waited.
        """
        if (self.expected[cohort.warps] >= 0).any():
            raise SynchronizationError("barrier.cluster.arrive: a warp arrives twice",
                                       hint="barrier.cluster.wait belongs between them")
        clusters = cohort.warps // self.warps
        self.expected[cohort.warps] = self.generation[clusters]
        np.add.at(self.arrived, clusters, 1)
        if self.races is not None and not relaxed:
            np.maximum.at(self.coming, clusters, self.races.snapshot(*self.races.members(cohort)))
        self._complete(np.unique(clusters))

    def leave(self, warps: np.ndarray) -> None:
        """Warps ended: the barrier no longer waits for them."""
        clusters = warps // self.warps
        np.subtract.at(self.live, clusters, 1)
        self._complete(np.unique(clusters))

    def _complete(self, clusters: np.ndarray) -> None:
        done = clusters[(self.arrived[clusters] >= self.live[clusters])
                        & (self.arrived[clusters] > 0)]
        self.arrived[done] = 0
        self.generation[done] += 1
        if self.races is not None:
            self.past[done] = self.coming[done]
            self.coming[done] = 0

    def wait(self, cohort: Cohort) -> Wait:
        """The wait of the warps of a cohort, with keys (cluster, generation).

        Errors: SynchronizationError for a warp that has not arrived.
        """
        generation = self.expected[cohort.warps]
        if (generation < 0).any():
            raise SynchronizationError("barrier.cluster.wait: a warp waits that has not arrived")
        keys = np.stack((cohort.warps // self.warps, generation), 1)
        self.expected[cohort.warps] = -1

        def ready(rows: np.ndarray) -> np.ndarray:
            return self.generation[rows[:, 0]] > rows[:, 1]

        def reason(row: np.ndarray) -> str:
            cluster = int(row[0])
            return (f"barrier.cluster, {self.arrived[cluster]} of {self.live[cluster]} warps "
                    "there")

        def resume(woken: Cohort, rows: np.ndarray) -> None:
            if self.races is not None:
                self.races.acquire(*self.races.members(woken), self.past[rows[:, 0]])
        return Wait(keys, ready, reason, resume)
