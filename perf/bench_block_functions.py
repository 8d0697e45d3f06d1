"""Block functions in kernels of numba-cuda next to the same kernels launched alone (GPU).

    python perf/bench_block_functions.py [rounds]

Both take turns; a ratio is the time alone divided by the time in the caller of the same round, so
that 1 is as fast and 0.9 is 11 % slower.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from measure import Samples, gpu_timer, interleaved
from numba import cuda

import blocknumba as bn

ROUNDS, SAMPLE_SECONDS = 30, 5e-3
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

    options: of both.   of_function: further options of the block function.   programs: of the launch, along one or two axes.
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
            launch = caller[self.programs, function.threads, 0,
                            self.of_function.get("shared_bytes", 0)]
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
                 of_function: dict[str, object] = PROMISED, **options: int) -> Case:
    """float16 (size, k) @ (k, size) in float32."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32).astype(np.float16)
            for shape in ((size, k), (k, size)))
    return Case(product, {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}, options,
                (a, b, np.zeros((size, size), np.float32)), (size // rows, size // columns),
                lambda a, b, _: a.astype(np.float32) @ b.astype(np.float32), 1e-4,
                of_function)


def rows_case(kernel: bn.Kernel, columns: int, block: int, of_rows: Callable, rows: int = ROWS,
              scalar: bool = False, of_function: dict[str, object] = PROMISED) -> Case:
    """Rows of float32, one block each."""
    x = np.random.default_rng(1).standard_normal((rows, columns), np.float32)
    result = np.zeros(rows if scalar else x.shape, np.float32)
    return Case(kernel, {"BLOCK": block}, {"num_warps": 4}, (x, result), (rows,), of_rows, 1e-5,
                of_function)


def _softmax(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _granted(kib: int, stages: int) -> dict[str, object]:
    """A promise of arrays and of dynamic shared memory."""
    return PROMISED | {"shared_bytes": kib * 1024, "num_stages": stages}


CASES = {
    "product, tiles 64 x 64, one step of 64": lambda: product_case(64, 64, 64, 64, WIDE,
                                                                   num_warps=4),
    "product, tiles 64 x 64, any arrays": lambda: product_case(64, 64, 64, 4096, num_warps=4,
                                                               of_function=NOTHING),
    "product, tiles 64 x 64": lambda: product_case(64, 64, 64, 4096, num_warps=4),
    "the same, 3 stages of 64, 48 KiB granted": lambda: product_case(
        64, 64, 64, 4096, num_warps=4, of_function=_granted(48, 3)),
    "the same, 4 stages of 64, 64 KiB granted": lambda: product_case(
        64, 64, 64, 4096, num_warps=4, of_function=_granted(64, 4)),
    "product, tiles 128 x 64": lambda: product_case(128, 64, 64, 4096, num_warps=4),
    "the same, 3 stages, 72 KiB granted": lambda: product_case(
        128, 64, 64, 4096, num_warps=4, of_function=_granted(72, 3)),
    "product, tiles 128 x 128, any arrays": lambda: product_case(
        128, 128, 64, 4096, num_warps=8, of_function=NOTHING),
    "product, tiles 128 x 128": lambda: product_case(128, 128, 64, 4096, num_warps=8),
    "the same, 3 stages, 98 KiB granted": lambda: product_case(
        128, 128, 64, 4096, num_warps=8, of_function=_granted(98, 3)),
    "the same, 4 stages, 130 KiB granted": lambda: product_case(
        128, 128, 64, 4096, num_warps=8, of_function=_granted(130, 4)),
    "softmax of 1000 columns": lambda: rows_case(softmax, 1000, 1024, _softmax),
    "softmax of 1000 columns, any arrays": lambda: rows_case(softmax, 1000, 1024, _softmax,
                                                             of_function=NOTHING),
    "softmax of 1001 columns, any arrays": lambda: rows_case(softmax, 1001, 1024, _softmax,
                                                             of_function=NOTHING),
    "sum of 4096 columns": lambda: rows_case(
        row_sum, 4096, 1024, lambda x, _: x.sum(1, dtype=np.float64).astype(np.float32),
        scalar=True),
}


def measured(case: Case, rounds: int) -> Samples:
    """Seconds of one launch, of everybody in turn."""
    timer, (runs, _) = gpu_timer(), case.runs()
    seconds = timer(runs[ALONE], 10)
    return interleaved(runs, timer, rounds, max(1, round(SAMPLE_SECONDS / seconds)))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{'':40} {ALONE + ', us':>12} " + " ".join(f"{who + ' (quartiles)':>32}"
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
        print(f"{name:40} {statistics.median(samples[ALONE]) * 1e6:12.1f} " + " ".join(shown))


if __name__ == "__main__":
    main()
