"""wgmma: mma of warpgroups, computed as late as the waits allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Reader, Site, Step
from blocknumba.emulator.fragments import (
    ELEMENTS,
    Fragment,
    gather,
    operand_fragment,
    accumulator_fragment,
    scatter,
)
from blocknumba.emulator.instructions.matrix import shape_of
from blocknumba.emulator.instructions.warp import uniform
from blocknumba.emulator.races import MATRIX
from blocknumba.emulator.syntax import Group, Immediate, Operand
from blocknumba.emulator.tensor_core import multiply
from blocknumba.emulator.wgmma import WARPS, Flights

_ROWS = 64
_WARP_ROWS = _ROWS // WARPS


class Mma:
    """One wgmma.mma_async of one warpgroup, as its operands were when it was started."""

    def __init__(self, site: Site):
        self.rows, self.columns, self.depth = shape_of(site)
        self.result, self.left, self.right = site.opcode[-3:]
        target, first, second, *flags = site.operands
        if self.rows != _ROWS or site.has("sp") or self.left not in ELEMENTS:
            raise site.refuse("accepted dense operands with m64")
        self.from_registers = isinstance(first, Group)
        self.scale_d = site.read(flags[0], "pred") if flags else None
        numbers = [_number(site, flag) for flag in flags[1:]]
        self.signs = [float(number) for number in numbers[:2]] or [1.0, 1.0]
        transposed = [bool(number) for number in numbers[2:]]
        if self.from_registers:
            transposed.insert(0, False)
        self.transposed = (transposed + [False, False])[:2]
        self.first = [site.read(item, "b32") for item in site.items(first)] if (
            self.from_registers) else site.read(first, "u64")
        self.second = site.read(second, "u64")
        per_result = 4 // ELEMENTS[self.result].itemsize
        self.result_fragment: Fragment = accumulator_fragment(_WARP_ROWS, self.columns, per_result)
        per_operand = 4 // ELEMENTS[self.left].itemsize
        self.operand_fragment = operand_fragment(_WARP_ROWS, self.depth, per_operand)
        items = site.items(target)
        self.reads: list[Reader] = [site.read(item, "b32") for item in items]
        self.writes = [site.write(item, "b32") for item in items]
        if len(items) != len(self.result_fragment.rows):
            raise site.refuse("given {} results, accepted {}", len(items),
                              len(self.result_fragment.rows))


def _number(site: Site, operand: Operand) -> int:
    if not isinstance(operand, Immediate):
        raise site.refuse("given {}, accepted a literal", operand)
    return int(operand.value)


def start(site: Site) -> Step:
    """wgmma.mma_async: the results are in flight until a wait."""
    mma, name = Mma(site), site.instruction.name

    def step(cohort: Cohort) -> None:
        warpgroups = cohort.launch.warpgroups
        firsts = warpgroups.members(cohort, name)
        tags = warpgroups.tags(len(mma.writes))
        before = [cohort.by_lane(read(cohort)) for read in mma.reads]
        descriptors = [uniform(cohort, read, name) for read in (
            [mma.second] if mma.from_registers else [mma.first, mma.second])]
        keeps = uniform(cohort, mma.scale_d, name) if mma.scale_d else np.ones(
            len(cohort.warps), bool)
        for warp in firsts:
            lanes = warpgroups.lanes_of(cohort, warp)
            row = lanes.start // LANES
            fields = [int(column[row]) for column in descriptors]
            second = warpgroups.read_operand(warp, fields[-1], mma.columns,
                                             ELEMENTS[mma.right], mma.transposed[1])
            first = _first(cohort, mma, warp, fields[0], lanes)
            addend = [value[lanes].copy() for value in before] if keeps[row] else None
            flights = warpgroups.of(warp)
            flights.open.append(_computation(mma, flights, tags, first, second, addend))
        for write, tag in zip(mma.writes, tags):
            write(cohort, np.full(cohort.lanes, tag))
    return step


def _first(cohort: Cohort, mma: Mma, warp: int, descriptor: int,
           lanes: slice) -> Callable[[], np.ndarray]:
    """The first operand, (64, depth): from registers now, or from shared memory later."""
    dtype = ELEMENTS[mma.left]
    if not mma.from_registers:
        return cohort.launch.warpgroups.read_operand(warp, descriptor, _ROWS, dtype,
                                                     mma.transposed[0])
    registers = [cohort.by_lane(read(cohort))[lanes].reshape(WARPS, LANES)
                 for read in mma.first]
    matrix = gather(registers, mma.operand_fragment, (_WARP_ROWS, mma.depth), mma.left)
    return lambda: matrix.reshape(_ROWS, mma.depth)


def _computation(mma: Mma, flights: Flights, tags: np.ndarray,
                 first: Callable[[], np.ndarray], second: Callable[[], np.ndarray],
                 addend: list[np.ndarray] | None) -> Callable[[], None]:
    """The work of a later wait: compute, and keep the results for the tagged registers."""
    dtype = ELEMENTS[mma.result]

    def compute() -> None:
        total = np.zeros((_ROWS, mma.columns), dtype)
        if addend is not None:
            known = [flights.results.get(int(value[0]), value) for value in addend]
            pieces = gather([value.reshape(WARPS, LANES) for value in known], mma.result_fragment,
                            (_WARP_ROWS, mma.columns), mma.result)
            total = pieces.reshape(_ROWS, mma.columns)
        left, right = first(), second()
        sign = mma.signs[0] * mma.signs[1]
        if sign < 0:
            left = -left
        values = multiply(left, right.T, total, mma.left)
        registers = scatter(values.reshape(WARPS, _WARP_ROWS, mma.columns), mma.result_fragment,
                            np.dtype(np.uint32))
        flights.results.update(zip(map(int, tags), registers))
    return compute


def commit(site: Site) -> Step:
    """wgmma.commit_group."""
    name = site.instruction.name

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        for warp in launch.warpgroups.members(cohort, name):
            launch.warpgroups.of(warp).commit()
            if launch.races is not None:
                cluster, number = divmod(int(warp), launch.races.warps)
                launch.races.finish(cluster, int(launch.races.agent(number, MATRIX)))
    return step


def wait(site: Site) -> Step:
    """wgmma.wait_group: compute all groups but the latest few."""
    behind, name = _number(site, site.operands[0]), site.instruction.name

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        for warp in launch.warpgroups.members(cohort, name):
            launch.warpgroups.of(warp).compute(behind)
            launch.warpgroups.deliver(cohort, warp)
            _see_reads(cohort, int(warp), behind)
    return step


def _see_reads(cohort: Cohort, warp: int, behind: int) -> None:
    """All warps of a warpgroup know that what it waited for has been read."""
    races = cohort.launch.races
    if races is None:
        return
    cluster, number = divmod(warp, races.warps)
    agent = int(races.agent(number, MATRIX))
    clock = int(races.agent_clocks[cluster, agent]) - behind
    for member in range(WARPS if clock > 0 else 0):
        races.acquire_agent(cluster, number + member, agent, clock)


def fence(_: Site) -> Step:
    """wgmma.fence: orders registers, which the emulator copies when an mma is started."""
    return lambda cohort: None


_VARIANTS: dict[str, Decoder] = {"mma_async": start, "commit_group": commit, "wait_group": wait,
                                 "fence": fence}


def decode(site: Site) -> Step:
    """Any wgmma instruction: all warps of a warpgroup execute it together."""
    variant = _VARIANTS.get(site.opcode[1])
    if variant is None:
        raise site.refuse("accepted wgmma with {}", ", ".join(_VARIANTS))
    step, pc = variant(site), site.pc

    def together(cohort: Cohort) -> bool:
        if not cohort.launch.warpgroups.gather(cohort, pc):
            return True
        step(cohort)
        return False
    return together


TABLE: dict[str, Decoder] = {"wgmma": decode}
