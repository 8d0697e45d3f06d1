"""Measure the example matmul with many tiles, next to what the compiler chooses and to cuBLAS.

    python perf/sweep_tiles.py             f16, several shapes
    python perf/sweep_tiles.py bf16 2048   bf16 of 2048^3
"""

from __future__ import annotations

import itertools
import sys

import torch
from example_kernels import matmul
from measure import Run, median_ratio, medians
from product_cases import Case, giving, poisoned, random_generator

from blocknumba.errors import BlockError

SHAPES = ((1024,) * 3, (2048,) * 3, (4096,) * 3, (8192, 8192, 1024), (16, 8192, 8192))
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
ROWS, COLUMNS, DEPTHS_BYTES = (64, 128, 256), (64, 128, 256), (128, 256)
CUBLAS, CHOSEN = "cuBLAS", "chosen"


def tiles(itemsize: int) -> list[dict[str, int]]:
    """Tiles of at most as many sums as two warpgroups have registers for."""
    sizes = itertools.product(ROWS, COLUMNS, DEPTHS_BYTES)
    return [{"BM": rows, "BN": columns, "BK": depth // itemsize}
            for rows, columns, depth in sizes if rows * columns <= 128 * 256]


def case(M: int, N: int, K: int, dtype: torch.dtype) -> Case:
    """One shape with every tile that compiles, and cuBLAS."""
    generator = random_generator()
    a = torch.randn(M, K, device="cuda", generator=generator).to(dtype)
    b = torch.randn(N, K, device="cuda", generator=generator).to(dtype).T
    c = poisoned(M, N, dtype=dtype)
    grid = matmul.programs_of(M, N)
    runs: dict[str, Run] = {CHOSEN: giving(c, matmul.matmul.bind(grid, a, b, c))}
    for tile in tiles(dtype.itemsize):
        try:
            runs[str(tile)] = giving(c, matmul.matmul.bind(grid, a, b, c, **tile))
        except BlockError as error:
            print(f"{tile}: {error}")
    runs[CUBLAS] = giving(c, lambda: torch.matmul(a, b, out=c))
    return Case(2 * M * N * K, runs, lambda: (c, c), 0.0)


def main() -> None:
    """Print, of every shape, tiles from the fastest to the slowest, with their rate by cuBLAS's."""
    name, *sizes = sys.argv[1:] or ["f16"]
    for shape in [(int(size),) * 3 for size in sizes] or SHAPES:
        measured = case(*shape, DTYPES[name]).samples()
        print(f"\n{name} {shape}, chosen: {matmul.matmul.tiles.latest}")
        for who, seconds in sorted(medians(measured).items(), key=lambda item: item[1]):
            print(f"{seconds * 1e6:9.1f} us  {median_ratio(measured, CUBLAS, who):.3f}  {who}",
                  flush=True)


if __name__ == "__main__":
    main()
