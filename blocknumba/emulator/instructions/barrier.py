"""Barriers of a thread block, and fences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.errors import AccessError, SynchronizationError
from blocknumba.emulator.instructions import warp
from blocknumba.emulator.instructions.load_store import do_nothing
from blocknumba.emulator.syntax import Operand
from blocknumba.emulator.tensor_map import SIZE, set_fenced


def together(step: Step, pc: int, name: str) -> Step:
    """A step that whole warps execute; lanes that ended do not count.

    Lanes that diverged from these may end before they get here, so they run first.
    """
    def run(cohort: Cohort) -> bool | None:
        if cohort.mask is not None:
            cohort.split_off_absent()
            present = cohort.active_by_warp().sum(1)
            missing = present != cohort.launch.live_threads[cohort.warps]
            if missing.any() and cohort.yield_turn(pc):
                return False
            if missing.any():
                raise _partial_warp(cohort, name, int(missing.argmax()), present)
        return step(cohort)
    return run


def _partial_warp(cohort: Cohort, name: str, row: int,
                  present: np.ndarray) -> SynchronizationError:
    live = cohort.launch.live_threads[cohort.warps[row]]
    return SynchronizationError(
        f"{name}: executed by {present[row]} of the {live} threads of a warp",
        hint="move the barrier out of the branch that part of the warp takes")


def _number(site: Site, operand: Operand | None) -> Callable[[Cohort], np.ndarray]:
    """Reader of the barrier or the count of each warp; 0 if the operand is absent."""
    if operand is None:
        return lambda cohort: np.zeros(len(cohort.warps), np.int64)
    read, name = site.read(operand, "u32"), site.opcode[0]
    return lambda cohort: warp.uniform(cohort, read, name).astype(np.int64)


def block_barrier(site: Site) -> Step:
    """bar.sync, bar.arrive, bar.red and their barrier.cta variants."""
    if site.has("warp"):
        return warp.synchronize(site)
    if site.has("red"):
        return _reducing_barrier(site)
    operands = site.operands
    barrier = _number(site, operands[0])
    count = _number(site, operands[1] if len(operands) > 1 else None)
    waits, name = site.has("sync"), site.instruction.name

    def step(cohort: Cohort) -> bool:
        barriers = cohort.launch.barriers
        keys = barriers.arrive(cohort, barrier(cohort), count(cohort))
        return waits and barriers.wait(keys).begin(cohort)
    return together(step, site.pc, name)


def _reducing_barrier(site: Site) -> Step:
    """bar.red: a barrier that also combines a predicate of all threads."""
    mode = next(modifier for modifier in site.opcode if modifier in ("popc", "and", "or"))
    dtype = np.dtype(np.uint32 if mode == "popc" else bool)
    write = site.write(site.operands[0], "u32" if mode == "popc" else "pred")
    read, name = site.read(site.operands[-1], "pred"), site.instruction.name
    barrier = _number(site, site.operands[1])
    count = _number(site, site.operands[2] if len(site.operands) > 3 else None)

    def step(cohort: Cohort) -> bool:
        barriers, number = cohort.launch.barriers, barrier(cohort)
        _vote(cohort, number, cohort.by_warp(read(cohort)))
        keys = barriers.arrive(cohort, number, count(cohort))

        def finish(woken: Cohort, rows: np.ndarray) -> None:
            tallies = [barriers.votes[tuple(map(int, row))] for row in rows]
            result = {"popc": [yes for yes, _ in tallies], "or": [yes > 0 for yes, _ in tallies],
                      "and": [yes == voted for yes, voted in tallies]}[mode]
            write(woken, np.repeat(np.array(result, dtype), LANES))
        return barriers.wait(keys, finish).begin(cohort)
    return together(step, site.pc, name)


def _vote(cohort: Cohort, barrier: np.ndarray, votes: np.ndarray) -> None:
    """Count the votes of the warps of a cohort at the barriers that they are about to arrive at."""
    barriers, active = cohort.launch.barriers, cohort.active_by_warp()
    for block, number, row, present in zip(cohort.blocks[::LANES], barrier, votes, active):
        generation = int(barriers.generation[block, number])
        tally = barriers.votes.setdefault((int(block), int(number), generation), [0, 0])
        tally[0] += int((row & present).sum())
        tally[1] += int(present.sum())


def fence(site: Site) -> Step:
    """fence: those of the async proxy and of tensor maps matter, memory is in order otherwise."""
    if site.operands:
        return _map_fence(site)
    if not site.has("proxy") or not any(modifier.startswith("async") for modifier in site.opcode):
        return do_nothing(site)

    def step(cohort: Cohort) -> None:
        if cohort.launch.races is not None:
            cohort.launch.races.fence_proxy(cohort)
    return step


def _map_fence(site: Site) -> Step:
    """fence.proxy.tensormap::generic.acquire [address], size: TMA may use the map that was copied.
    """
    address = site.address(site.operands[0])

    def step(cohort: Cohort) -> None:
        active = cohort.active_by_warp().any(1)
        for at in np.unique(cohort.by_lane(address(cohort))[::LANES][active]):
            segment = cohort.launch.memory.find(int(at), int(at) + SIZE)
            if segment is None:
                raise AccessError(f"fence.proxy.tensormap: no memory at {int(at):#x}")
            set_fenced(segment.bytes.data[int(at) - segment.base:], True)
    return step


TABLE: dict[str, Decoder] = {"bar": block_barrier, "membar": do_nothing, "fence": fence}
