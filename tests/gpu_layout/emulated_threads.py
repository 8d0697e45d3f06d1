"""NumPy emulation of threads: a tile is an array [warp, lane, register]."""

from functools import lru_cache

import numpy as np

from blocknumba.gpu_layout.layouts.movement import RegisterMove, SharedMove, ShuffleMove
from blocknumba.gpu_layout.layouts.registers import replication


def dimensions(layout):
    """(warps, lanes, registers) of a register layout."""
    return tuple(1 << layout.bits(dim) for dim in ("warp", "lane", "register"))


@lru_cache(maxsize=None)
def element_index(layout):
    """Which element, in C order, each register holds, computed point by point."""
    held = np.zeros(dimensions(layout), np.int64)
    for warp, lane, register in np.ndindex(*held.shape):
        coordinates = layout(register=register, lane=lane, warp=warp)
        index = 0
        for axis in range(len(layout.outs)):
            index = index << layout.bits(f"dim{axis}") | coordinates[f"dim{axis}"]
        held[warp, lane, register] = index
    return held


def distribute(tile, layout):
    """The registers of all threads that hold a tile."""
    return tile.reshape(-1)[element_index(layout)]


def execute(move, held, source, destination):
    """The registers after a plan of a conversion, by threads that see only what hardware does."""
    if isinstance(move, RegisterMove):
        return held[:, :, list(move.sources)]
    if isinstance(move, ShuffleMove):
        return _shuffle(move, held)
    assert isinstance(move, SharedMove)
    return _through_shared(move, held, source, destination)


def _thread_ids(held):
    warps, lanes, _ = held.shape
    return np.arange(lanes)[None, :] | np.arange(warps)[:, None] << 5


def _parity(values):
    return np.vectorize(lambda value: int(value).bit_count() & 1)(values).astype(bool)


def _select(selects, held):
    threads = _thread_ids(held)
    for select in selects:
        chosen = _parity(threads & select.thread_mask)
        swapped = held[:, :, np.arange(held.shape[2]) ^ select.register_xor]
        held = np.where(chosen[:, :, None], swapped, held)
    return held


def _shuffle(move, held):
    held = _select(move.before, held)
    threads = _thread_ids(held)
    lane = np.zeros_like(threads)
    for bit, column in enumerate(move.source_lane):
        lane ^= (threads >> bit & 1) * column
    slots = []
    for shuffle in move.rounds:
        offered = held[:, :, shuffle.register]
        slots.append(np.take_along_axis(offered, lane ^ shuffle.lane_xor, axis=1))
    return _select(move.after, np.stack(slots, axis=-1))


def _through_shared(move, held, source, destination):
    """Writes first, then reads; an element that nobody wrote reads as -1."""
    size = 1 << move.shared.bits("offset")
    warps, lanes, _ = held.shape
    memory = np.full(size, -1)
    masks = replication(source)
    for warp, lane in np.ndindex(warps, lanes):
        if warp & masks.warp or lane & masks.lane:
            continue
        for group in move.write.groups:
            offset = _first_offset(move.write, group, warp, lane)
            memory[offset : offset + len(group)] = held[warp, lane, list(group)]
    result = np.full(dimensions(destination), -1)
    for warp, lane in np.ndindex(warps, lanes):
        for group in move.read.groups:
            offset = _first_offset(move.read, group, warp, lane)
            result[warp, lane, list(group)] = memory[offset : offset + len(group)]
    return result


def _first_offset(access, group, warp, lane):
    offset = access.offsets(register=group[0], lane=lane, warp=warp)["offset"]
    assert offset % access.vector == 0, "a vector access must be aligned"
    return offset
