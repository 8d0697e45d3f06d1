"""Choices of tiles: the candidates, their estimates, and what was chosen."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# extents that are tried, by how many are chosen together: at most 500 candidates
_RANGES = {1: (1, 16384), 2: (1, 8192), 3: (16, 1024), 4: (16, 128)}
MAX_EXTENTS = len(_RANGES)
KEPT = 16  # of the best, in a choice


@dataclass(frozen=True, slots=True)
class Choice:
    """Tiles in the order of their estimated times, the best first.

    names: of the constants that are extents.
    extents: of the best KEPT candidates.
    estimates: of the same, in a unit of the device's.
    count: of all candidates that were ranked.
    """

    names: tuple[str, ...]
    extents: tuple[tuple[int, ...], ...]
    estimates: tuple[float, ...]
    count: int

    def constants(self, rank: int = 0) -> dict[str, int]:
        """The constants of a candidate by name, the best for 0."""
        return dict(zip(self.names, self.extents[rank]))

    def starting_with(self, rank: int) -> Choice:
        """The choice without the candidates before one."""
        return Choice(self.names, self.extents[rank:], self.estimates[rank:], self.count)

    def __str__(self) -> str:
        told = f"{_shown(self.constants())}, of {self.count} candidates"
        if len(self.extents) < 2:
            return told
        ratio = self.estimates[1] / self.estimates[0]
        return f"{told}; next: {_shown(self.constants(1))}, estimated {ratio:.2f} times as long"

    def to_json(self) -> bytes:
        """For the disk."""
        return json.dumps([self.names, self.extents, self.estimates, self.count]).encode()

    @staticmethod
    def from_json(content: bytes) -> Choice:
        """The choice that to_json wrote."""
        names, extents, estimates, count = json.loads(content)
        return Choice(tuple(names), tuple(map(tuple, extents)), tuple(estimates), count)


def candidates(count: int) -> np.ndarray:
    """All choices of so many extents: (number of choices, count), powers of two."""
    low, high = _RANGES[count]
    one = [1 << bits for bits in range(low.bit_length() - 1, high.bit_length())]
    return np.array(list(itertools.product(one, repeat=count)))


def coarse_candidates(count: int) -> np.ndarray:
    """Fewer of them, for kernels whose code differs from one choice to the other."""
    every = candidates(count)
    middle = np.log2(every).sum(axis=1)
    wanted = np.quantile(middle, np.linspace(0.2, 0.9, 8))
    near = [np.argsort(np.abs(middle - target), kind="stable")[:4] for target in wanted]
    return every[np.unique(np.concatenate(near))]


def ranked(names: Sequence[str], found: np.ndarray, estimates: np.ndarray) -> Choice:
    """The choice among candidates with estimates; those that are not finite are impossible."""
    order = np.argsort(estimates, kind="stable")
    order = order[np.isfinite(estimates[order])]
    return Choice(tuple(names), tuple(tuple(map(int, found[index])) for index in order[:KEPT]),
                  tuple(float(estimates[index]) for index in order[:KEPT]), len(found))


def bucket(extent: int) -> int:
    """Extents of one bucket have one choice: three leading bits, rounded up."""
    shift = max(extent.bit_length() - 3, 0)
    return -(-extent >> shift) << shift


def bucketed(value: object) -> int:
    """An int in its bucket; 0 for a float, which says nothing about sizes."""
    return bucket(int(value)) if isinstance(value, (int, np.integer)) and value > 0 else 0


def _shown(constants: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in constants.items())
