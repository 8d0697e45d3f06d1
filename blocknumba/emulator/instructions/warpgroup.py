"""wgmma: products of warpgroups, computed as late as the waits allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Reader, Site, Step
from blocknumba.emulator.fragments import (
    ELEMENTS,
    Places,
    gather,
    operand_places,
    result_places,
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


class Product:
    """One wgmma.mma_async of one warpgroup, as its operands were when it was started."""

    def __init__(self, site: Site):
        self.rows, self.columns, self.depth = shape_of(site)
        self.result, self.left, self.right = site.words[-3:]
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
        self.places: Places = result_places(_WARP_ROWS, self.columns, per_result)
        per_operand = 4 // ELEMENTS[self.left].itemsize
        self.operand_places = operand_places(_WARP_ROWS, self.depth, per_operand)
        items = site.items(target)
        self.reads: list[Reader] = [site.read(item, "b32") for item in items]
        self.writes = [site.write(item, "b32") for item in items]
        if len(items) != len(self.places.rows):
            raise site.refuse("given {} results, accepted {}", len(items), len(self.places.rows))


def _number(site: Site, operand: Operand) -> int:
    if not isinstance(operand, Immediate):
        raise site.refuse("given {}, accepted a literal", operand)
    return int(operand.value)


def start(site: Site) -> Step:
    """wgmma.mma_async: the results are in flight until a wait."""
    product, name = Product(site), site.instruction.name

    def step(cohort: Cohort) -> None:
        warpgroups = cohort.launch.warpgroups
        firsts = warpgroups.members(cohort, name)
        tags = warpgroups.tags(len(product.writes))
        before = [cohort.spread(read(cohort)) for read in product.reads]
        descriptors = [uniform(cohort, read, name) for read in (
            [product.second] if product.from_registers else [product.first, product.second])]
        keeps = uniform(cohort, product.scale_d, name) if product.scale_d else np.ones(
            len(cohort.warps), bool)
        for warp in firsts:
            lanes = warpgroups.lanes_of(cohort, warp)
            row = lanes.start // LANES
            words = [int(column[row]) for column in descriptors]
            second = warpgroups.read_operand(warp, words[-1], product.columns,
                                             ELEMENTS[product.right], product.transposed[1])
            first = _first(cohort, product, warp, words[0], lanes)
            addend = [value[lanes].copy() for value in before] if keeps[row] else None
            flights = warpgroups.of(warp)
            flights.open.append(_computation(product, flights, tags, first, second, addend))
        for write, tag in zip(product.writes, tags):
            write(cohort, np.full(cohort.lanes, tag))
    return step


def _first(cohort: Cohort, product: Product, warp: int, word: int,
           lanes: slice) -> Callable[[], np.ndarray]:
    """The first operand, (64, depth): from registers now, or from shared memory later."""
    dtype = ELEMENTS[product.left]
    if not product.from_registers:
        return cohort.launch.warpgroups.read_operand(warp, word, _ROWS, dtype,
                                                     product.transposed[0])
    registers = [cohort.spread(read(cohort))[lanes].reshape(WARPS, LANES)
                 for read in product.first]
    matrix = gather(registers, product.operand_places, (_WARP_ROWS, product.depth), product.left)
    return lambda: matrix.reshape(_ROWS, product.depth)


def _computation(product: Product, flights: Flights, tags: np.ndarray,
                 first: Callable[[], np.ndarray], second: Callable[[], np.ndarray],
                 addend: list[np.ndarray] | None) -> Callable[[], None]:
    """What the wait will do: compute, and keep the results for the tagged registers."""
    dtype = ELEMENTS[product.result]

    def compute() -> None:
        total = np.zeros((_ROWS, product.columns), dtype)
        if addend is not None:
            known = [flights.results.get(int(value[0]), value) for value in addend]
            pieces = gather([value.reshape(WARPS, LANES) for value in known], product.places,
                            (_WARP_ROWS, product.columns), product.result)
            total = pieces.reshape(_ROWS, product.columns)
        left, right = first(), second()
        sign = product.signs[0] * product.signs[1]
        if sign < 0:
            left = -left
        values = multiply(left, right.T, total, product.left)
        registers = scatter(values.reshape(WARPS, _WARP_ROWS, product.columns), product.places,
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
    """wgmma.fence: orders registers, which the emulator copies when a product is started."""
    return lambda cohort: None


_FORMS: dict[str, Decoder] = {"mma_async": start, "commit_group": commit, "wait_group": wait,
                              "fence": fence}


def decode(site: Site) -> Step:
    """Any wgmma instruction: all warps of a warpgroup execute it together."""
    form = _FORMS.get(site.words[1])
    if form is None:
        raise site.refuse("accepted wgmma with {}", ", ".join(_FORMS))
    step, pc = form(site), site.pc

    def together(cohort: Cohort) -> bool:
        if not cohort.launch.warpgroups.gather(cohort, pc):
            return True
        step(cohort)
        return False
    return together


TABLE: dict[str, Decoder] = {"wgmma": decode}
