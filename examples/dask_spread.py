"""A kernel on the chunks of a Dask array: how much the neighbourhood of every element varies.

Chunks are NumPy arrays, or CuPy arrays where there is a GPU.  `overlap` gives each chunk a border of
its neighbours' elements; the kernel runs on it wherever Dask wants, in threads, in processes of this
machine or on other machines.  Compiled code is kept on disk, where the processes share it.

    python examples/dask_spread.py                the table of one worker and two
"""

import os
import statistics
import time

import dask
import dask.array as da
import numpy as np

import blocknumba as bn

REACH = 3  # elements on each side
SIDE = 2 * REACH + 1


@bn.jit
def neighbourhood_spread(x, out, REACH: bn.constexpr, BM: bn.constexpr, BN: bn.constexpr):
    """out = standard deviation of the (2 REACH + 1)**2 elements around each element of x.

    out has REACH elements less on every side.
    """
    m, n = bn.block(0, BM), bn.block(1, BN)
    count = (2 * REACH + 1) ** 2
    middle = x[m + REACH, n + REACH]
    sums, squares = bn.zeros((BM, BN)), bn.zeros((BM, BN))
    for i in bn.static_range(2 * REACH + 1):
        for j in bn.static_range(2 * REACH + 1):
            off = x[m + i, n + j] - middle  # small numbers: their squares lose nothing
            sums += off
            squares += off * off
    mean = sums / count
    out[m, n] = bn.sqrt(bn.maximum(squares / count - mean * mean, 0))


def spread_of_chunk(chunk):
    """The result for a chunk with borders: (m, n) float32 -> (m - 2 REACH, n - 2 REACH)."""
    rows, columns = (size - 2 * REACH for size in chunk.shape)
    out = np.empty_like(chunk, shape=(rows, columns))  # of the chunk's own library
    neighbourhood_spread[bn.cdiv(rows, 16), bn.cdiv(columns, 128)](
        chunk, out, REACH=REACH, BM=16, BN=128)
    return out


def spread(x: da.Array) -> da.Array:
    """The spread around each element; at the rim, elements are repeated: (m, n) float32."""
    with_borders = da.overlap.overlap(x, depth=REACH, boundary="nearest")
    inner = tuple(tuple(size - 2 * REACH for size in sizes) for sizes in with_borders.chunks)
    return with_borders.map_blocks(spread_of_chunk, chunks=inner, dtype=x.dtype, meta=x._meta)


def exact_spread(x: np.ndarray) -> np.ndarray:
    """The same by NumPy, in float64."""
    wide = np.pad(x.astype(np.float64), REACH, "edge")
    windows = np.lib.stride_tricks.sliding_window_view(wide, (SIDE, SIDE))
    return windows.std(axis=(-2, -1))


def check(found: np.ndarray, x: np.ndarray) -> None:
    """found is right, up to roundings: deviations are of the size of the numbers' differences."""
    np.testing.assert_allclose(found, exact_spread(x), rtol=1e-4, atol=1e-4 * np.ptp(x))


def seconds(x: da.Array, runs: int = 5) -> float:
    """Median time of a sum over all results, which leaves them where they are."""
    total = spread(x).sum()
    total.compute()  # each worker loads the kernel
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        total.compute()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Check, in threads and in two worker processes; and time one worker and two."""
    from dask.distributed import Client, LocalCluster  # here: Dask alone does without

    x = np.random.default_rng().standard_normal((600, 1000)).astype(np.float32)
    chunks = da.from_array(x, chunks=(256, 400))
    check(spread(chunks).compute(scheduler="threads"), x)
    print("dask_spread: threads: equal to NumPy")
    # a worker's launches use one thread: Dask runs a task per thread itself
    dask.config.set({"distributed.nanny.pre-spawn-environ.NUMBA_NUM_THREADS": "1"})
    times = {}
    for workers in (1, 2):
        with (LocalCluster(n_workers=workers, threads_per_worker=1,
                           dashboard_address=None) as local, Client(local)):
            check(spread(chunks).compute(), x)
            print(f"dask_spread: {workers} workers: equal to NumPy")
            large = da.random.default_rng(0).standard_normal((8000, 8000), dtype=np.float32,
                                                             chunks=(1000, 8000)).persist()
            times[workers] = seconds(large)
    print(f"8000 x 8000 on {os.cpu_count()} processors: one worker {times[1] * 1e3:.0f} ms, two "
          f"{times[2] * 1e3:.0f} ms, {times[1] / times[2]:.2f} times as fast")


if __name__ == "__main__":
    main()
