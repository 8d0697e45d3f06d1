"""Tiles that the compiler chooses (`bn.auto`) next to the best of a list of each kind.

    python perf/bench_auto.py                    print a table
    python perf/bench_auto.py --output FILE      write it too
    python perf/bench_auto.py --only gemm        some kinds

Besides, what `bn.autotune` takes when it times the choices that the compiler thinks best.
All configurations of a list, at most 48, that compile are timed in turns; the fastest is the peer.
The constants of the model were fitted without the shapes marked "frozen".
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from auto_kernels import (
    add, column_sums, gelu, layernorm, matmul, matmul_batched, softmax, transpose,
)
from example_kernels import attention
from measure import Run, gpu_timer, interleaved, median_ratio, medians

import blocknumba as bn
from blocknumba.errors import BlockError

AUTO, TUNED, BEST = "bn.auto", "autotune", "best of the list"
ROUNDS, REPEATS, FINAL_ROUNDS = 3, 4, 15
FLOAT16, FLOAT32 = torch.float16, torch.float32


@dataclass(frozen=True)
class Case:
    """One kernel on some arrays.

    grid: a function of the constants.   lists: the extents that the peer tries, by name.
    arguments: those before the constants.   constants: those that are not chosen.
    """

    name: str
    kernel: object
    arguments: tuple
    grid: Callable[[dict], tuple]
    lists: dict[str, tuple[int, ...]]
    constants: dict[str, object]

    def launch(self, extents: dict[str, object]) -> Run:
        """A launch with some extents, at the least cost: what is compared are tiles."""
        return self.kernel.bind(self.grid, *self.arguments, **self.constants, **extents)


GEMM = {"BM": (16, 64, 128, 256), "BN": (32, 64, 128, 256), "BK": (32, 64, 128)}
SHAPES = ((4096, 4096, 4096), (2048, 2048, 2048), (512, 8192, 1024), (16, 8192, 8192),
          (1000, 3000, 776), (1024, 1024, 1024))
FROZEN_SHAPES = ((64, 16384, 4096), (8192, 128, 4096), (3072, 768, 6144), (333, 4100, 520))
BATCHED, FROZEN_BATCHED = (64, 512, 512, 512), (24, 1024, 128, 1024)


def cases() -> Iterator[Case]:
    """All cases."""
    for M, N, K in SHAPES + FROZEN_SHAPES:
        mark = " frozen" if (M, N, K) in FROZEN_SHAPES else ""
        yield Case(f"gemm {M} x {N} x {K}{mark}", matmul,
                   (normal(M, K), normal(K, N), normal(M, N)),
                   lambda a, M=M, N=N: (bn.cdiv(M, a["BM"]), bn.cdiv(N, a["BN"])), GEMM, {})
    for B, M, N, K in (BATCHED, FROZEN_BATCHED):
        mark = " frozen" if (B, M, N, K) == FROZEN_BATCHED else ""
        yield Case(f"gemm {B} of {M} x {N} x {K}{mark}", matmul_batched,
                   (normal(B, M, K), normal(B, K, N), normal(B, M, N)),
                   lambda a, B=B, M=M, N=N: (bn.cdiv(M, a["BM"]), bn.cdiv(N, a["BN"]), B), GEMM, {})
    for rows, columns, dtype in ((16384, 1000, FLOAT16), (8192, 4096, FLOAT32)):
        x = normal(rows, columns, dtype=dtype)
        yield Case(f"softmax {rows} x {columns}", softmax, (x, torch.empty_like(x)),
                   lambda a, rows=rows: (bn.cdiv(rows, a["ROWS"]),),
                   {"ROWS": (1, 2, 4, 8, 16, 32)}, {"COLUMNS": bn.next_power_of_2(columns)})
    for rows, columns, dtype in ((8192, 8192, FLOAT16), (30000, 768, FLOAT32)):
        x = normal(rows, columns, dtype=dtype)
        weight, bias = (normal(columns, dtype=dtype) for _ in range(2))
        yield Case(f"layernorm {rows} x {columns}", layernorm,
                   (x, weight, bias, torch.empty_like(x), 1e-5),
                   lambda a, rows=rows: (bn.cdiv(rows, a["ROWS"]),),
                   {"ROWS": (1, 2, 4, 8), "BLOCK": (256, 512, 1024, 2048, 4096, 8192)}, {})
    for kernel, count, dtype in ((add, 2, FLOAT32), (gelu, 1, FLOAT16)):
        arrays = [normal(1 << 26, dtype=dtype) for _ in range(count)]
        yield Case(kernel.py_func.__name__, kernel, (*arrays, torch.empty_like(arrays[0])),
                   lambda a: bn.cdiv(1 << 26, a["BLOCK"]),
                   {"BLOCK": (128, 256, 512, 1024, 2048, 4096, 8192)}, {})
    for length, D, causal in ((4096, 128, False), (2048, 64, True)):
        q, k, v = (normal(4, 16, length, D) for _ in range(3))
        yield Case(f"attention {length} x {D}{', causal' * causal}", attention.attention,
                   (q, k, v, torch.empty_like(q), D**-0.5),
                   lambda a, length=length: (bn.cdiv(length, a["BM"]), 16, 4),
                   {"BM": (64, 128, 256), "BN": (32, 64, 128, 256)}, {"CAUSAL": causal, "D": D})
    for size, dtype in ((8192, FLOAT16), (6000, FLOAT32)):
        x = normal(size, size, dtype=dtype)
        yield Case(f"transpose {size}, {8 * x.itemsize} bits", transpose, (x, torch.empty_like(x)),
                   lambda a, size=size: (bn.cdiv(size, a["BM"]), bn.cdiv(size, a["BN"])),
                   {"BM": (16, 32, 64, 128, 256), "BN": (16, 32, 64, 128, 256)}, {})
    for rows, columns in ((1024, 32768), (16384, 4096)):
        x = normal(rows, columns, dtype=FLOAT32)
        yield Case(f"column sums {rows} x {columns}", column_sums,
                   (x, torch.empty(columns, device="cuda")),
                   lambda a, columns=columns: (bn.cdiv(columns, a["COLUMNS"]),),
                   {"ROWS": (8, 16, 32, 64, 128, 256), "COLUMNS": (16, 32, 64, 128, 256)}, {})


def normal(*shape: int, dtype: torch.dtype = FLOAT16) -> torch.Tensor:
    """Random numbers."""
    return torch.randn(*shape, device="cuda").to(dtype)


def compiled(case: Case) -> dict[str, Run]:
    """The configurations of a case's list that compile, by their names."""
    found = {}
    choices = [dict(zip(case.lists, extents))
               for extents in itertools.product(*case.lists.values())]

    def compile_one(extents: dict[str, int]) -> str:
        torch.cuda.set_device(0)
        try:
            case.kernel.warmup(*case.arguments, grid=case.grid, **case.constants, **extents)
        except BlockError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = list(pool.map(compile_one, choices))
    for extents, error in zip(choices, errors):
        if not error:
            found[", ".join(f"{name}={size}" for name, size in extents.items())] = (
                case.launch(extents))
    return found


def few_best_timed(case: Case) -> tuple[Run, dict[str, int]]:
    """A launch with the fastest of the choices that autotune times, and that choice."""
    config = bn.Config(dict.fromkeys(case.lists, bn.auto))
    kernel = bn.autotune([config], cache_results=False, warmup=2, rep=10)(case.kernel)
    kernel[case.grid](*case.arguments, **case.constants)
    extents = kernel.best_config.kwargs
    return case.launch(extents), extents


def measured(case: Case) -> dict[str, object]:
    """The choice, the best of the list, and the ratio of their times."""
    timer = gpu_timer()
    auto = case.launch(dict.fromkeys(case.lists, bn.auto))
    choice = case.kernel.tiles.latest
    runs = compiled(case)
    times = medians(interleaved(runs, timer, ROUNDS, REPEATS))
    best = min(times, key=times.get)
    tuned, extents = few_best_timed(case)
    samples = interleaved({AUTO: auto, TUNED: tuned, BEST: runs[best]}, timer, FINAL_ROUNDS,
                          REPEATS)
    chosen = ", ".join(f"{name}={size}" for name, size in choice.constants().items())
    return {"chosen": chosen, "best": best, "configurations": len(runs),
            "us": {who: seconds * 1e6 for who, seconds in medians(samples).items()},
            "ratio": median_ratio(samples, BEST, AUTO),
            "tuned": extents, "tuned ratio": median_ratio(samples, BEST, TUNED),
            "listed us": {name: round(seconds * 1e6, 2) for name, seconds in sorted(
                times.items(), key=lambda item: item[1])},
            "estimated": dict(zip(map(str, choice.extents[:5]), choice.estimates))}


def main() -> None:
    """Print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--details", action="store_true")
    given = parser.parse_args()
    found = {}
    for case in cases():
        if given.only not in case.name:
            continue
        row = found[case.name] = measured(case)
        print(f"{case.name:32} {row['ratio']:.3f}  tuned {row['tuned ratio']:.3f}  "
              f"{row['chosen']:24} best {row['best']}", flush=True)
        if given.details:
            print("   ", dict(itertools.islice(row["listed us"].items(), 6)))
            print("   ", row["us"], row["estimated"])
    for key in ("ratio", "tuned ratio"):
        ratios = [row[key] for row in found.values()]
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"{key}: geometric mean {mean:.3f}, least {min(ratios):.3f}")
    if given.output is not None:
        about = {"device": bn.current_device().name, "torch": torch.__version__}
        given.output.write_text(json.dumps({**about, "cases": found}, indent=1))


if __name__ == "__main__":
    main()
