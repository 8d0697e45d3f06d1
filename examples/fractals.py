"""Fractals: functions of one point, with loops as long as the point needs, on tiles of points."""

import math

import numba
import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

ROWS, COLUMNS = 8, 32
ROOTS = tuple((math.cos(angle), math.sin(angle)) for angle in (0, 2 * math.pi / 3, 4 * math.pi / 3))


@numba.njit
def escape(cx, cy, limit):
    """Iterations of z*z + c until |z| > 2, at most limit."""
    x = y = 0.0
    count = 0
    while x * x + y * y <= 4 and count < limit:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        count += 1
    return np.int32(count)


def basin(x, y, limit):
    """The root of z**3 = 1 that Newton's method finds from z, and the steps that it takes."""
    for step in range(limit):
        square_x, square_y = x * x - y * y, 2 * x * y
        size = square_x * square_x + square_y * square_y
        if size == 0:
            break
        # z - (z**3 - 1) / (3 z**2)
        next_x = (2 * x + square_x / size) / 3
        next_y = (2 * y - square_y / size) / 3
        if abs(next_x - x) + abs(next_y - y) < 1e-5:
            for root, (root_x, root_y) in enumerate(ROOTS):
                if abs(x - root_x) + abs(y - root_y) < 1e-2:
                    return np.int32(root), np.int32(step)
        x, y = next_x, next_y
    return np.int32(-1), np.int32(limit)


@bn.jit
def mandelbrot(counts, left, top, pixel, limit, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """counts: (height, width) int32; left, top: of the picture; pixel: its side."""
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    cx = left + c.index.to(bn.float32)[None, :] * pixel
    cy = top + r.index.to(bn.float32)[:, None] * pixel
    counts[r, c] = bn.map(escape, cx, cy, limit)


@bn.jit
def newton(roots, steps, left, top, pixel, limit, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """roots, steps: (height, width) int32."""
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    x = left + c.index.to(bn.float32)[None, :] * pixel
    y = top + r.index.to(bn.float32)[:, None] * pixel
    roots[r, c], steps[r, c] = bn.map(basin, x, y, limit)


@bn.jit
def mandelbrot_pointers(counts, width, height, left, top, pixel, limit, ROWS: tl.constexpr,
                        COLUMNS: tl.constexpr):
    """The same in Triton's dialect, on a picture whose rows lie one after the other."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    cx = left + columns.to(tl.float32)[None, :] * pixel
    cy = top + rows.to(tl.float32)[:, None] * pixel
    inside = (rows[:, None] < height) & (columns[None, :] < width)
    found = tl.map(escape, cx, cy, limit, mask=inside)
    tl.store(counts + rows[:, None] * width + columns[None, :], found, mask=inside)


def grid(shape: tuple[int, int]) -> tuple[int, int]:
    """Programs along each axis."""
    return bn.cdiv(shape[0], ROWS), bn.cdiv(shape[1], COLUMNS)


def points(shape: tuple[int, int], left: float, top: float,
           pixel: float) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the pixels, float32."""
    side, (height, width) = np.float32(pixel), shape
    x = np.float32(left) + np.arange(width, dtype=np.float32) * side
    y = np.float32(top) + np.arange(height, dtype=np.float32) * side
    return np.broadcast_arrays(x[None, :], y[:, None])


def check(library: ArrayLibrary) -> None:
    """Both dialects give what the functions give for each point."""
    shape, limit = (45, 70), 60
    tile = {"ROWS": ROWS, "COLUMNS": COLUMNS}
    place = -2.0, -1.25, 2.5 / shape[0]
    cx, cy = points(shape, *place)
    expected = np.vectorize(lambda x, y: escape.py_func(x, y, limit))(cx, cy)
    for kernel, sizes in ((mandelbrot, ()), (mandelbrot_pointers, shape[::-1])):
        counts = library.array(np.full(shape, -7, np.int32))
        kernel[grid(shape)](counts, *sizes, *place, limit, **tile)
        np.testing.assert_array_equal(library.numpy(counts), expected)
    check_newton(library, shape, limit)


def check_newton(library: ArrayLibrary, shape: tuple[int, int], limit: int) -> None:
    """Each root is found by points near it, and the picture has the symmetry of complex numbers."""
    roots, steps = (library.array(np.full(shape, -7, np.int32)) for _ in range(2))
    pixel = 3 / 64
    newton[grid(shape)](roots, steps, -35 * pixel, -22 * pixel, pixel, limit, ROWS=ROWS,
                        COLUMNS=COLUMNS)
    found, took = library.numpy(roots), library.numpy(steps)
    x, y = points(shape, -35 * pixel, -22 * pixel, pixel)
    for root, (root_x, root_y) in enumerate(ROOTS):
        near = (x - np.float32(root_x)) ** 2 + (y - np.float32(root_y)) ** 2 < 0.1
        assert near.any() and (found[near] == root).all() and (took[near] < 8).all()
    mirrored = np.choose(found[::-1] + 1, (-1, 0, 2, 1))
    assert (found[:45] == mirrored).mean() > 0.99  # ties at the borders may go either way


if __name__ == "__main__":
    run(check)
