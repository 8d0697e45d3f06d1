"""cp.async, bulk copies, and the groups that they are waited for in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.access import check_alignment, global_bytes, shared_offsets
from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Reader, Site, Step
from blocknumba.emulator.instructions.mbarrier import SIZE, offsets_in_shared
from blocknumba.emulator.instructions.tensor_copy import (
    complete,
    reduction_of,
    tensor_copy,
)
from blocknumba.emulator.races import BULK, COPY, GENERIC
from blocknumba.emulator.syntax import Immediate, Register

_COPY_SIZES = (4, 8, 16)  # PTX ISA, "cp.async": cp-size
_BULK_ALIGNMENT = 16


def copy(site: Site) -> Step:
    """cp.async.ca and .cg [shared], [global], size{, source size or ignore predicate}."""
    target, source = site.address(site.operands[0]), site.address(site.operands[1])
    size_operand = site.operands[2]
    if not isinstance(size_operand, Immediate) or size_operand.value not in _COPY_SIZES:
        raise site.refuse("given the size {}, accepted {}", size_operand, _COPY_SIZES)
    size, pc = int(size_operand.value), site.pc
    read_bytes = _source_size(site, size)

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        to, origin = cohort.by_lane(target(cohort)), cohort.by_lane(source(cohort))
        check_alignment(cohort, to, size, "shared")
        check_alignment(cohort, origin, size, "global")
        lengths = cohort.chosen(read_bytes(cohort))
        offsets = shared_offsets(cohort, cohort.chosen(to), cohort.chosen(cohort.blocks), size)
        octets = np.zeros((len(offsets), size), np.uint8)
        for length in np.unique(lengths[lengths > 0]):
            chosen = lengths == length
            octets[chosen, :length] = global_bytes(cohort, cohort.chosen(origin)[chosen],
                                                   int(length))
        launch.counters.global_access(pc, cohort, origin, size)
        launch.counters.shared_access(pc, cohort, to, size)
        targets = offsets[:, None] + np.arange(size)
        _order(cohort, targets, pc)
        launch.shared.data[targets] = octets
        if launch.shared_written is not None:
            launch.shared_written.data[targets] = 255
    return step


def _source_size(site: Site, size: int) -> Callable[[Cohort], np.ndarray]:
    """Bytes that each lane reads; the rest of size is zero."""
    more = site.operands[3] if len(site.operands) > 3 else None
    if more is None or (isinstance(more, Register) and more.type.endswith("64")):
        full = np.full(1, size)
        return lambda cohort: full
    if isinstance(more, Register) and more.type == "pred":
        ignore = site.read(more, "pred")
        return lambda cohort: np.where(ignore(cohort), 0, size)
    read = site.read(more, "u32")
    return lambda cohort: np.minimum(read(cohort), size).astype(np.int64)


def _order(cohort: Cohort, offsets: np.ndarray, pc: int) -> None:
    """Tell the race detector what each warp's cp.async writes."""
    races = cohort.launch.races
    if races is None:
        return
    clusters, warps = races.members(cohort)
    row_of_lane = cohort.chosen(np.repeat(np.arange(len(warps)), LANES))
    for row in np.unique(row_of_lane):
        agent = races.agent(int(warps[row]), COPY)
        races.async_write(int(clusters[row]), int(warps[row]), offsets[row_of_lane == row].ravel(),
                          agent, pc, GENERIC)


def _each_warp(kind: int, act: Callable[[Cohort, int, int, int], None]) -> Step:
    """A step that does something for each warp's asynchronous agent."""
    def step(cohort: Cohort) -> None:
        races = cohort.launch.races
        if races is None:
            return
        present = cohort.active_by_warp().any(1)
        for cluster, warp, here in zip(*races.members(cohort), present):
            if here:
                act(cohort, int(cluster), int(warp), races.agent(int(warp), kind))
    return step


def _commit(kind: int) -> Step:
    return _each_warp(kind, lambda cohort, cluster, warp, agent: cohort.launch.races.finish(
        cluster, agent) is None)


def _wait(site: Site, kind: int) -> Step:
    """Wait until all groups but the latest few are complete: in the emulator they are."""
    operand = site.operands[0] if site.operands else Immediate(0)
    if not isinstance(operand, Immediate):
        raise site.refuse("given {}, accepted a literal", operand)
    behind, everything = int(operand.value), not site.operands

    def act(cohort: Cohort, cluster: int, warp: int, agent: int) -> None:
        races = cohort.launch.races
        if everything:
            races.finish(cluster, agent)
        clock = int(races.agent_clocks[cluster, agent]) - behind
        if clock > 0:
            races.acquire_agent(cluster, warp, agent, clock)
    return _each_warp(kind, act)


def arrive_when_copied(site: Site) -> Step:
    """cp.async.mbarrier.arrive: the lane's copies so far are an arrival."""
    address, keeps_count = site.address(site.operands[0]), not site.has("noinc")

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        races = launch.races
        offsets = offsets_in_shared(cohort, address(cohort), SIZE, "cp.async.mbarrier.arrive")
        lanes = np.flatnonzero(cohort.active_lanes()) // LANES
        clocks = _copy_clocks(cohort) if races is not None else None
        for row, offset in zip(lanes, offsets):
            barrier = launch.mbarriers.at(int(offset))
            if keeps_count:
                barrier.pending += 1
            barrier.arrive(1, None if clocks is None else clocks[row])
    return step


def _copy_clocks(cohort: Cohort) -> list[np.ndarray]:
    """Clocks that an mbarrier gets when each warp's copies have arrived."""
    races = cohort.launch.races
    clocks = []
    for cluster, warp in zip(*races.members(cohort)):
        copied = races.finish(int(cluster), races.agent(int(warp), COPY))
        clocks.append(np.stack((copied, np.zeros_like(copied))))
    return clocks


def bulk_copy(site: Site) -> Step:
    """cp.async.bulk and cp.reduce.async.bulk between global and shared memory."""
    if site.opcode[3].startswith("shared") and site.opcode[4] == "global":
        return _bulk_load(site)
    if site.opcode[3] == "global" or site.opcode[0] == "cp" and site.opcode[1] == "reduce":
        return _bulk_store(site)
    return _bulk_between_blocks(site)


def _scalars(cohort: Cohort, reads: list[Reader]) -> list[tuple[int, ...]]:
    """The operands of each active lane, the lane first."""
    lanes = np.flatnonzero(cohort.active_lanes())
    columns = [cohort.by_lane(read(cohort))[lanes] for read in reads]
    return [(int(lane), *[int(column[row]) for column in columns])
            for row, lane in enumerate(lanes)]


def _bulk_load(site: Site) -> Step:
    """[shared], [global], size, [mbarrier]."""
    reads = [site.address(site.operands[0]), site.address(site.operands[1]),
             site.read(site.operands[2], "u32"), site.address(site.operands[3])]
    name, pc = site.instruction.name, site.pc

    def step(cohort: Cohort) -> None:
        for lane, to, origin, size, barrier in _scalars(cohort, reads):
            _check_bulk(site, to | origin | size)
            octets = global_bytes(cohort, np.array([origin]), size)[0]
            block = cohort.blocks[lane:lane + 1]
            at = shared_offsets(cohort, np.array([to]), block, size, name)
            bar = shared_offsets(cohort, np.array([barrier]), block, SIZE, name)
            complete(cohort, lane, int(at[0]) + np.arange(size), octets, int(bar[0]), pc)
    return step


def _check_bulk(site: Site, numbers: int) -> None:
    if numbers % _BULK_ALIGNMENT:
        raise site.refuse("given addresses or a size that are no multiples of 16")


def _bulk_store(site: Site) -> Step:
    """[global], [shared], size."""
    reads = [site.address(site.operands[0]), site.address(site.operands[1]),
             site.read(site.operands[2], "u32")]
    combine, dtype = reduction_of(site)
    name = site.instruction.name

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        for lane, to, source, size in _scalars(cohort, reads):
            _check_bulk(site, to | source | size)
            at = shared_offsets(cohort, np.array([source]), cohort.blocks[lane:lane + 1], size,
                                name)
            offsets = int(at[0]) + np.arange(size)
            read_by_bulk(cohort, lane, offsets)
            octets = launch.shared.data[offsets]
            (segment, _), = launch.memory.segments_of(np.array([to]), size)
            there = segment.bytes.data[to - segment.base:to - segment.base + size]
            if combine is None:
                there[:] = octets
            else:
                there.view(dtype)[:] = combine(there.view(dtype), octets.view(dtype))
    return step


def read_by_bulk(cohort: Cohort, lane: int, offsets: np.ndarray) -> None:
    """Tell the race detector that a lane's bulk copy reads shared memory."""
    races = cohort.launch.races
    if races is not None:
        cluster, warp = divmod(int(cohort.warps[lane // LANES]), races.warps)
        races.async_read(cluster, warp, offsets, races.agent(warp, BULK))


def _bulk_between_blocks(site: Site) -> Step:
    """[shared::cluster], [shared::cta], size, [mbarrier]."""
    reads = [site.address(site.operands[0]), site.address(site.operands[1]),
             site.read(site.operands[2], "u32"), site.address(site.operands[3])]
    name, pc = site.instruction.name, site.pc

    def step(cohort: Cohort) -> None:
        for lane, to, source, size, barrier in _scalars(cohort, reads):
            _check_bulk(site, to | source | size)
            block = cohort.blocks[lane:lane + 1]
            at, start, bar = [int(shared_offsets(cohort, np.array([one]), block, length, name)[0])
                              for one, length in ((to, size), (source, size), (barrier, SIZE))]
            read_by_bulk(cohort, lane, start + np.arange(size))
            octets = cohort.launch.shared.data[start:start + size].copy()
            complete(cohort, lane, at + np.arange(size), octets, bar, pc)
    return step


def decode(site: Site) -> Step:
    """Any cp instruction."""
    modifiers = site.opcode[1:]
    if "tensor" in modifiers:
        return tensor_copy(site)
    if "bulk" in modifiers:
        if "commit_group" in modifiers:
            return _commit(BULK)
        if "wait_group" in modifiers:
            return _wait(site, BULK)
        if "prefetch" in modifiers:
            return lambda cohort: None
        return bulk_copy(site)
    if "commit_group" in modifiers:
        return _commit(COPY)
    if "wait_group" in modifiers or "wait_all" in modifiers:
        return _wait(site, COPY)
    if "mbarrier" in modifiers:
        return arrive_when_copied(site)
    return copy(site)


TABLE: dict[str, Decoder] = {"cp": decode}
