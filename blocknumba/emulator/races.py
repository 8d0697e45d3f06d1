"""Race detection in shared memory: vector clocks of warps, and epochs of each byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.errors import ProxyFenceError, RaceError
from blocknumba.emulator.memory import Bytes

if TYPE_CHECKING:
    from blocknumba.emulator.launch import Launch

GENERIC, ASYNC = 0, 1  # PTX ISA, "Proxies": ordinary accesses, and those of TMA and wgmma
COPY, BULK, MATRIX = 1, 2, 3  # the asynchronous agents of a warp: cp.async, bulk copies, wgmma
_AGENTS = 4  # the warp itself and its asynchronous agents
_MBARRIERS = 64  # agents for tensor copies, one for each mbarrier that they complete on

Values = tuple[Bytes, int, Sequence[np.ndarray]]  # buffer, size and new values of a store


class Races:
    """The order of all accesses to the shared memory of the resident blocks.

    An agent is a warp, one of its asynchronous agents, or an mbarrier's tensor copies.  Each agent
    counts epochs.  An access is ordered behind another if the warp that makes it has seen the
    other's epoch: through a barrier, an mbarrier or a wait.  What a warp has seen exists twice:
    for its own accesses, and for those of the async proxy that it starts.  Generic accesses get
    from the first to the second by fence.proxy.async only: a read, too, may still be under way
    where a barrier behind it is seen.
    Source: FastTrack (Flanagan and Freund 2009); PTX ISA, "Memory Consistency Model".

    seen: epochs of every agent that a warp has seen: (clusters, warps, proxies, agents).
    write_agent, write_clock, write_pc: of each byte, the last write and its instruction.
    read_clocks: of each byte, the last read by each agent.
    """

    def __init__(self, launch: Launch):
        self.launch = launch
        cluster = launch.shape.cluster_blocks
        self.warps = cluster * launch.warps_per_block
        self.clusters = len(launch.block_numbers) // cluster
        self.agents = self.warps * _AGENTS + _MBARRIERS
        self.seen = np.zeros((self.clusters, self.warps, 2, self.agents), np.uint32)
        own = np.arange(self.warps)
        self.seen[:, own, GENERIC, own] = 1
        size = len(launch.shared.data)
        self.write_agent = np.zeros(size, np.uint16)
        self.write_clock = np.zeros(size, np.uint32)
        self.write_pc = np.zeros(size, np.uint32)
        self.write_is_atomic = np.zeros(size, bool)
        self.is_mbarrier = np.zeros(size, bool)
        self.warp_reads = np.zeros((self.warps, size), np.uint32)
        self.agent_reads: dict[int, np.ndarray] = {}
        self.agent_clocks = np.zeros((self.clusters, self.agents), np.uint32)
        self._mbarrier_agents: dict[tuple[int, int], int] = {}

    # ---- who

    def members(self, cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
        """The cluster of each warp of a cohort, and its number there."""
        return cohort.warps // self.warps, cohort.warps % self.warps

    def agent(self, warp: np.ndarray | int, kind: int) -> np.ndarray | int:
        """The number of a warp's asynchronous agent."""
        return self.warps * kind + warp

    def mbarrier_agent(self, cluster: int, offset: int) -> int:
        """The number of the agent for the tensor copies that complete on an mbarrier."""
        key = (cluster, offset)
        known = len([one for one in self._mbarrier_agents if one[0] == cluster])
        return self._mbarrier_agents.setdefault(
            key, self.warps * _AGENTS + known % _MBARRIERS)

    def _name(self, agent: int) -> str:
        if agent >= self.warps * _AGENTS:
            return "a tensor copy"
        kind, warp = divmod(agent, self.warps)
        block, number = divmod(warp, self.launch.warps_per_block)
        which = f"warp {number}" + (f" of rank {block}" if self.launch.shape.cluster_blocks > 1
                                    else "")
        return ("", "cp.async of ", "a bulk copy of ", "wgmma of ")[kind] + which

    # ---- generic accesses

    def _lanes(self, cohort: Cohort, offsets: np.ndarray) -> tuple[np.ndarray, ...]:
        """Cluster, warp and offset of each access; one for each warp if its lanes agree."""
        clusters, warps = self.members(cohort)
        if len(offsets) == 1:
            present = cohort.active_by_warp().any(1)
            return clusters[present], warps[present], np.repeat(offsets, int(present.sum()))
        if len(offsets) == cohort.lanes and cohort.mask is not None:
            offsets = offsets[cohort.mask]
        return (cohort.chosen(np.repeat(clusters, LANES)),
                cohort.chosen(np.repeat(warps, LANES)), offsets)

    def _rows(self, cohort: Cohort, offsets: np.ndarray) -> tuple[np.ndarray, ...]:
        """Cluster, warp and offset of accesses that are (warps, rows)."""
        clusters, warps = self.members(cohort)
        count = offsets.shape[1]
        return np.repeat(clusters, count), np.repeat(warps, count), offsets.ravel()

    def read_rows(self, cohort: Cohort, offsets: np.ndarray, size: int) -> None:
        """read, for the rows that each warp reads: (warps, rows)."""
        self._read(*self._rows(cohort, offsets), size, False)

    def write_rows(self, cohort: Cohort, offsets: np.ndarray, size: int, pc: int) -> None:
        """write, for the rows that each warp writes: (warps, rows)."""
        self._write(*self._rows(cohort, offsets), size, False, pc, None)

    def read(self, cohort: Cohort, offsets: np.ndarray, size: int, strong: bool) -> None:
        """Generic reads of size bytes, aligned to it.

        Errors: RaceError behind a write that nothing orders.
        """
        self._read(*self._lanes(cohort, offsets), size, strong)

    def _read(self, clusters: np.ndarray, warps: np.ndarray, offsets: np.ndarray, size: int,
              strong: bool) -> None:
        rows = offsets // size
        agents = self.write_agent.reshape(-1, size)[rows]
        clocks = self.write_clock.reshape(-1, size)[rows]
        late = clocks > self.seen[clusters[:, None], warps[:, None], GENERIC, agents]
        if late.any() and strong:
            late &= ~self.write_is_atomic.reshape(-1, size)[rows]
        if late.any():
            self._refuse_after_write(late, offsets, warps, agents, "reads")
        own = self.seen[clusters, warps, GENERIC, warps]
        self.warp_reads.reshape(self.warps, -1, size)[warps, rows] = own[:, None]

    def write(self, cohort: Cohort, offsets: np.ndarray, size: int, strong: bool, pc: int,
              values: Values | None) -> None:
        """Generic writes of size bytes, aligned to it; strong ones may overlap.

        values: what is written, so that writing what is there already is no race.
        Errors: RaceError behind a write or a read that nothing orders.
        """
        self._write(*self._lanes(cohort, offsets), size, strong, pc, values)

    def _write(self, clusters: np.ndarray, warps: np.ndarray, offsets: np.ndarray, size: int,
               strong: bool, pc: int, values: Values | None) -> None:
        rows = offsets // size
        self._refuse_in_mbarriers(self.is_mbarrier.reshape(-1, size)[rows].any(1), offsets, warps)
        agents = self.write_agent.reshape(-1, size)[rows]
        clocks = self.write_clock.reshape(-1, size)[rows]
        late = clocks > self.seen[clusters[:, None], warps[:, None], GENERIC, agents]
        if strong and late.any():
            late &= ~self.write_is_atomic.reshape(-1, size)[rows]
        if late.any() and not (values is not None and _same_already(offsets, values)):
            self._refuse_after_write(late, offsets, warps, agents, "writes")
        self._check_reads(clusters, warps, offsets, size, "writes")
        self.write_agent.reshape(-1, size)[rows] = warps[:, None]
        self.write_clock.reshape(-1, size)[rows] = self.seen[clusters, warps, GENERIC,
                                                             warps][:, None]
        self.write_pc.reshape(-1, size)[rows] = pc
        self.write_is_atomic.reshape(-1, size)[rows] = strong

    def check_behind_write(self, cohort: Cohort, offsets: np.ndarray, size: int) -> None:
        """Refuse to use what another warp wrote, and nothing orders; a use that is no read.

        Errors: RaceError.
        """
        clusters, warps, offsets = self._lanes(cohort, offsets)
        agents = self.write_agent.reshape(-1, size)[offsets // size]
        clocks = self.write_clock.reshape(-1, size)[offsets // size]
        late = clocks > self.seen[clusters[:, None], warps[:, None], GENERIC, agents]
        if late.any():
            self._refuse_after_write(late, offsets, warps, agents, "uses")

    def _check_reads(self, clusters: np.ndarray, warps: np.ndarray, offsets: np.ndarray, size: int,
                     verb: str) -> None:
        """Refuse a write that overtakes a read."""
        rows = offsets // size
        seen = self.seen[clusters, warps, GENERIC]
        before = self.warp_reads.reshape(self.warps, -1, size)[:, rows]
        late = before > seen[:, :self.warps].T[:, :, None]
        if late.any():
            agent, lane, octet = (int(axis[0]) for axis in np.nonzero(late))
            self._refuse_after_read(offsets[lane] + octet, warps[lane], agent, verb)
        for agent, clocks in self.agent_reads.items():
            late = clocks.reshape(-1, size)[rows] > seen[:, agent, None]
            if late.any():
                lane, octet = (int(axis[0]) for axis in np.nonzero(late))
                self._refuse_after_read(offsets[lane] + octet, warps[lane], agent, verb)

    # ---- asynchronous accesses

    def async_read(self, cluster: int, warp: int, offsets: np.ndarray, agent: int,
                   proxy: int = ASYNC) -> None:
        """Bytes that an asynchronous agent reads, started by a warp.

        Errors: ProxyFenceError where a generic write needs a fence; RaceError.
        """
        self._check_async(cluster, warp, offsets, proxy, "reads")
        clocks = self.agent_reads.get(agent)
        if clocks is None:
            clocks = self.agent_reads[agent] = np.zeros(len(self.write_clock), np.uint32)
        clocks[offsets] = self.agent_clocks[cluster, agent] + 1

    def async_write(self, cluster: int, warp: int, offsets: np.ndarray, agent: int, pc: int,
                    proxy: int = ASYNC) -> None:
        """Bytes that an asynchronous agent writes, started by a warp.

        Errors: as async_read, and RaceError behind a read that nothing orders.
        """
        self._refuse_in_mbarriers(self.is_mbarrier[offsets], offsets, np.full(len(offsets), warp))
        self._check_async(cluster, warp, offsets, proxy, "writes")
        seen = self.seen[cluster, warp]
        rows = [*enumerate(self.warp_reads), *self.agent_reads.items()]
        for other, clocks in rows:
            late = clocks[offsets] > seen[GENERIC, other]
            if late.any():
                self._refuse_after_read(int(offsets[late.argmax()]), warp, other,
                                        "starts a copy that writes")
        hidden = self.warp_reads[:, offsets] > seen[proxy, :self.warps, None]
        if hidden.any():
            reader, index = (int(axis[0]) for axis in np.nonzero(hidden))
            raise ProxyFenceError(
                f"race: the async proxy writes shared byte {self._address(int(offsets[index]))}, "
                f"which {self._name(reader)} read through the generic proxy, without a fence "
                "between", hint="the reading thread executes fence.proxy.async before it arrives")
        self.write_agent[offsets] = agent
        self.write_clock[offsets] = self.agent_clocks[cluster, agent] + 1
        self.write_pc[offsets] = pc
        self.write_is_atomic[offsets] = False

    def _check_async(self, cluster: int, warp: int, offsets: np.ndarray, proxy: int,
                     verb: str) -> None:
        agents, clocks = self.write_agent[offsets], self.write_clock[offsets]
        seen = self.seen[cluster, warp]
        late = clocks > seen[GENERIC][agents]
        if late.any():
            self._refuse_after_write(late[:, None], offsets, np.full(len(offsets), warp),
                                     agents[:, None], f"starts a copy that {verb}")
        if proxy == GENERIC:
            return
        generic = agents < self.warps * (COPY + 1)
        hidden = generic & (clocks > seen[ASYNC][agents])
        if hidden.any():
            offset = int(offsets[hidden.argmax()])
            raise ProxyFenceError(
                f"race: the async proxy {verb} shared byte {self._address(offset)}, which "
                f"{self._name(int(self.write_agent[offset]))} wrote through the generic proxy at "
                f"{self.launch.location_of(int(self.write_pc[offset]))}, without a fence between",
                hint="the writing thread executes fence.proxy.async before the barrier")

    def finish(self, cluster: int, agent: int) -> np.ndarray:
        """End an epoch of an asynchronous agent: (agents,) clocks with it alone."""
        self.agent_clocks[cluster, agent] += 1
        clocks = np.zeros(self.agents, np.uint32)
        clocks[agent] = self.agent_clocks[cluster, agent]
        return clocks

    def acquire_agent(self, cluster: int, warp: int, agent: int, clock: int) -> None:
        """A warp sees the epochs of an agent up to clock."""
        mine = self.seen[cluster, warp, :, agent]
        if agent < self.warps * (COPY + 1):
            mine = mine[:1]  # what cp.async wrote still needs a fence
        np.maximum(mine, clock, out=mine)

    # ---- order

    def snapshot(self, cluster: np.ndarray | int, warp: np.ndarray | int) -> np.ndarray:
        """Clocks of warps, for others to acquire; then their next epoch begins."""
        clocks = self.seen[cluster, warp].copy()
        self.seen[cluster, warp, GENERIC, warp] += 1
        return clocks

    def acquire(self, cluster: np.ndarray | int, warp: np.ndarray | int,
                clocks: np.ndarray) -> None:
        """Warps see what others had seen."""
        self.seen[cluster, warp] = np.maximum(self.seen[cluster, warp], clocks)

    def fence_proxy(self, cohort: Cohort) -> None:
        """fence.proxy.async: the async proxy sees what the warps have seen."""
        clusters, warps = self.members(cohort)
        present = cohort.active_by_warp().any(1)
        clusters, warps = clusters[present], warps[present]
        self.seen[clusters, warps, ASYNC] = self.seen[clusters, warps, GENERIC]

    # ---- errors

    def _address(self, offset: int) -> str:
        block, address = divmod(offset, self.launch.shared_stride)
        return f"{address:#x} of block {self.launch.block_name(block)}"

    def _refuse_in_mbarriers(self, found: np.ndarray, offsets: np.ndarray,
                             warps: np.ndarray) -> None:
        """Refuse writes to bytes of mbarriers, which are for their instructions only."""
        if not found.any():
            return
        index = int(found.argmax())
        raise RaceError(
            f"race: {self._name(int(warps[index]))} writes shared byte "
            f"{self._address(int(offsets[index]))}, an mbarrier, where an arrival may come later",
            hint="mbarrier.inval first, or other bytes")

    def _refuse_after_write(self, late: np.ndarray, offsets: np.ndarray, warps: np.ndarray,
                            agents: np.ndarray, verb: str) -> None:
        lane, octet = (int(axis[0]) for axis in np.nonzero(late))
        offset = int(offsets[lane]) + octet
        location = self.launch.location_of(int(self.write_pc[offset]))
        raise RaceError(
            f"race: {self._name(int(warps[lane]))} {verb} shared byte {self._address(offset)}, "
            f"which {self._name(int(agents[lane, octet]))} wrote at {location}, and nothing orders "
            "the two", hint="a barrier between them is missing")

    def _refuse_after_read(self, offset: int, warp: int, agent: int, verb: str) -> None:
        raise RaceError(
            f"race: {self._name(int(warp))} {verb} shared byte {self._address(int(offset))}, which "
            f"{self._name(agent)} may still be reading: nothing orders the two",
            hint="a barrier between them is missing, or a buffer is released too early")


def _same_already(offsets: np.ndarray, values: Values) -> bool:
    """Whether a store writes what is there already."""
    buffer, size, stored = values
    return all((buffer.gather(offsets + index * size, size) == value).all()
               for index, value in enumerate(stored))
