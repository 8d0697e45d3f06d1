"""Loads and stores of a cohort: address spaces, bounds, alignment, races and counters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.errors import AccessError, RaceError
from blocknumba.emulator.launch import CLUSTER_RANK_SHIFT
from blocknumba.emulator.layout import SHARED_BASE
from blocknumba.emulator.memory import WINDOWS, Bytes, region_of

_SHARED_MASK = (1 << CLUSTER_RANK_SHIFT) - 1


def check_alignment(cohort: Cohort, address: np.ndarray, size: int, space: str) -> None:
    """Refuse accesses that are not aligned to their size.

    address: of each lane, or one for all.
    """
    wrong = address & (size - 1)
    if wrong.any():
        address, wrong = cohort.chosen(address), cohort.chosen(wrong)
        if not wrong.any():
            return
        lane = int(np.flatnonzero(wrong)[0])
        raise AccessError(
            f"{space} access of {size} bytes at {int(address[lane]):#x} by "
            f"{_active_name(cohort, lane)}: misaligned",
            hint=f"an access of {size} bytes needs an address that is a multiple of {size}")


def _active_name(cohort: Cohort, lane: int) -> str:
    """The thread of the lane-th active lane."""
    lanes = np.flatnonzero(cohort.active_lanes())
    return cohort.launch.thread_name(cohort, int(lanes[lane]))


def spaces_of(address: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The spaces of generic addresses, each with the mask of the lanes that are in it."""
    first, last = int(address.min()), int(address.max())
    space = region_of(first)
    if space == region_of(last):
        return [(space, np.ones(len(address), bool))]
    names = np.array([region_of(int(one)) for one in address])
    return [(str(name), names == name) for name in np.unique(names)]


def shared_offsets(cohort: Cohort, address: np.ndarray, blocks: np.ndarray, size: int,
                   what: str = "access") -> np.ndarray:
    """Offsets in the shared memory of all resident blocks.

    address: shared::cluster addresses.   blocks: the resident block of each.
    Errors: AccessError outside the block's allocation.
    """
    launch = cohort.launch
    own = address & _SHARED_MASK
    low, high = int(own.min()), int(own.max())
    if low < SHARED_BASE or high + size > launch.layout.shared_end:
        bad = low if low < SHARED_BASE else high
        raise AccessError(
            f"shared {what} of {size} bytes at {bad:#x}: out of bounds (the block has bytes "
            f"{SHARED_BASE:#x} to {launch.layout.shared_end:#x})")
    if launch.shape.cluster_blocks > 1:
        rank = address >> CLUSTER_RANK_SHIFT
        if int(rank.max()) >= launch.shape.cluster_blocks or int(rank.min()) < 0:
            raise AccessError(f"shared {what}: given the rank {int(rank.max())}, accepted "
                              f"0 to {launch.shape.cluster_blocks - 1}")
        blocks = blocks - launch.cluster_rank(blocks) + rank
        if (launch.barriers.live[blocks] == 0).any():
            raise AccessError(f"shared {what}: the block that it reaches has ended",
                              hint="put a barrier.cluster before the end of the blocks")
    elif high != int(address.max()) or low != int(address.min()):
        raise AccessError(f"shared {what} at {int(address.max()):#x}: out of bounds")
    return own + blocks * launch.shared_stride


def local_offsets(cohort: Cohort, address: np.ndarray, threads: np.ndarray,
                  size: int) -> np.ndarray:
    """Offsets in the local memory of all resident threads."""
    launch = cohort.launch
    low, high = int(address.min()), int(address.max())
    if low < 0 or high + size > launch.layout.local_end:
        bad = low if low < 0 else high
        raise AccessError(f"local access of {size} bytes at {bad:#x}: out of bounds (the thread "
                          f"has {launch.layout.local_end} bytes)")
    return address + threads * launch.local_stride


def load(cohort: Cohort, space: str, address: np.ndarray, size: int, count: int,
         pc: int, strong: bool = False) -> list[np.ndarray]:
    """count elements of size bytes from each lane's address on, as unsigned numbers.

    The values of inactive lanes are those of an active one.
    """
    if len(address) > 1 and cohort.mask is not None:
        address = np.where(cohort.mask, address, address[int(cohort.mask.argmax())])
    check_alignment(cohort, address, size * count, space)
    if space == "generic":
        spaces = spaces_of(address)
        if len(spaces) > 1:
            return _load_mixed(cohort, spaces, address, size, count, pc, strong)
        space = spaces[0][0]
        address = address - WINDOWS.get(space, 0)
    if space == "param":
        return _load_parameter(cohort, address, size, count)
    if space == "shared":
        return _load_shared(cohort, address, size, count, pc, strong)
    if space == "local":
        offsets = local_offsets(cohort, address, cohort.threads, size * count)
        _check_written(cohort, cohort.launch.local_written, offsets, size, count, "local")
        return _gather(cohort.launch.local, offsets, size, count)
    return _load_global(cohort, address, size, count, pc)


def _gather(source: Bytes, offsets: np.ndarray, size: int, count: int) -> list[np.ndarray]:
    return [source.gather(offsets + index * size, size) for index in range(count)]


def _load_mixed(cohort: Cohort, spaces: Sequence[tuple[str, np.ndarray]], address: np.ndarray,
                size: int, count: int, pc: int, strong: bool) -> list[np.ndarray]:
    results = [np.zeros(cohort.lanes, f"u{size}") for _ in range(count)]
    saved = cohort.mask
    for space, mask in spaces:
        cohort.mask = mask if saved is None else mask & saved
        if cohort.mask.any():
            found = load(cohort, space, address - WINDOWS.get(space, 0), size, count, pc,
                         strong)
            for result, value in zip(results, found):
                np.copyto(result, value, where=cohort.mask)
    cohort.mask = saved
    return results


def _load_parameter(cohort: Cohort, address: np.ndarray, size: int, count: int) -> list[np.ndarray]:
    end = cohort.launch.layout.parameter_offsets[-1]
    if int(address.min()) < 0 or int(address.max()) + size * count > end:
        raise AccessError(f"parameter access at {int(address.max())}: out of bounds ({end} bytes)")
    return _gather(cohort.launch.parameters, address, size, count)


def _load_shared(cohort: Cohort, address: np.ndarray, size: int, count: int, pc: int,
                 strong: bool) -> list[np.ndarray]:
    launch = cohort.launch
    offsets = shared_offsets(cohort, address, cohort.blocks, size * count)
    _check_written(cohort, launch.shared_written, offsets, size, count, "shared")
    launch.counters.shared_access(pc, cohort, address, size * count)
    if launch.races is not None:
        launch.races.read(cohort, offsets, size * count, strong)
    return _gather(launch.shared, offsets, size, count)


def _check_written(cohort: Cohort, written: Bytes | None, offsets: np.ndarray, size: int,
                   count: int, space: str) -> None:
    if written is None:
        return
    full = (1 << 8 * size) - 1
    for index in range(count):
        missing = written.gather(offsets + index * size, size) != full
        if not missing.any():
            continue
        if len(missing) in (1, cohort.lanes):
            missing = cohort.chosen(missing)
        if missing.any():
            lane = int(np.flatnonzero(missing)[0])
            raise AccessError(
                f"{space} load of {size} bytes by {_active_name(cohort, lane)}: "
                "nothing has written there")


def _load_global(cohort: Cohort, address: np.ndarray, size: int, count: int,
                 pc: int) -> list[np.ndarray]:
    launch = cohort.launch
    launch.counters.global_access(pc, cohort, address, size * count)
    total = size * count
    low, high = int(address.min()), int(address.max()) + total
    segment = launch.memory.find(low, high)
    if segment is not None:
        return _gather(segment.bytes, address - segment.base, size, count)
    results = [np.zeros(len(address), f"u{size}") for _ in range(count)]
    for segment, chosen in _segments(cohort, address, total):
        found = _gather(segment.bytes, address[chosen] - segment.base, size, count)
        for result, value in zip(results, found):
            result[chosen] = value
    return results


def _segments(cohort: Cohort, address: np.ndarray, size: int) -> list:
    """GlobalMemory.segments_of, with the thread in its errors."""
    memory = cohort.launch.memory
    try:
        return memory.segments_of(address, size)
    except AccessError as error:
        if len(address) in (1, cohort.lanes):
            address = cohort.chosen(address)
        outside = [memory.find(int(one), int(one) + size) is None for one in address]
        name = _active_name(cohort, outside.index(True))
        raise AccessError(f"{error.message}, by {name}", hint=error.hint) from None


def store(cohort: Cohort, space: str, address: np.ndarray, size: int,
          values: Sequence[np.ndarray], pc: int, strong: bool = False) -> None:
    """Write one element of size bytes for each of values from each active lane's address on."""
    total = size * len(values)
    check_alignment(cohort, address, total, space)
    full_address = address
    address = cohort.chosen(address)
    values = [cohort.chosen(value) for value in values]
    if space == "generic":
        spaces = spaces_of(address)
        if len(spaces) > 1:
            _store_mixed(cohort, spaces, full_address, size, values, pc)
            return
        space = spaces[0][0]
        address = address - WINDOWS.get(space, 0)
        full_address = full_address - WINDOWS.get(space, 0)
    launch = cohort.launch
    if space == "shared":
        offsets = shared_offsets(cohort, address, cohort.chosen(cohort.blocks), total)
        launch.counters.shared_access(pc, cohort, full_address, total)
        if launch.races is not None:
            launch.races.write(cohort, offsets, total, strong, pc,
                               (launch.shared, size, values))
        _scatter(cohort, launch.shared, offsets, size, values, "shared")
        _mark(launch.shared_written, offsets, size, len(values))
        return
    if space == "local":
        offsets = local_offsets(cohort, address, cohort.chosen(cohort.threads), total)
        _scatter(cohort, launch.local, offsets, size, values, "local")
        _mark(launch.local_written, offsets, size, len(values))
        return
    if space == "param":
        raise AccessError("store to a kernel parameter: accepted a load")
    _store_global(cohort, address, full_address, size, values, pc)


def _store_mixed(cohort: Cohort, spaces: Sequence[tuple[str, np.ndarray]], address: np.ndarray,
                 size: int, values: Sequence[np.ndarray], pc: int) -> None:
    saved = cohort.mask
    active = np.flatnonzero(cohort.active_lanes())
    addresses = cohort.by_lane(address)
    for space, mask in spaces:
        cohort.mask = np.zeros(cohort.lanes, bool)
        cohort.mask[active[mask]] = True
        full = [np.zeros(cohort.lanes, value.dtype) for value in values]
        for target, value in zip(full, values):
            target[active] = value
        store(cohort, space, addresses - WINDOWS.get(space, 0), size, full, pc)
    cohort.mask = saved


def _store_global(cohort: Cohort, address: np.ndarray, full_address: np.ndarray, size: int,
                  values: Sequence[np.ndarray], pc: int) -> None:
    launch = cohort.launch
    total = size * len(values)
    launch.counters.global_access(pc, cohort, full_address, total)
    segment = launch.memory.find(int(address.min()), int(address.max()) + total)
    found = [(segment, None)] if segment is not None else _segments(cohort, address, total)
    for segment, chosen in found:
        if not segment.writable:
            raise AccessError(f"global store to the {segment.name}: it is read-only")
        chosen_address = address if chosen is None else address[chosen]
        pieces = values if chosen is None else [value[chosen] for value in values]
        _scatter(cohort, segment.bytes, chosen_address - segment.base, size, pieces, "global")


def _scatter(cohort: Cohort, target: Bytes, offsets: np.ndarray, size: int,
             values: Sequence[np.ndarray], space: str) -> None:
    """Write, and find lanes of the same instruction that store different values to one element."""
    for index, value in enumerate(values):
        at = offsets + index * size
        target.scatter(at, size, value)
        kept = target.gather(at, size)
        if (kept != value).any():
            lane = int(np.flatnonzero(kept != value)[0])
            name = _active_name(cohort, lane)
            raise RaceError(f"race: {space} store by {name}: another thread stores a different "
                            "value to the same address in the same instruction")


def _mark(written: Bytes | None, offsets: np.ndarray, size: int, count: int) -> None:
    if written is not None:
        full = np.dtype(f"u{size}").type((1 << 8 * size) - 1)
        for index in range(count):
            written.scatter(offsets + index * size, size, full)


def atomic_targets(cohort: Cohort, space: str, address: np.ndarray, size: int,
                   pc: int) -> list[tuple[Bytes, np.ndarray, np.ndarray]]:
    """Targets of an atomic operation of the active lanes: buffers, offsets and lanes.

    Counts the access, and tells the race detector that it is atomic.
    """
    full = cohort.by_lane(address)
    lanes = np.flatnonzero(cohort.active_lanes())
    address = full[lanes]
    if space == "generic":
        spaces = spaces_of(address)
        if len(spaces) > 1:
            raise AccessError("atomic: given addresses in several spaces, accepted one")
        space = spaces[0][0]
        full, address = full - WINDOWS.get(space, 0), address - WINDOWS.get(space, 0)
    launch = cohort.launch
    if space == "shared":
        offsets = shared_offsets(cohort, address, cohort.blocks[lanes], size, "atomic")
        _check_written(cohort, launch.shared_written, offsets, size, 1, "shared")
        launch.counters.shared_access(pc, cohort, full, size)
        if launch.races is not None:
            launch.races.write(cohort, offsets, size, True, pc, None)
        return [(launch.shared, offsets, lanes)]
    if space != "global":
        raise AccessError(f"atomic: given {space} memory, accepted global or shared")
    launch.counters.global_access(pc, cohort, full, size)
    found = []
    for segment, chosen in _segments(cohort, address, size):
        if not segment.writable:
            raise AccessError(f"atomic on the {segment.name}: it is read-only")
        found.append((segment.bytes, address[chosen] - segment.base, lanes[chosen]))
    return found


def global_bytes(cohort: Cohort, address: np.ndarray, size: int) -> np.ndarray:
    """size bytes from each global address on: (addresses, size)."""
    found = np.empty((len(address), size), np.uint8)
    for segment, chosen in cohort.launch.memory.segments_of(address, size):
        offsets = address[chosen] - segment.base
        found[chosen] = segment.bytes.data[offsets[:, None] + np.arange(size)]
    return found


def _rows(cohort: Cohort, address: np.ndarray, size: int) -> np.ndarray:
    """Offsets in shared memory of rows of size bytes, (warps, rows), one lane's each."""
    if (address & (size - 1)).any():
        raise AccessError(f"shared access of a row of {size} bytes: misaligned",
                          hint=f"each row's address must be a multiple of {size}")
    blocks = np.repeat(cohort.blocks[::LANES], address.shape[1])
    offsets = shared_offsets(cohort, address.ravel(), blocks, size)
    return offsets.reshape(address.shape)


def load_rows(cohort: Cohort, address: np.ndarray, size: int, pc: int) -> np.ndarray:
    """Rows of size bytes of shared memory: (warps, rows, size).

    address: (warps, rows).
    """
    launch = cohort.launch
    offsets = _rows(cohort, address, size)
    byte_offsets = offsets[:, :, None] + np.arange(size)
    if launch.shared_written is not None and not launch.shared_written.data[byte_offsets].all():
        raise AccessError("shared load of matrices: nothing has written some of their rows")
    _count_rows(cohort, address, size, pc)
    if launch.races is not None:
        launch.races.read_rows(cohort, offsets, size)
    return launch.shared.data[byte_offsets]


def store_rows(cohort: Cohort, address: np.ndarray, octets: np.ndarray, pc: int) -> None:
    """Write rows to shared memory.

    address: (warps, rows).   octets: (warps, rows, size).
    """
    launch = cohort.launch
    size = octets.shape[2]
    offsets = _rows(cohort, address, size)
    byte_offsets = offsets[:, :, None] + np.arange(size)
    _count_rows(cohort, address, size, pc)
    if launch.races is not None:
        launch.races.write_rows(cohort, offsets, size, pc)
    launch.shared.data[byte_offsets] = octets
    if launch.shared_written is not None:
        launch.shared_written.data[byte_offsets] = 255


def _count_rows(cohort: Cohort, address: np.ndarray, size: int, pc: int) -> None:
    """Count matrices: eight rows to a pass over shared memory."""
    rows = address.reshape(-1, 8)
    cohort.launch.counters.shared_rows(pc, rows, np.ones(rows.shape, bool), size, phases=1)
