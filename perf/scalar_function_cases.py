"""Scalar functions on every element: bn.map, and the same functions in kernels of numba-cuda."""

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


@cuda.jit
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


@cuda.jit
def kepler_of_threads(mean, eccentricity, angle):
    i = cuda.grid(1)
    if i < angle.size:
        angle[i] = anomaly(mean[i], eccentricity[i])


@dataclass(frozen=True)
class Case:
    """Work done by both.

    runs: who -> a function that does it and returns the array that it is in.
    chosen: who -> the tile or block of its fastest kernel.
    """

    runs: Mapping[str, Run]
    chosen: Mapping[str, object]

    def check(self) -> None:
        """Run both.  Errors: AssertionError where one element in 1000 is another one's."""
        first, second = (run().copy_to_host() for run in self.runs.values())
        close = np.isclose(first, second, rtol=1e-4, atol=1e-5)
        assert close.mean() > 0.999, f"{(~close).sum()} of {close.size} elements differ"


def _case(ours: Callable[[object], Run], tiles: tuple, theirs: Callable[[object], Run],
          blocks: tuple) -> Case:
    """The fastest kernel of each, over tiles and blocks."""
    runs, chosen = {}, {}
    for who, make, shapes in ((SUBJECT, ours, tiles), (PEER, theirs, blocks)):
        candidates = {make(shape): shape for shape in shapes}
        runs[who] = fastest(candidates, gpu_timer())
        chosen[who] = candidates[runs[who]]
    return Case(runs, chosen)


def mandelbrot_case() -> Case:
    """A picture of 4096 x 4096 points, at most 256 iterations each."""
    found = {who: cuda.device_array((HEIGHT, WIDTH), np.int32) for who in (SUBJECT, PEER)}

    def ours(tile: tuple[int, int]) -> Run:
        rows, columns = tile
        launch = mandelbrot[bn.cdiv(HEIGHT, rows), bn.cdiv(WIDTH, columns)]
        return partial(_run, launch, (found[SUBJECT],), {"ROWS": rows, "COLUMNS": columns})

    def theirs(block: tuple[int, int]) -> Run:
        rows, columns = block
        grid = bn.cdiv(WIDTH, columns), bn.cdiv(HEIGHT, rows)
        return partial(_run, mandelbrot_of_threads[grid, (columns, rows)], (found[PEER],), {})

    return _case(ours, TILES, theirs, BLOCKS)


def newton_case() -> Case:
    """Kepler's equation for 2**25 bodies of eccentricities up to 0.95, by Newton's method."""
    rng = np.random.default_rng(0)
    mean = cuda.to_device(rng.uniform(-np.pi, np.pi, COUNT).astype(np.float32))
    eccentricity = cuda.to_device(rng.uniform(0, 0.95, COUNT).astype(np.float32))
    found = {who: cuda.device_array(COUNT, np.float32) for who in (SUBJECT, PEER)}

    def ours(size: int) -> Run:
        return partial(_run, kepler[bn.cdiv(COUNT, size)], (mean, eccentricity, found[SUBJECT]),
                       {"SIZE": size})

    def theirs(size: int) -> Run:
        return partial(_run, kepler_of_threads[bn.cdiv(COUNT, size), size],
                       (mean, eccentricity, found[PEER]), {})

    return _case(ours, SIZES, theirs, SIZES)


def _run(launch: Callable, arrays: tuple, named: Mapping[str, int]) -> object:
    """Launch, and return the last array."""
    launch(*arrays, **named)
    return arrays[-1]


CASES: dict[str, Callable[[], Case]] = {"Mandelbrot": mandelbrot_case, "Newton": newton_case}


def cases() -> Iterator[tuple[str, Case]]:
    """The cases, made one after the other."""
    yield from ((name, make()) for name, make in CASES.items())
