"""The work of a program for every candidate, from the tile IR of a few.

The tile IR is made for one choice of the extents, and for as many others as there are extents, each
with one of them doubled.  Every number of the work then is that of the first, times a power of each
extent:

    BM, BN, BK        2, 8, 32       4, 8, 32       2, 16, 32       2, 8, 64
    load (BM, BK)     2 x 32         4 x 32         2 x 32          2 x 64
    iterations        128            128            128             64

The numbers of all candidates are evaluated at once, as arrays.

A power of iterations is a whole number.  The last tile along an axis of an array counts as one,
however little of it is inside: loops over tiles have as many iterations as if the array ended with
a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from blocknumba.tile_ir.analysis.work import Loop, Task, Work

NEARLY = 0.2  # off a whole power: loops that begin at another place in each program are
# Extents of the first probe: their doubles are equal to none of them.  Small, as a probe that
# covers an array hides how the iterations along it depend on the extent.
FIRST, RATIO = 2, 4


def probes(count: int) -> list[tuple[int, ...]]:
    """The choices of so many extents that the tile IR is made for."""
    first = [FIRST * RATIO**number for number in range(count)]
    return [tuple(extent << (number == doubled) for number, extent in enumerate(first))
            for doubled in (-1, *range(count))]


def scaled(works: Sequence[Work], candidates: np.ndarray) -> Work | None:
    """The work of all candidates, whose numbers are arrays; None if the tile IR of the probes
    differs in more than its numbers.

    works: of the probes.   candidates: (number of candidates, number of extents).
    """
    first = works[0]
    if any(_structure(work) != _structure(first) for work in works):
        return None
    numbers = np.array([list(_numbers(work)) for work in works])
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.log2(numbers[1:] / numbers[0])
    powers[~np.isfinite(powers)] = 0  # of 0, or of infinity
    whole = np.round(powers)
    powers = np.where(np.abs(powers - whole) < NEARLY, whole, powers)
    extents = np.array(probes(candidates.shape[1])[0])
    for column in _counts(first, numbers.shape[1]):
        powers[:, column] = whole[:, column]
    found = numbers[0] * 2.0 ** (np.log2(candidates / extents) @ powers)
    found *= _whole_tiles(first, powers, found, numbers[0])
    rows = iter(found.T)
    return _rebuilt(first, lambda _: next(rows))


def _counts(work: Work, size: int) -> list[int]:
    """The columns of iterations, of so many columns."""
    columns = iter(range(size))
    loops = _rebuilt(work, lambda _: next(columns)).loops
    return [column for loop in loops for column in (loop.trips, loop.most)]


def _whole_tiles(work: Work, powers: np.ndarray, found: np.ndarray,
                 probed: np.ndarray) -> np.ndarray:
    """Factors of the numbers of all candidates: those of loops over tiles of which the last one
    goes beyond the array.

    powers: (extents, numbers).   found: (candidates, numbers), without the factors.
    probed: the numbers of the first probe, whose iterations have been counted.
    """
    columns = iter(range(found.shape[1]))
    numbered = _rebuilt(work, lambda _: next(columns))
    padded = np.ones((len(found), len(powers)))  # by the array, along the axes of each extent
    for task in numbered.of("load", "store"):
        for size, limit in zip(task.shape, task.limits):
            factors = _padded(found, size, limit) / _padded(probed, size, limit)
            padded = np.where(powers[:, size] == 1, np.maximum(padded, factors[:, None]), padded)
    factors = np.ones_like(found)
    for column in _counts(work, found.shape[1]):
        factors[:, column] = np.where(powers[:, column] == -1, padded, 1).prod(axis=1)
    return factors


def _padded(numbers: np.ndarray, size: int, limit: int) -> np.ndarray:
    """Extent of all tiles along an axis by that of the array.   size, limit: columns."""
    tile, whole = numbers[..., size], np.maximum(numbers[..., limit], 1)  # of an empty array too
    whole = np.where(np.isfinite(whole), whole, tile)  # of an axis whose end is not known
    return np.ceil(whole / tile) * tile / whole


def _structure(work: Work) -> tuple:
    """All that is not a number."""
    blank = _rebuilt(work, lambda _: 0.0)
    return blank.tasks, blank.loops, blank.products


def _numbers(work: Work) -> Iterator[float]:
    """All numbers of a work, in the order in which _rebuilt replaces them."""
    found: list[float] = []
    _rebuilt(work, lambda number: found.append(number) or number)
    return iter(found)


def _rebuilt(work: Work, function: Callable[[float], object]) -> Work:
    """A work with every number replaced by function(number)."""
    def task(old: Task) -> Task:
        return replace(old, shape=tuple(map(function, old.shape)), share=function(old.share),
                       limits=tuple(map(function, old.limits)))

    return Work(tuple(map(task, work.tasks)), tuple(
        Loop(old.parent, function(old.trips), function(old.most)) for old in work.loops),
        work.products.rebuilt(function))
