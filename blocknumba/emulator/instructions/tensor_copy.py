"""cp.async.bulk.tensor: boxes of a tensor map between global and shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.access import shared_offsets
from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Site, Step
from blocknumba.emulator.errors import AccessError, SynchronizationError
from blocknumba.emulator.instructions.mbarrier import SIZE
from blocknumba.emulator.races import BULK
from blocknumba.emulator.syntax import Address
from blocknumba.emulator.tensor_map import TensorMap, swizzled
from blocknumba.emulator.values import DTYPES, dtype_of

_TARGET_ALIGNMENT = 128  # of the box in shared memory; PTX ISA, "cp.async.bulk.tensor"
_START_ALIGNMENT = 16  # of the box in its row; an H100 has an illegal instruction of other starts
_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}


def reduction_of(site: Site) -> tuple[np.ufunc | None, np.dtype | None]:
    """Function and type of cp.reduce; None for a plain copy."""
    if site.opcode[1] != "reduce":
        return None, None
    modifier = next(modifier for modifier in site.opcode if modifier in _REDUCTIONS)
    types = [one for one in site.opcode if one in DTYPES]
    return _REDUCTIONS[modifier], dtype_of(types[-1]) if types else None


def complete(cohort: Cohort, lane: int, offsets: np.ndarray, octets: np.ndarray, barrier: int,
             pc: int) -> None:
    """Deliver bytes to shared memory and to the mbarrier at an offset, at once.

    As early as can be: a stage that was released too early shows as a wrong result.
    """
    launch = cohort.launch
    races = launch.races
    clocks = None
    if races is not None:
        cluster, warp = divmod(int(cohort.warps[lane // LANES]), races.warps)
        agent = races.mbarrier_agent(cluster, barrier)
        races.async_write(cluster, warp, offsets, agent, pc)
        done = races.finish(cluster, agent)
        clocks = np.stack((done, done))
    launch.shared.data[offsets] = octets
    if launch.shared_written is not None:
        launch.shared_written.data[offsets] = 255
    launch.mbarriers.at(barrier).deliver(len(offsets), clocks)


def _map_of(cohort: Cohort, address: int) -> TensorMap:
    found = cohort.launch.tensor_map_at(address)
    if found is None:
        raise AccessError(f"cp.async.bulk.tensor: no tensor map at {address:#x}",
                          hint="pass a TensorMap as the parameter; one that the kernel makes needs "
                               "all fields, and fence.proxy.tensormap before its use")
    return found


class _Operands:
    """The operands of a tensor copy, for one lane after the other."""

    def __init__(self, site: Site, tensor: Address, shared: Address):
        self.rank = next(int(modifier[0]) for modifier in site.opcode if modifier in (
            "1d", "2d", "3d", "4d", "5d"))
        if len(tensor.coordinates) != self.rank:
            raise site.refuse("given {} coordinates, accepted {}", len(tensor.coordinates),
                              self.rank)
        if any("im2col" in modifier for modifier in site.opcode):
            raise site.refuse("given im2col, accepted tiled tensor maps")
        self.tensor, self.shared = site.address(tensor), site.address(shared)
        self.coordinates = [site.read(one, "s32") for one in tensor.coordinates]
        self.name = site.instruction.name

    def of(self, cohort: Cohort, lane: int) -> tuple[TensorMap, np.ndarray, tuple[int, ...]]:
        """The tensor map, the shared offsets of the box and the start of the box."""
        found = _map_of(cohort, _scalar(cohort, self.tensor, lane))
        if found.array.ndim != self.rank:
            raise SynchronizationError(
                f"{self.name}: given a tensor map of {found.array.ndim} axes")
        # PTX counts the coordinates from the innermost axis on.
        start = tuple([_scalar(cohort, one, lane) for one in reversed(self.coordinates)])
        distance = start[-1] * found.array.itemsize
        if distance % _START_ALIGNMENT:
            raise AccessError(
                f"{self.name}: the box starts at element {start[-1]} of the innermost axis, which "
                f"is {distance} bytes, accepted a multiple of {_START_ALIGNMENT}")
        address = _scalar(cohort, self.shared, lane)
        if address % _TARGET_ALIGNMENT:
            raise AccessError(f"{self.name}: shared address {address:#x} is misaligned, accepted "
                              f"a multiple of {_TARGET_ALIGNMENT}")
        at = shared_offsets(cohort, np.array([address]), cohort.blocks[lane:lane + 1], found.size,
                            self.name)
        return found, swizzled(int(at[0]) + np.arange(found.size), found.swizzle), start


def _scalar(cohort: Cohort, read: Callable[[Cohort], np.ndarray], lane: int) -> int:
    value = read(cohort)
    return int(value[lane if len(value) > 1 else 0])


def tensor_copy(site: Site) -> Step:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, and its prefetch."""
    if site.has("prefetch"):
        return lambda cohort: None
    if isinstance(site.operands[0], Address) and site.operands[0].coordinates:
        return _store(site)
    return _load(site)


def _load(site: Site) -> Step:
    """[shared], [map, {coordinates}], [mbarrier]{, ranks}{, policy}."""
    operands = _Operands(site, site.operands[1], site.operands[0])
    barrier, pc = site.address(site.operands[2]), site.pc
    ranks = site.read(site.operands[3], "u16") if site.has("multicast::cluster") else None

    def step(cohort: Cohort) -> None:
        for lane in map(int, np.flatnonzero(cohort.active_lanes())):
            found, offsets, start = operands.of(cohort, lane)
            octets = found.load(start)
            address = np.array([_scalar(cohort, barrier, lane)])
            block = cohort.blocks[lane:lane + 1]
            bar = int(shared_offsets(cohort, address, block, SIZE, operands.name)[0])
            if ranks is None:
                complete(cohort, lane, offsets, octets, bar, pc)
                continue
            own = int(offsets.min()) // cohort.launch.shared_stride
            for distance in _distances(cohort, own, _scalar(cohort, ranks, lane)):
                complete(cohort, lane, offsets + distance, octets, bar + distance, pc)
    return step


def _distances(cohort: Cohort, block: int, ranks: int) -> list[int]:
    """Distances from a block's shared memory to that of each block of a multicast."""
    launch = cohort.launch
    first = block - int(launch.cluster_rank(np.array([block]))[0])
    if ranks >> launch.shape.cluster_blocks:
        raise SynchronizationError(
            f"multicast::cluster: given the ranks {ranks:#x}, accepted those of "
            f"{launch.shape.cluster_blocks} blocks")
    return [(first + rank - block) * launch.shared_stride
            for rank in range(launch.shape.cluster_blocks) if ranks >> rank & 1]


def _store(site: Site) -> Step:
    """[map, {coordinates}], [shared]{, policy}."""
    operands = _Operands(site, site.operands[0], site.operands[1])
    combine, _ = reduction_of(site)

    def step(cohort: Cohort) -> None:
        launch = cohort.launch
        for lane in map(int, np.flatnonzero(cohort.active_lanes())):
            found, offsets, start = operands.of(cohort, lane)
            races = launch.races
            if races is not None:
                cluster, warp = divmod(int(cohort.warps[lane // LANES]), races.warps)
                races.async_read(cluster, warp, offsets, races.agent(warp, BULK))
            _check_written(cohort, offsets)
            found.store(start, launch.shared.data[offsets], combine)
    return step


def _check_written(cohort: Cohort, offsets: np.ndarray) -> None:
    written = cohort.launch.shared_written
    if written is not None and (written.data[offsets] == 0).any():
        raise AccessError("cp.async.bulk.tensor: reads shared memory that nothing has written")
