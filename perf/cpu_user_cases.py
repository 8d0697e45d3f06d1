"""Cases of compare_cpu.py: the kernels of cpu_user_kernels.py."""

from __future__ import annotations

from collections.abc import Iterator

import cpu_user_kernels as ours
import cpu_user_peers as peers
import numpy as np
from cpu_case import Case, wide
from numpy.lib.stride_tricks import sliding_window_view

import blocknumba as bn

LENGTH, ROWS, COLUMNS = 4_000_000, 4096, 1000


def array_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Rows, columns, elements, neighbours."""
    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape, np.float32)

    x = normal(ROWS, COLUMNS)
    yield "argmax of rows", Case(
        lambda out: ours.argmax_of_rows[ROWS](x, out, B=1024), peers.argmax_of_rows, (x,),
        lambda: x.argmax(1), lambda: x.argmax(1), (np.empty(ROWS, np.int64),), 0)
    yield "prefix sums", Case(
        lambda out: ours.prefix_sums[ROWS](x, out, B=1024), peers.prefix_sums, (x,),
        lambda: x.cumsum(1), lambda: wide(x)[0].cumsum(1), (np.empty_like(x),), 1e-3)

    def quantised() -> tuple[np.ndarray, np.ndarray]:
        scales = abs(x).max(1) / np.float32(127)
        return np.rint(x / scales[:, None]).astype(np.int8), scales
    yield "int8 quantise", Case(
        lambda out, scales: ours.quantise[ROWS](x, out, scales, B=1024), peers.quantise, (x,),
        quantised, quantised, (np.empty(x.shape, np.int8), np.empty(ROWS, np.float32)), 1)
    rows = generator.standard_normal((ROWS, COLUMNS))
    yield "variance, float64", Case(
        lambda out: ours.variance[ROWS](rows, out, B=1024), peers.variance, (rows,),
        lambda: rows.var(1), lambda: rows.var(1), (np.empty(ROWS),))
    gamma, beta = normal(2, 256)
    batch = normal(8192, 256)

    def normed(batch: np.ndarray) -> np.ndarray:
        centred = batch - batch.mean(0)
        return centred / np.sqrt((centred * centred).mean(0) + 1e-5) * gamma + beta
    yield "batch norm", Case(
        lambda out: ours.batch_norm[2](batch, gamma, beta, out, R=64, C=128), peers.batch_norm,
        (batch, gamma, beta), lambda: normed(batch), lambda: normed(*wide(batch)),
        (np.empty_like(batch),), 1e-4)
    long, other = normal(2, LENGTH)
    yield "moving average", Case(
        lambda out: ours.moving_average[bn.cdiv(out.size, 4096)](long, out, W=8, B=4096),
        peers.moving_average, (long,), lambda: sliding_window_view(long, 8).mean(1),
        lambda: sliding_window_view(*wide(long), 8).mean(1), (np.empty(LENGTH - 7, np.float32),))

    def clip() -> np.ndarray:
        z = np.where(long > other, long * np.float32(2) - other, other * np.float32(0.5))
        return np.clip(np.where(abs(z) < np.float32(0.1), np.float32(0), z), -1, 1)
    yield "where and clip", Case(
        lambda out: ours.clipped[bn.cdiv(LENGTH, 4096)](long, other, out, B=4096), peers.clipped,
        (long, other), clip, clip, (np.empty_like(long),))
    image, weights = normal(1028, 1028), normal(5, 5)
    yield "5x5 convolution", Case(
        lambda out: ours.convolution[64, 4](image, weights, out, R=16, C=256), peers.convolution,
        (image, weights),
        lambda: np.einsum("rcab,ab->rc", sliding_window_view(image, (5, 5)), weights),
        lambda: np.einsum("rcab,ab->rc", sliding_window_view(*wide(image), (5, 5)), weights),
        (np.empty((1024, 1024), np.float32),), 1e-4)
    alive = np.zeros((2048, 2048), np.uint8)
    alive[3:-3, 3:-3] = generator.random((2042, 2042)) < 0.3

    def stepped() -> np.ndarray:
        padded = np.pad(alive, 1)
        around = sum(padded[a:a + 2048, b:b + 2048] for a in range(3) for b in range(3)) - alive
        return ((around == 3) | ((alive == 1) & (around == 2))).astype(np.uint8)
    yield "game of life", Case(
        lambda out: ours.life[128, 8](alive, out, R=16, C=256), peers.life, (alive,), stepped,
        stepped, (np.empty_like(alive),), 0)
    square = normal(2000, 2000)
    yield "transpose", Case(
        lambda out: ours.transpose[63, 63](square, out, B=32), peers.transpose, (square,),
        lambda: np.ascontiguousarray(square.T), lambda: square.T, (np.empty_like(square),), 0)
    short = normal(ROWS, 256)
    yield "sorted rows", Case(
        lambda out: ours.sorted_rows[ROWS // 4](short, out, R=4, B=256), peers.sorted_rows,
        (short,), lambda: np.sort(short, 1), lambda: np.sort(short, 1), (np.empty_like(short),), 0)


def point_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Points, pairs, positions, indices."""
    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape, np.float32)

    first, second = normal(2, 1000, 3)

    def distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.sqrt(((first[:, None] - second[None])**2).sum(2))
    yield "pairwise distances", Case(
        lambda out: ours.pairwise[32, 16](first, second, out, M=32, N=64), peers.pairwise,
        (first, second), lambda: distances(first, second),
        lambda: distances(*wide(first, second)), (np.empty((1000, 1000), np.float32),))
    points, centres = normal(100_000, 4), normal(16, 4)

    def nearest() -> np.ndarray:
        return ((points[:, None] - centres[None])**2).sum(2).argmin(1)
    yield "nearest centre", Case(
        lambda out: ours.nearest[bn.cdiv(len(points), 256)](points, centres, out, B=256, K=16),
        peers.nearest, (points, centres), nearest, nearest, (np.empty(len(points), np.int32),), 0,
        unlike=1e-3)
    a, b = normal(2, 2_000_000, 2)
    x, y = a.view(np.complex64)[:, 0], b.view(np.complex64)[:, 0]
    yield "complex products", Case(
        lambda out: ours.complex_products[bn.cdiv(len(a), 2048)](a, b, out, B=2048),
        peers.complex_products, (a, b), lambda: x * y,
        lambda: (x.astype(complex) * y).view(float).reshape(-1, 2), (np.empty_like(a),))
    cloud, matrix = normal(1_000_000, 3), normal(3, 3)
    yield "rotated points", Case(
        lambda out: ours.rotate[bn.cdiv(len(cloud), 1024)](cloud, matrix, out, B=1024),
        peers.rotate, (cloud, matrix), lambda: cloud @ matrix.T,
        lambda: np.matmul(*wide(cloud, matrix.T)), (np.empty_like(cloud),))
    table, index = normal(10_000, 128), generator.integers(0, 10_000, 1 << 16)
    yield "embedding", Case(
        lambda out: ours.embedding[len(index)](table, index, out, B=128), peers.embedding,
        (table, index), lambda: table[index], lambda: table[index],
        (np.empty((len(index), 128), np.float32),), 0)
    here, there = generator.uniform(-1.5, 1.5, (2, 2, 500_000))

    def haversine() -> np.ndarray:
        a = np.sin((there[0] - here[0]) / 2)**2 + np.cos(here[0]) * np.cos(there[0]) * np.sin(
            (there[1] - here[1]) / 2)**2
        return 12742.0 * np.arcsin(np.sqrt(a))
    yield "haversine, float64", Case(
        lambda out: ours.haversine[bn.cdiv(out.size, 1024)](here, there, out, B=1024),
        peers.haversine, (here, there), haversine, haversine, (np.empty(500_000),), 1e-9)
    bodies = normal(2000, 3)

    def gravity(bodies: np.ndarray) -> np.ndarray:
        apart = bodies[None] - bodies[:, None]
        square = (apart * apart).sum(2) + bodies.dtype.type(0.01)
        return (apart / (np.sqrt(square) * square)[..., None]).sum(1)
    yield "gravity", Case(
        lambda out: ours.gravity[bn.cdiv(len(bodies), 32)](bodies, out, M=32, N=128),
        peers.gravity, (bodies,), lambda: gravity(bodies), lambda: gravity(*wide(bodies)),
        (np.empty_like(bodies),), 1e-2)
