"""A simulation in one `@njit` function: a thousand steps of the heat equation.

The function launches a block kernel again and again, without going back to Python.
"""

import numpy as np
from numba import njit

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import NUMPY, ArrayLibrary, run

ROWS, COLUMNS = 16, 64


@bn.jit
def step(now, then, rate, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """then = now + rate * (the sum of the four neighbours - 4 * now); outside it is 0.

    now, then: (height, width) float32 or float64.
    """
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    here = now[r, c]
    around = now[r + -1, c] + now[r + 1, c] + now[r, c + -1] + now[r, c + 1]
    then[r, c] = here + rate * (around - 4 * here)


@bn.jit
def step_pointers(now, then, height, width, rate, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The same in Triton's dialect."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    here = now + i * width + j
    rows, columns = i < height, j < width
    centre = tl.load(here, mask=rows & columns, other=0)
    around = tl.load(here - width, mask=(i > 0) & (i <= height) & columns, other=0)
    around += tl.load(here + width, mask=(i < height - 1) & columns, other=0)
    around += tl.load(here - 1, mask=(j > 0) & (j <= width) & rows, other=0)
    around += tl.load(here + 1, mask=(j < width - 1) & rows, other=0)
    tl.store(then + i * width + j, centre + rate * (around - 4 * centre), mask=rows & columns)


@njit
def simulate(now, then, rate, steps):
    """Run steps; afterwards now holds the result if their number is even, then if it is odd.

    now, then: NumPy arrays, or bn.device() of arrays on a GPU.
    """
    grid = bn.cdiv(now.shape[0], ROWS), bn.cdiv(now.shape[1], COLUMNS)
    for _ in range(steps // 2):
        step[grid](now, then, rate, ROWS, COLUMNS)
        step[grid](then, now, rate, ROWS, COLUMNS)
    if steps % 2:
        step[grid](now, then, rate, ROWS, COLUMNS)


@njit
def simulate_pointers(now, then, rate, steps):
    """The same with Triton's dialect."""
    height, width = now.shape
    grid = bn.cdiv(height, ROWS), bn.cdiv(width, COLUMNS)
    for _ in range(steps // 2):
        step_pointers[grid](now, then, height, width, rate, ROWS, COLUMNS)
        step_pointers[grid](then, now, height, width, rate, ROWS, COLUMNS)
    if steps % 2:
        step_pointers[grid](now, then, height, width, rate, ROWS, COLUMNS)


def expected(now: np.ndarray, rate: float, steps: int) -> np.ndarray:
    """The result by NumPy, in float64."""
    now = now.astype(np.float64)
    for _ in range(steps):
        wide = np.pad(now, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        now = now + rate * (around - 4 * now)
    return now


def check(library: ArrayLibrary) -> None:
    """Both dialects give NumPy's result after a thousand steps."""
    start = np.random.default_rng(0).random((50, 130), np.float32)
    for simulation in (simulate, simulate_pointers):
        now, then = library.array(start), library.array(np.full_like(start, np.nan))
        views = (now, then) if library is NUMPY else (bn.device(now), bn.device(then))
        simulation(*views, 0.2, 1000)
        np.testing.assert_allclose(library.numpy(now), expected(start, 0.2, 1000), rtol=1e-4,
                                   atol=1e-12)


if __name__ == "__main__":
    run(check)
