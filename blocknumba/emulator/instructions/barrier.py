"""Barriers of a thread block, and fences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.instructions import warp
from blocknumba.emulator.instructions.load_store import do_nothing
from blocknumba.emulator.syntax import Operand


def require_whole_warps(cohort: Cohort, name: str) -> None:
    """Refuse a warp whose lanes are not all here.

    Lanes that ended do not count.
    """
    if cohort.mask is None:
        return
    cohort.part_from_absent()
    present = cohort.active_by_warp().sum(1)
    live = cohort.launch.live_threads[cohort.warps]
    if (present != live).any():
        row = int(np.flatnonzero(present != live)[0])
        raise SynchronizationError(
            f"{name}: executed by {int(present[row])} of the {int(live[row])} threads of a warp",
            hint="move the barrier out of the branch that part of the warp takes")


def _number(site: Site, operand: Operand | None) -> Callable[[Cohort], int]:
    """How to read a barrier or a count that all warps agree on; 0 when it is not given."""
    if operand is None:
        return lambda cohort: 0
    read, name = site.read(operand, "u32"), site.words[0]

    def number(cohort: Cohort) -> int:
        values = warp.uniform(cohort, read, name)
        if (values != values[0]).any():
            raise SynchronizationError(f"{name}: warps give different barriers or counts")
        return int(values[0])
    return number


def block_barrier(site: Site) -> Step:
    """bar.sync, bar.arrive, bar.red and their barrier.cta forms."""
    if site.has("warp"):
        return warp.synchronize(site)
    if site.has("red"):
        return _reducing_barrier(site)
    operands = site.operands
    read_barrier = _number(site, operands[0])
    read_count = _number(site, operands[1] if len(operands) > 1 else None)
    waits, name = site.has("sync"), site.instruction.name

    def step(cohort: Cohort) -> bool:
        require_whole_warps(cohort, name)
        barriers, barrier = cohort.launch.barriers, read_barrier(cohort)
        generation = barriers.arrive(cohort, barrier, read_count(cohort))
        return waits and barriers.wait(cohort, barrier, generation).begin(cohort)
    return step


def _reducing_barrier(site: Site) -> Step:
    """bar.red: a barrier that also combines a predicate of all threads."""
    mode = next(word for word in site.words if word in ("popc", "and", "or"))
    dtype = np.dtype(np.uint32 if mode == "popc" else bool)
    write = site.write(site.operands[0], "u32" if mode == "popc" else "pred")
    read, name = site.read(site.operands[-1], "pred"), site.instruction.name
    read_barrier = _number(site, site.operands[1])
    read_count = _number(site, site.operands[2] if len(site.operands) > 3 else None)

    def step(cohort: Cohort) -> bool:
        require_whole_warps(cohort, name)
        barriers, barrier = cohort.launch.barriers, read_barrier(cohort)
        _vote(cohort, barrier, cohort.by_warp(read(cohort)))
        generation = barriers.arrive(cohort, barrier, read_count(cohort))

        def finish(woken: Cohort, keys: np.ndarray) -> None:
            tallies = [barriers.votes[int(block), barrier, int(seen)] for block, seen in keys]
            result = {"popc": [yes for yes, _ in tallies], "or": [yes > 0 for yes, _ in tallies],
                      "and": [yes == voted for yes, voted in tallies]}[mode]
            write(woken, np.repeat(np.array(result, dtype), LANES))
        return barriers.wait(cohort, barrier, generation, finish).begin(cohort)
    return step


def _vote(cohort: Cohort, barrier: int, votes: np.ndarray) -> None:
    barriers, blocks, active = cohort.launch.barriers, cohort.blocks[::LANES], cohort.active_by_warp()
    for block, row, present in zip(blocks, votes, active):
        key = (int(block), barrier, int(barriers.generation[block, barrier]))
        tally = barriers.votes.setdefault(key, [0, 0])
        tally[0] += int((row & present).sum())
        tally[1] += int(present.sum())


TABLE: dict[str, Decoder] = {
    "bar": block_barrier, "barrier": block_barrier, "membar": do_nothing, "fence": do_nothing,
}
