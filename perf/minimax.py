"""Polynomials of least maximum error, by the exchange algorithm of Remez on a dense grid.

Needs mpmath.  Coefficients are rounded all at once, and one after another from the constant up,
where the others are fitted again to what each rounding left: the better polynomial is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.prec = 240
GRID = 401  # odd: no point in the middle
ROUNDED = {"float32": np.float32, "float64": np.float64}


@dataclass(frozen=True)
class Fit:
    """A polynomial and its largest weighted error.

    coefficients: the constant first.
    """

    coefficients: tuple[float, ...]
    error: float


def fit(function: Callable, interval: tuple, degree: int, dtype: str, *,
        weight: Callable = lambda x: mp.mpf(1)) -> Fit:
    """The polynomial that minimises max |weight(x) * (function(x) - polynomial(x))|."""
    low, high = map(mp.mpf, interval)

    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / GRID)
            for i in range(GRID + 1)]
    wanted = [mp.mpf(function(x)) for x in grid]
    weights = [mp.mpf(weight(x)) for x in grid]
    at_once = [float(ROUNDED[dtype](float(c))) for c in _exchange(grid, wanted, weights, degree)]
    in_turn = _rounded_in_turn(grid, wanted, weights, degree, ROUNDED[dtype])

    def error(coefficients: list[float]) -> mp.mpf:
        return max(abs(w * (y - mp.polyval(coefficients[::-1], x)))
                   for x, y, w in zip(grid, wanted, weights))

    best = min(at_once, in_turn, key=error)
    return Fit(tuple(best), float(error(best)))


def _rounded_in_turn(grid: list, wanted: list, weights: list, degree: int,
                     rounded: Callable) -> list[float]:
    """Coefficients of a short format, each the best for those that were rounded before it."""
    known = []
    for power in range(degree + 1):
        constant = float(rounded(float(_exchange(grid, wanted, weights, degree - power)[0])))
        known.append(constant)
        # what is left is a polynomial again, of the other coefficients: divided by x, it alternates
        points = [(x, (y - constant) / x, w * abs(x))
                  for x, y, w in zip(grid, wanted, weights) if x]
        grid, wanted, weights = map(list, zip(*points))
    return known


def _exchange(grid: list, wanted: list, weights: list, degree: int) -> list:
    """The coefficients of the polynomial that is best for weighted values."""
    negligible = max(weights) * mp.mpf("1e-12")
    usable = [i for i, w in enumerate(weights) if w > negligible]
    points = [usable[round(k * (len(usable) - 1) / (degree + 1))] for k in range(degree + 2)]
    for _ in range(60):
        rows = [[grid[i] ** k for k in range(degree + 1)] + [(-1) ** row / weights[i]]
                for row, i in enumerate(points)]
        *free, level = mp.lu_solve(mp.matrix(rows), mp.matrix([wanted[i] for i in points]))
        errors = {i: weights[i] * (wanted[i] - mp.polyval(free[::-1], grid[i])) for i in usable}
        peaks = _alternation(usable, errors, degree + 2)
        if peaks == points or max(map(abs, errors.values())) <= abs(level) * mp.mpf("1.001"):
            break
        points = peaks
    return free


def _alternation(usable: list[int], errors: dict, count: int) -> list[int]:
    """Places of `count` extreme errors of alternating sign."""
    peaks: list[int] = []
    for i in usable:
        if peaks and (errors[i] > 0) == (errors[peaks[-1]] > 0):
            if abs(errors[i]) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:  # give up the less of the ends, or the least pair
        if len(peaks) == count + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
            continue
        least = min(range(len(peaks) - 1), key=lambda k: max(abs(errors[peaks[k]]),
                                                             abs(errors[peaks[k + 1]])))
        del peaks[least:least + 2]
    while len(peaks) < count:  # an error that does not alternate: spread what is missing
        gaps = [(b - a, a, b) for a, b in zip([usable[0]] + peaks, peaks + [usable[-1]])]
        _, a, b = max(gaps)
        peaks = sorted({*peaks, (a + b) // 2})
    return peaks
