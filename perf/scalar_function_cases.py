"""Scalar functions on every element: bn.map, and the same functions in kernels of numba-cuda.

numba-cuda contracts a multiplication and an addition into one instruction, unless told otherwise;
bn.map rounds twice, as NumPy does, unless the kernel has fastmath=True.  So each has two kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from measure import Run, fastest, gpu_timer
from numba import cuda

import blocknumba as bn

SUBJECT, PEER = "blocknumba", "numba-cuda"
FAST = ", fastmath"
EXACT_OR_FAST = {"": False, FAST: True}
# what numba-cuda needs to compute in float32; bn.map takes plain numbers too
ZERO, ONE, TWO, FOUR, CLOSE = map(np.float32, (0, 1, 2, 4, 1e-6))
WIDTH, HEIGHT, LIMIT = 4096, 4096, 256
LEFT, TOP, PIXEL = np.float32(-2), np.float32(-1.25), np.float32(2.5 / HEIGHT)
COUNT = 2**25
TILES = ((1, 256), (4, 64), (8, 32), (8, 64), (16, 16), (2, 128))
BLOCKS = ((1, 256), (4, 64), (8, 32), (16, 16), (8, 64), (1, 128))
SIZES = (128, 256, 512, 1024)


@cuda.jit(device=True)
def escape(cx, cy, limit):
    """Iterations of z*z + c until |z| > 2, at most limit."""
    x = y = ZERO
    count = 0
    while x * x + y * y <= FOUR and count < limit:
        x, y = x * x - y * y + cx, TWO * x * y + cy
        count += 1
    return count


@cuda.jit(device=True)
def anomaly(mean, eccentricity):
    """The eccentric anomaly E with E - e sin(E) = M, by Newton's method: Kepler's equation."""
    angle = mean
    for _ in range(50):
        error = angle - eccentricity * math.sin(angle) - mean
        step = error / (ONE - eccentricity * math.cos(angle))
        angle -= step
        if abs(step) < CLOSE:
            break
    return angle


@bn.jit
def mandelbrot(counts, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    cx = LEFT + c.index.to(bn.float32)[None, :] * PIXEL
    cy = TOP + r.index.to(bn.float32)[:, None] * PIXEL
    counts[r, c] = bn.map(escape, cx, cy, LIMIT)


def mandelbrot_of_threads(counts):
    column, row = cuda.grid(2)
    if row < counts.shape[0] and column < counts.shape[1]:
        cx = LEFT + np.float32(column) * PIXEL
        cy = TOP + np.float32(row) * PIXEL
        counts[row, column] = escape(cx, cy, LIMIT)


@bn.jit
def kepler(mean, eccentricity, angle, SIZE: bn.constexpr):
    r = bn.block(0, SIZE)
    angle[r] = bn.map(anomaly, mean[r], eccentricity[r])


def kepler_of_threads(mean, eccentricity, angle):
    i = cuda.grid(1)
    if i < angle.size:
        angle[i] = anomaly(mean[i], eccentricity[i])


OF_THREADS = {(function, fast): cuda.jit(fastmath=fast)(function)
              for function in (mandelbrot_of_threads, kepler_of_threads)
              for fast in EXACT_OR_FAST.values()}


@dataclass(frozen=True)
class Case:
    """Work done by all.

    runs: who -> a function that does it and returns the array that it is in.
    chosen: who -> the tile or block of its fastest kernel.
    """

    runs: Mapping[str, Run]
    chosen: Mapping[str, object]

    def check(self) -> None:
        """Run all.  Errors: AssertionError where one element in 50 is another one's.

        Near the border of the set, how a product is rounded changes the count.
        """
        first, *others = (run().copy_to_host() for run in self.runs.values())
        for other in others:
            close = np.isclose(first, other, rtol=1e-4, atol=1e-5)
            assert close.mean() > 0.98, f"{(~close).sum()} of {close.size} elements differ"


def _case(ours: Callable[[object, bool], Run], tiles: tuple,
          theirs: Callable[[object, bool], Run], blocks: tuple) -> Case:
    """The fastest kernel of each, over tiles and blocks."""
    runs, chosen = {}, {}
    for name, make, shapes in ((SUBJECT, ours, tiles), (PEER, theirs, blocks)):
        for suffix, fast in EXACT_OR_FAST.items():
            candidates = {make(shape, fast): shape for shape in shapes}
            run = runs[name + suffix] = fastest(candidates, gpu_timer())
            chosen[name + suffix] = candidates[run]
    return Case(runs, chosen)


def mandelbrot_case() -> Case:
    """A picture of 4096 x 4096 points, at most 256 iterations each."""
    found = {(who, fast): cuda.device_array((HEIGHT, WIDTH), np.int32)
             for who in (SUBJECT, PEER) for fast in EXACT_OR_FAST.values()}

    def ours(tile: tuple[int, int], fast: bool) -> Run:
        rows, columns = tile
        launch = mandelbrot[bn.cdiv(HEIGHT, rows), bn.cdiv(WIDTH, columns)]
        return partial(_run, launch, (found[SUBJECT, fast],),
                       {"ROWS": rows, "COLUMNS": columns, "fastmath": fast})

    def theirs(block: tuple[int, int], fast: bool) -> Run:
        rows, columns = block
        grid = bn.cdiv(WIDTH, columns), bn.cdiv(HEIGHT, rows)
        launch = OF_THREADS[mandelbrot_of_threads, fast][grid, (columns, rows)]
        return partial(_run, launch, (found[PEER, fast],), {})

    return _case(ours, TILES, theirs, BLOCKS)


def newton_case() -> Case:
    """Kepler's equation for 2**25 bodies of eccentricities up to 0.95, by Newton's method."""
    rng = np.random.default_rng(0)
    mean = cuda.to_device(rng.uniform(-np.pi, np.pi, COUNT).astype(np.float32))
    eccentricity = cuda.to_device(rng.uniform(0, 0.95, COUNT).astype(np.float32))
    found = {(who, fast): cuda.device_array(COUNT, np.float32)
             for who in (SUBJECT, PEER) for fast in EXACT_OR_FAST.values()}

    def ours(size: int, fast: bool) -> Run:
        return partial(_run, kepler[bn.cdiv(COUNT, size)],
                       (mean, eccentricity, found[SUBJECT, fast]), {"SIZE": size, "fastmath": fast})

    def theirs(size: int, fast: bool) -> Run:
        launch = OF_THREADS[kepler_of_threads, fast][bn.cdiv(COUNT, size), size]
        return partial(_run, launch, (mean, eccentricity, found[PEER, fast]), {})

    return _case(ours, SIZES, theirs, SIZES)


def _run(launch: Callable, arrays: tuple, named: Mapping[str, object]) -> object:
    """Launch, and return the last array."""
    launch(*arrays, **named)
    return arrays[-1]


CASES: dict[str, Callable[[], Case]] = {"Mandelbrot": mandelbrot_case, "Newton": newton_case}


def cases() -> Iterator[tuple[str, Case]]:
    """The cases, made one after the other."""
    yield from ((name, make()) for name, make in CASES.items())
