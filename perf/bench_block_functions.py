"""Block functions in kernels of numba-cuda next to the same kernels launched alone (GPU).

    pytest perf/bench_block_functions.py               with pytest-benchmark
    python perf/bench_block_functions.py [rounds]      a table

Both take turns; a ratio is the time alone divided by the time in the caller of the same round, so
that 1 is as fast and 0.9 is 11 % slower.  Last, examples/nearest.py, a kernel of numba-cuda that
calls two of them, next to one of threads alone.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from example_kernels import nearest
from measure import CLOCK, Samples, gpu_timer, interleaved, median_ratio
from numba import cuda, float32

import blocknumba as bn

ROUNDS, SAMPLE_SECONDS = 30, 5e-3
BY_BLOCKS, BY_THREADS = "block functions", "threads"
ALONE, CALLED, LINKED = "alone", "in @cuda.jit", "in @cuda.jit, LTO"
# rows and columns of products: a launch of numba-cuda takes some 40 us of the host
SIZE, WIDE = 4096, 16384
ROWS = 1 << 16
NOTHING: dict[str, object] = {}
PROMISED = {"arrays": "global"}  # of arrays as libraries allocate them


@bn.jit
def product(a, b, c, ROWS: bn.constexpr, COLUMNS: bn.constexpr, DEPTH: bn.constexpr):
    rows, columns = bn.block(0, ROWS), bn.block(1, COLUMNS)
    total = bn.zeros((ROWS, COLUMNS), bn.float32)
    for start in bn.range(0, a.shape[1], DEPTH):
        depth = bn.span(start, DEPTH)
        total += a[rows, depth] @ b[depth, columns]
    c[rows, columns] = total


@bn.jit
def softmax(x, y, BLOCK: bn.constexpr):
    row, columns = bn.program_id(0), bn.arange(BLOCK)
    y[row, columns] = bn.softmax(x[row, columns], 0, where=columns < x.shape[1])


@bn.jit
def row_sum(x, sums, BLOCK: bn.constexpr):
    row = bn.program_id(0)
    total = bn.zeros((BLOCK,), bn.float32)
    for columns in bn.spans(x.shape[1], BLOCK):
        total += x[row, columns]
    sums[row] = bn.sum(total, axis=0)


@dataclass(frozen=True)
class Case:
    """A kernel and arrays for it.

    options: of both.   of_function: further options of the block function.
    programs: of the launch, along one or two axes.
    expected: the last array, of all arrays as they are before.   tolerance: of it.
    """

    kernel: bn.Kernel
    constants: dict[str, int]
    options: dict[str, int]
    arrays: tuple[np.ndarray, ...]
    programs: tuple[int, ...]
    expected: Callable[..., np.ndarray]
    tolerance: float
    of_function: dict[str, object]

    def runs(self) -> tuple[dict[str, Callable[[], object]], object]:
        """Who -> a function that launches; and the array that the result will be in."""
        arrays = [cuda.to_device(array) for array in self.arrays]
        runs = {ALONE: lambda: self.kernel[self.programs](
            *arrays, **self.constants, **self.options)}
        for who, link in ((CALLED, "ir"), (LINKED, "ltoir")):
            function = bn.block_function(self.kernel, self.constants, link=link,
                                         **self.options | self.of_function)
            caller = cuda.jit(CALLERS[len(arrays), len(self.programs)](function),
                              lto=link == "ltoir")
            launch = caller[self.programs, function.threads]
            runs[who] = lambda launch=launch: launch(*arrays)
        return runs, arrays[-1]

    def check(self) -> None:
        """Errors: AssertionError for a wrong result."""
        expected = self.expected(*self.arrays)
        runs, result = self.runs()
        for who, run in runs.items():
            result.copy_to_device(np.full_like(expected, np.nan))
            run()
            off = np.abs(result.copy_to_host() - expected).max() / np.abs(expected).max()
            assert off <= self.tolerance, f"{who}: off by {off:.1e}"


def _by_rows(function: Callable) -> Callable:
    def caller(x, y):
        function(cuda.blockIdx.x, x, y)
    return caller


def _by_tiles(function: Callable) -> Callable:
    def caller(a, b, c):
        function(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)
    return caller


CALLERS = {(2, 1): _by_rows, (3, 2): _by_tiles}


def product_case(rows: int, columns: int, depth: int, k: int, size: int = SIZE,
                 of_function: dict[str, object] = NOTHING, **options: int) -> Case:
    """float16 (size, k) @ (k, size) in float32."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32).astype(np.float16)
            for shape in ((size, k), (k, size)))
    return Case(product, {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}, options,
                (a, b, np.zeros((size, size), np.float32)), (size // rows, size // columns),
                lambda a, b, _: a.astype(np.float32) @ b.astype(np.float32), 1e-4,
                of_function)


def rows_case(kernel: bn.Kernel, columns: int, block: int, of_rows: Callable, rows: int = ROWS,
              scalar: bool = False, of_function: dict[str, object] = NOTHING) -> Case:
    """Rows of float32, one block each."""
    x = np.random.default_rng(1).standard_normal((rows, columns), np.float32)
    result = np.zeros(rows if scalar else x.shape, np.float32)
    return Case(kernel, {"BLOCK": block}, {"num_warps": 4}, (x, result), (rows,), of_rows, 1e-5,
                of_function)


def _softmax(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


CASES = {
    "product, tiles 64 x 64, one step of 64": lambda: product_case(64, 64, 64, 64, WIDE,
                                                                   num_warps=4),
    "product, tiles 64 x 64": lambda: product_case(64, 64, 64, 4096, num_warps=4),
    "product, tiles 64 x 64, global": lambda: product_case(64, 64, 64, 4096, num_warps=4,
                                                           of_function=PROMISED),
    "product, tiles 128 x 64": lambda: product_case(128, 64, 64, 4096, num_warps=4),
    "product, tiles 128 x 128": lambda: product_case(128, 128, 64, 4096, num_warps=8),
    "product, tiles 128 x 128, global": lambda: product_case(128, 128, 64, 4096, num_warps=8,
                                                             of_function=PROMISED),
    "product, tiles 128 x 128, 4 warps": lambda: product_case(128, 128, 64, 4096, num_warps=4),
    "product, tiles 128 x 256": lambda: product_case(128, 256, 64, 4096, num_warps=8),
    "softmax of 1000 columns": lambda: rows_case(softmax, 1000, 1024, _softmax),
    "softmax of 1000 columns, global": lambda: rows_case(softmax, 1000, 1024, _softmax,
                                                         of_function=PROMISED),
    "softmax of 1001 columns": lambda: rows_case(softmax, 1001, 1024, _softmax),
    "sum of 4096 columns": lambda: rows_case(
        row_sum, 4096, 1024, lambda x, _: x.sum(1, dtype=np.float64).astype(np.float32),
        scalar=True),
}


@cuda.jit
def nearest_by_threads(queries, keys, found, sums):
    """As nearest.nearest, a thread for each query."""
    query = cuda.grid(1)
    greatest = float32(-np.inf)
    if query < queries.shape[0]:
        for key in range(keys.shape[0]):
            score = float32(0)
            for i in range(keys.shape[1]):
                score += float32(queries[query, i]) * float32(keys[key, i])
            if score > greatest:
                greatest = score
                found[query] = key
        cuda.atomic.add(sums, query // nearest.TILE, greatest)


def nearest_runs(queries: int = 8192, keys: int = 8192, depth: int = 64) -> dict[str, Callable]:
    """Who -> a function that launches, after both have found the same."""
    random = np.random.default_rng(2)
    given = [cuda.to_device(random.integers(-8, 9, (number, depth)).astype(np.float16))
             for number in (queries, keys)]
    results = {who: (cuda.device_array(queries, np.int32),
                     cuda.to_device(np.zeros(queries // nearest.TILE, np.float32)))
               for who in (BY_BLOCKS, BY_THREADS)}
    runs = {BY_BLOCKS: lambda: nearest.launch(*given, *results[BY_BLOCKS]),
            BY_THREADS: lambda: nearest_by_threads[bn.cdiv(queries, nearest.TILE), nearest.TILE](
                *given, *results[BY_THREADS])}
    for run in runs.values():
        run()
    for ours, theirs in zip(results[BY_BLOCKS], results[BY_THREADS]):
        np.testing.assert_array_equal(ours.copy_to_host(), theirs.copy_to_host())
    return runs


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("name", CASES)
def test_block_function(benchmark, name):
    case = CASES[name]()
    case.check()
    CLOCK.replay(benchmark, measured(case, ROUNDS), CALLED)


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
def test_nearest_keys(benchmark):
    CLOCK.replay(benchmark, interleaved(nearest_runs(), gpu_timer(), ROUNDS, 1), BY_BLOCKS)


def measured(case: Case, rounds: int) -> Samples:
    """Seconds of one launch, of everybody in turn."""
    timer, (runs, _) = gpu_timer(), case.runs()
    seconds = timer(runs[ALONE], 10)
    return interleaved(runs, timer, rounds, max(1, round(SAMPLE_SECONDS / seconds)))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{'':52} {ALONE + ', us':>12} " + " ".join(f"{who + ' (quartiles)':>32}"
                                                      for who in (CALLED, LINKED)))
    for name, make in CASES.items():
        case = make()
        case.check()
        samples = measured(case, rounds)
        shown = []
        for who in (CALLED, LINKED):
            ratios = [one / other for one, other in zip(samples[ALONE], samples[who])]
            low, middle, high = statistics.quantiles(ratios, n=4)
            shown.append(f"{f'{middle:.3f} ({low:.3f} to {high:.3f})':>32}")
        print(f"{name:52} {statistics.median(samples[ALONE]) * 1e6:12.1f} " + " ".join(shown))
    samples = interleaved(nearest_runs(), gpu_timer(), rounds, 1)
    print(f"nearest keys, {BY_THREADS} / {BY_BLOCKS}: "
          f"{median_ratio(samples, BY_THREADS, BY_BLOCKS):.1f}")


if __name__ == "__main__":
    main()
