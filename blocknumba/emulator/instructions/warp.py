"""Instructions in which the lanes of a warp exchange values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Reader, Site, Step
from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.values import dtype_of

_LANE = np.arange(LANES)


def check_members(cohort: Cohort, members: np.ndarray, name: str) -> np.ndarray:
    """The lanes that a member mask names: (warps, 32).

    Errors: SynchronizationError when a named lane is elsewhere, or an active lane is not named.
    """
    words = cohort.by_warp(members)
    named = (words[:, :, None] >> _LANE.astype(np.uint32) & 1).astype(bool)
    active = cohort.active_by_warp()
    wanted = np.where(active[:, :, None], named, active[:, None, :])
    if (wanted != active[:, None, :]).any():
        warp, lane, _ = (int(axis[0]) for axis in np.nonzero(wanted != active[:, None, :]))
        raise SynchronizationError(
            f"{name}: given the member mask {int(words[warp, lane]):#010x}, but the active lanes "
            f"are {_as_mask(active[warp]):#010x}",
            hint="all lanes of the mask must execute the instruction together")
    return active


def _as_mask(lanes: np.ndarray) -> int:
    return int(np.dot(lanes.astype(np.int64), 1 << _LANE.astype(np.int64)))


def _members(site: Site, index: int) -> Callable[[Cohort], np.ndarray]:
    read = site.read(site.operands[index], "u32")
    name = site.opcode[0]
    full = np.uint32(0xFFFFFFFF)

    def members(cohort: Cohort) -> np.ndarray:
        mask = read(cohort)
        if cohort.mask is None and len(mask) == 1 and mask[0] == full:
            return np.ones((len(cohort.warps), LANES), bool)
        return check_members(cohort, mask, name)
    return members


def _shuffle_source(mode: str, lane: np.ndarray, delta: np.ndarray,
                    control: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each lane reads, and whether that is in range.   Source: PTX ISA, shfl.sync."""
    clamp, segment = control & 31, control >> 8 & 31
    delta = delta & 31
    top = (lane & segment) | (clamp & ~segment)
    bottom = lane & segment
    if mode == "up":
        source = lane - delta
        valid = source >= top
    elif mode == "down":
        source = lane + delta
        valid = source <= top
    elif mode == "bfly":
        source = lane ^ delta
        valid = source <= top
    else:
        source = bottom | (delta & ~segment)
        valid = source <= top
    return np.where(valid, source, lane), valid


def shuffle(site: Site) -> Step:
    """shfl.sync d|p, a, b, c, members."""
    mode, type_ = site.opcode[2], site.opcode[-1]
    write, write_valid = site.write_pair(site.operands[0], type_, "pred")
    value, delta, control = [site.read(operand, kind) for operand, kind in zip(
        site.operands[1:4], (type_, "u32", "u32"))]
    members = _members(site, 4)

    def step(cohort: Cohort) -> None:
        present = members(cohort)
        source, valid = _shuffle_source(
            mode, np.tile(_LANE, len(cohort.warps)), cohort.by_lane(delta(cohort)).astype(np.int64),
            cohort.by_lane(control(cohort)).astype(np.int64))
        source = source.reshape(-1, LANES)
        if cohort.mask is not None:
            absent = ~np.take_along_axis(present, source, 1) & present
            if absent.any():
                raise SynchronizationError("shfl: a lane reads one that is not active")
        taken = np.take_along_axis(cohort.by_warp(value(cohort)), source, 1)
        write(cohort, taken.ravel())
        write_valid(cohort, valid)
    return step


def _ballot(present: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """A word for each warp with the bits of the lanes that vote for it."""
    weights = np.uint64(1) << _LANE.astype(np.uint64)
    return ((votes & present) * weights).sum(1, dtype=np.uint64).astype(np.uint32)


def vote(site: Site) -> Step:
    """vote.sync: all, any, uni or ballot."""
    mode = site.opcode[2]
    read = site.read(site.operands[1], "pred")
    members = _members(site, 2)
    write = site.write(site.operands[0], "b32" if mode == "ballot" else "pred")

    def step(cohort: Cohort) -> None:
        present = members(cohort)
        votes = cohort.by_warp(read(cohort))
        everyone, anyone = (votes | ~present).all(1), (votes & present).any(1)
        results = {"all": everyone, "any": anyone, "uni": everyone | ~anyone}
        result = _ballot(present, votes) if mode == "ballot" else results[mode]
        write(cohort, np.repeat(result, LANES))
    return step


def _reduction(site: Site) -> tuple[np.ufunc, str]:
    names = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
             "or": np.bitwise_or, "xor": np.bitwise_xor}
    type_ = site.opcode[-1]
    operation = site.opcode[2]
    if type_ == "f32":
        return (np.fmin if operation == "min" else np.fmax), type_
    return names[operation], type_


def reduce(site: Site) -> Step:
    """redux.sync: one value of all lanes of the mask."""
    function, type_ = _reduction(site)
    dtype = dtype_of(type_)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    neutral = {"minimum": limits.max, "maximum": limits.min, "fmin": np.inf, "fmax": -np.inf,
               "bitwise_and": dtype.type(0) if dtype.kind == "f" else ~dtype.type(0)}.get(
                   function.__name__, 0)
    read, write = site.read(site.operands[1], type_), site.write(site.operands[0], type_)
    members = _members(site, 2)
    absolute, keeps_nan = site.has("abs"), site.has("NaN")

    def step(cohort: Cohort) -> None:
        present = members(cohort)
        values = cohort.by_warp(read(cohort))
        if absolute:
            values = np.abs(values)
        result = function.reduce(np.where(present, values, neutral), axis=1)
        if keeps_nan:
            result = np.where((np.isnan(values) & present).any(1), np.nan, result)
        write(cohort, np.repeat(result.astype(dtype), LANES))
    return step


def match(site: Site) -> Step:
    """match.sync: the lanes that have the same value."""
    type_, mode = site.opcode[-1], site.opcode[1]
    write, write_all = site.write_pair(site.operands[0], "b32", "pred")
    read, members = site.read(site.operands[1], type_), _members(site, 2)

    def step(cohort: Cohort) -> None:
        present = members(cohort)
        values = cohort.by_warp(read(cohort))
        same = (values[:, :, None] == values[:, None, :]) & present[:, None, :]
        weights = np.uint64(1) << _LANE.astype(np.uint64)
        words = (same * weights).sum(2, dtype=np.uint64).astype(np.uint32)
        agreed = (same | ~present[:, None, :]).all(2)
        if mode == "all":
            words = np.where(agreed, words, np.uint32(0))
        write(cohort, words.ravel())
        write_all(cohort, agreed.ravel())
    return step


def active_mask(site: Site) -> Step:
    """activemask: the lanes that execute this together."""
    write = site.write(site.operands[0], "b32")

    def step(cohort: Cohort) -> None:
        active = cohort.active_by_warp()
        write(cohort, np.repeat(_ballot(active, active), LANES))
    return step


def elect(site: Site) -> Step:
    """elect.sync d|p, members: p holds in the first lane of the mask only."""
    write, write_leader = site.write_pair(site.operands[0], "b32", "pred")
    members = _members(site, 1)

    def step(cohort: Cohort) -> None:
        leader = members(cohort).argmax(1)
        write(cohort, np.repeat(leader.astype(np.uint32), LANES))
        write_leader(cohort, (leader[:, None] == _LANE).ravel())
    return step


def synchronize(site: Site) -> Step:
    """bar.warp.sync: the lanes of the mask are together."""
    members = _members(site, 0)

    def step(cohort: Cohort) -> None:
        members(cohort)
    return step


def uniform(cohort: Cohort, read: Reader, what: str) -> np.ndarray:
    """One value for each warp.

    Errors: SynchronizationError when the active lanes of a warp disagree.
    """
    value = read(cohort)
    if len(value) == 1:
        return np.repeat(value, len(cohort.warps))
    rows, active = cohort.by_warp(value), cohort.active_by_warp()
    first = rows[np.arange(len(rows)), active.argmax(1)]
    if ((rows != first[:, None]) & active).any():
        raise SynchronizationError(f"{what}: the lanes of a warp give different values",
                                   hint="the operand must be the same in all active lanes")
    return first


TABLE: dict[str, Decoder] = {
    "shfl": shuffle, "vote": vote, "redux": reduce, "match": match, "activemask": active_mask,
    "elect": elect,
}
