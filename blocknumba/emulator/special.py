"""The special registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort

Special = Callable[[Cohort], np.ndarray]
_LANE = np.arange(LANES, dtype=np.uint32)
_ONE = np.uint64(1)
_LANE_MASKS = {
    "eq": _ONE << _LANE, "lt": (_ONE << _LANE) - _ONE, "le": (_ONE << _LANE + 1) - _ONE,
    "gt": ~((_ONE << _LANE + 1) - _ONE), "ge": ~((_ONE << _LANE) - _ONE),
}


def _constant(choose: Callable[[Cohort], int]) -> Special:
    return lambda cohort: np.array([choose(cohort)], np.uint64)


def _of_block(choose: Callable[[Cohort], np.ndarray]) -> Special:
    """A value for each resident block, shared by all lanes when there is one block."""
    def read(cohort: Cohort) -> np.ndarray:
        values = choose(cohort)
        first = cohort.blocks[0]
        if first == cohort.blocks[-1]:
            return values[first:first + 1]
        return values[cohort.blocks]
    return read


def _thread(axis: int) -> Special:
    return lambda cohort: cohort.launch.thread_index[axis][cohort.threads]


def _axes(name: str, make: Callable[[int], Special]) -> dict[str, Special]:
    return {f"%{name}.{letter}": make(axis) for axis, letter in enumerate("xyz")}


def _in_cluster(axis: int) -> Special:
    return _of_block(lambda cohort: cohort.launch.block_index[axis]
                     % np.uint32(cohort.launch.shape.cluster[axis]))


def _cluster(axis: int) -> Special:
    return _of_block(lambda cohort: cohort.launch.block_index[axis]
                     // np.uint32(cohort.launch.shape.cluster[axis]))


def _lane_mask(name: str) -> Special:
    words = _LANE_MASKS[name].astype(np.uint32)
    return lambda cohort: np.tile(words, len(cohort.warps))


def _clock(cohort: Cohort) -> np.ndarray:
    """The number of instructions so far: time passes, at no particular speed."""
    return np.array([cohort.launch.scheduler.elapsed()], np.uint64)


SPECIALS: dict[str, Special] = {
    **_axes("tid", _thread),
    **_axes("ntid", lambda axis: _constant(lambda cohort: cohort.launch.shape.block[axis])),
    **_axes("ctaid", lambda axis: _of_block(lambda cohort: cohort.launch.block_index[axis])),
    **_axes("nctaid", lambda axis: _constant(lambda cohort: cohort.launch.shape.grid[axis])),
    **_axes("cluster_ctaid", _in_cluster),
    **_axes("clusterid", _cluster),
    **_axes("cluster_nctaid", lambda axis: _constant(
        lambda cohort: cohort.launch.shape.cluster[axis])),
    **_axes("nclusterid", lambda axis: _constant(
        lambda cohort: cohort.launch.shape.grid[axis] // cohort.launch.shape.cluster[axis])),
    "%cluster_ctarank": lambda cohort: cohort.launch.cluster_rank(cohort.blocks),
    "%cluster_nctarank": _constant(lambda cohort: cohort.launch.shape.cluster_blocks),
    "%laneid": lambda cohort: np.tile(_LANE, len(cohort.warps)),
    "%warpid": lambda cohort: cohort.launch.thread_in_block[cohort.threads] // LANES,
    "%nwarpid": _constant(lambda cohort: cohort.launch.warps_per_block),
    "%smid": _constant(lambda cohort: 0), "%nsmid": _constant(lambda cohort: 1),
    "%gridid": _constant(lambda cohort: 0),
    "%dynamic_smem_size": _constant(lambda cohort: cohort.launch.layout.dynamic_shared_bytes),
    "%clock": _clock, "%clock64": _clock, "%globaltimer": _clock,
    **{f"%lanemask_{name}": _lane_mask(name) for name in _LANE_MASKS},
}
