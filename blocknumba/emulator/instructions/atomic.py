"""atom and red: read, change and write one element, one lane after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.access import atomic_targets, check_alignment
from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.decoding import Decoder, Reader, Site, Step
from blocknumba.emulator.instructions.floating import maximum, minimum
from blocknumba.emulator.instructions.load_store import space_of, vector_width
from blocknumba.emulator.memory import Bytes
from blocknumba.emulator.syntax import Sink
from blocknumba.emulator.values import FLOATS, dtype_of

Change = Callable[..., np.ndarray]  # (old, operand, ...) -> new


def _increment(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _decrement(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


_CHANGES: dict[str, Change] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "exch": lambda old, new: new, "inc": _increment, "dec": _decrement,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
}
_EXTREMA: dict[str, tuple[Change, Change]] = {
    "min": (np.minimum, minimum), "max": (np.maximum, maximum),
}


def _change(site: Site, scalar: str) -> Change:
    for modifier in site.opcode:
        if modifier in _EXTREMA:
            return _EXTREMA[modifier][scalar in FLOATS]
        if modifier in _CHANGES:
            return _CHANGES[modifier]
    raise site.refuse("given no operation, accepted {}", ", ".join((*_CHANGES, *_EXTREMA)))


def _passes(offsets: np.ndarray) -> list[np.ndarray]:
    """The lanes in groups without two at the same offset, in the order of the lanes."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if len(begins) == len(offsets):
        return [np.arange(len(offsets))]
    lengths = np.diff(np.append(begins, len(ordered)))
    rank = np.arange(len(ordered)) - np.repeat(begins, lengths)
    return [np.sort(order[rank == turn]) for turn in range(int(lengths.max()))]


def _apply(target: Bytes, offsets: np.ndarray, dtype: np.dtype, change: Change,
           values: list[np.ndarray]) -> np.ndarray:
    """Change one element for each lane; the old values."""
    size = dtype.itemsize
    bits = np.dtype(f"u{size}")
    old = np.empty(len(offsets), bits)
    for lanes in _passes(offsets):
        old[lanes] = target.gather(offsets[lanes], size)
        new = change(old[lanes].view(dtype), *[value[lanes] for value in values])
        target.scatter(offsets[lanes], size, np.ascontiguousarray(new).view(bits))
    return old


def _step(site: Site, result: object, address_operand: object, operands: list) -> Step:
    type_ = site.opcode[-1] if site.opcode[-1] not in ("noftz",) else site.opcode[-2]
    count = vector_width(site)
    scalar = type_.removesuffix("x2")
    lanes_of_type = 2 if scalar != type_ else 1
    size = dtype_of(type_).itemsize
    dtype = dtype_of(scalar)
    change = _change(site, scalar)
    space, pc = space_of(site, address_operand), site.pc
    address = site.address(address_operand)
    reads = [[site.read(item, type_) for item in site.items(operand)] for operand in operands]
    writes = [site.write(item, f"b{8 * size}") for item in site.items(result)] or []
    wanted = not isinstance(result, Sink)

    def step(cohort: Cohort) -> None:
        at = address(cohort)
        check_alignment(cohort, at, size * count, space)
        old = [np.zeros(cohort.lanes, f"u{size}") for _ in range(count)]
        for target, offsets, chosen in atomic_targets(cohort, space, at, size * count, pc):
            for index in range(count):
                values = [_of_lanes(cohort, read[index], chosen, dtype) for read in reads]
                found = _apply(target, _halves(offsets + index * size, lanes_of_type, dtype),
                               dtype, change, values)
                old[index][chosen] = np.ascontiguousarray(found).view(f"u{size}")
        if wanted:
            for write, value in zip(writes, old):
                write(cohort, value)
    return step


def _of_lanes(cohort: Cohort, read: Reader, chosen: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The operand of the chosen lanes, its halves one after the other when it is packed."""
    return np.ascontiguousarray(cohort.by_lane(read(cohort))[chosen]).view(dtype)


def _halves(offsets: np.ndarray, halves: int, dtype: np.dtype) -> np.ndarray:
    if halves == 1:
        return offsets
    return (offsets[:, None] + dtype.itemsize * np.arange(halves)).ravel()


def atomic(site: Site) -> Step:
    """atom d, [a], b{, c}."""
    operands = [operand for operand in site.operands[2:4]]
    if not site.has("cas"):
        operands = operands[:1]
    return _step(site, site.operands[0], site.operands[1], operands)


def reduction(site: Site) -> Step:
    """red [a], b."""
    return _step(site, Sink(), site.operands[0], [site.operands[1]])


TABLE: dict[str, Decoder] = {"atom": atomic, "red": reduction}
