"""Kernels on the CPU beside NumPy and Numba, interleaved.

    python perf/compare_cpu.py --rounds 20 --json perf/results/cpu.json
    taskset -c 0,1 python perf/compare_cpu.py --only histogram

A ratio is the peer's time by ours, of one round; the table has its quartiles.  Results are compared
with NumPy in float64 first.  Numba's loops are compiled with and without fastmath, and the faster
one counts.  The peers' threads are told to sleep once their work is done: those that wait awake
take a processor of who is next.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

# read when the libraries are loaded
os.environ |= {"OPENBLAS_THREAD_TIMEOUT": "4", "OMP_WAIT_POLICY": "passive"}

import cpu_kernels as ours  # noqa: E402
import cpu_peers as peers  # noqa: E402
import numba  # noqa: E402
import numpy as np  # noqa: E402
from cpu_case import Case, Run, wide  # noqa: E402
from cpu_later_cases import later_cases  # noqa: E402
from cpu_peers import OfNumPy  # noqa: E402
from cpu_user_cases import array_cases, point_cases  # noqa: E402

import blocknumba as bn  # noqa: E402

ROWS, COLUMNS, LENGTH, PIXELS = 4096, 1024, 1 << 22, 2048
CAP = 8.0  # of a ratio in the means


def row_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Norms of rows, sums of columns."""
    x = generator.standard_normal((ROWS, COLUMNS), np.float32) * 3
    weight, bias = generator.standard_normal((2, COLUMNS), np.float32)
    out, sums = np.empty_like(x), np.empty(COLUMNS, np.float32)
    yield "softmax", Case(
        lambda out: ours.softmax[ROWS](x, out, B=1024), peers.softmax, (x,),
        lambda: OfNumPy.softmax(x), lambda: OfNumPy.softmax(*wide(x)), (out,))
    yield "layernorm", Case(
        lambda out: ours.layernorm[ROWS](x, weight, bias, out, B=1024), peers.layernorm,
        (x, weight, bias), lambda: OfNumPy.layernorm(x, weight, bias),
        lambda: OfNumPy.layernorm(*wide(x, weight, bias)), (out,))
    yield "RMS norm", Case(
        lambda out: ours.rms_norm[ROWS](x, weight, out, B=1024), peers.rms_norm, (x, weight),
        lambda: OfNumPy.rms_norm(x, weight), lambda: OfNumPy.rms_norm(*wide(x, weight)), (out,))
    yield "column sums", Case(
        lambda out: ours.column_sums[COLUMNS // 512](x, out, ROWS=64, B=512), peers.column_sums,
        (x,), lambda: x.sum(axis=0), lambda: wide(x)[0].sum(axis=0), (sums,), 1e-3)


def element_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Each element for itself."""
    x, y = (generator.random(4 * LENGTH, np.float32) for _ in range(2))
    large = np.empty_like(x)
    yield "vector add", Case(
        lambda out: ours.add[bn.cdiv(x.size, 8192)](x, y, out, B=8192), peers.add, (x, y),
        lambda: np.add(x, y, out=large), lambda: np.add(*wide(x, y)), (large,))
    v = generator.standard_normal(LENGTH, np.float32) * 3
    yield "gelu", Case(
        lambda out: ours.gelu[bn.cdiv(v.size, 4096)](v, out, B=4096), peers.gelu, (v,),
        lambda: OfNumPy.gelu(v), lambda: OfNumPy.gelu(*wide(v)), (np.empty_like(v),))
    s, k, t = (generator.uniform(low, high, LENGTH // 4).astype(np.float32)
               for low, high in ((5, 30), (1, 100), (0.25, 10)))
    rates = np.float32(0.02), np.float32(0.3)
    yield "Black-Scholes", Case(
        lambda call, put: ours.black_scholes[bn.cdiv(s.size, 1024)](
            s, k, t, call, put, *rates, B=1024), peers.black_scholes, (s, k, t),
        lambda: OfNumPy.black_scholes(s, k, t, *rates),
        lambda: OfNumPy.black_scholes(*wide(s, k, t), *rates),
        (np.empty_like(s), np.empty_like(s)), 5e-5, rates)


def picture_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Neighbours, pictures."""
    shape = PIXELS, PIXELS
    heat, rate = generator.random(shape, np.float32), np.float32(0.2)
    grid = bn.cdiv(PIXELS, 16), bn.cdiv(PIXELS, 256)
    yield "heat step", Case(
        lambda out: ours.heat_step[grid](heat, out, rate, ROWS=16, COLUMNS=256), peers.heat_step,
        (heat,), lambda: OfNumPy.heat_step(heat, rate),
        lambda: OfNumPy.heat_step(*wide(heat), rate), (np.empty_like(heat),), after=(rate,))
    image = generator.integers(0, 256, shape, np.uint8)
    yield "3x3 median", Case(
        lambda out: ours.median[grid](image, out, ROWS=16, COLUMNS=256), peers.median, (image,),
        lambda: OfNumPy.median(image), lambda: OfNumPy.median(image),
        (np.empty_like(image),), 0, inside=(slice(1, -1), slice(1, -1)))
    area, limit = (512, 512), 100
    window = np.float32(-2), np.float32(-1), np.float32(1 / 256)
    yield "Mandelbrot", Case(
        lambda out: ours.mandelbrot[area[1] // 64, area[0]](out, *window, LIMIT=limit, B=64),
        peers.mandelbrot, (), lambda: OfNumPy.mandelbrot(area, *window, limit),
        lambda: OfNumPy.mandelbrot(area, *window, limit),
        (np.empty(area, np.int32),), 0, (*window, limit), unlike=0.01)
    rgb = generator.integers(0, 256, (*shape, 3), np.uint8)
    yield "RGB to gray", Case(
        lambda out: ours.gray[grid](rgb, out, ROWS=16, COLUMNS=256), peers.gray, (rgb,),
        lambda: OfNumPy.gray(rgb), lambda: rgb @ np.array([0.299, 0.587, 0.114]),
        (np.empty(shape, np.uint8),), 1.001)


def irregular_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Counters, indices from memory, small matrices."""
    numbers = generator.integers(0, 200, 2 * LENGTH).astype(np.uint8)
    counts = np.zeros(256, np.int32)

    def counted(counts: np.ndarray) -> None:
        counts[:] = 0
        ours.histogram[16](numbers, counts, B=4096, BINS=256)
    yield "histogram", Case(
        counted, peers.histogram, (numbers,), lambda: np.bincount(numbers, minlength=256),
        lambda: np.bincount(numbers, minlength=256), (counts,), 0)
    rows, width = LENGTH // 64, 1 << 16
    starts = np.zeros(rows + 1, np.int32)
    starts[1:] = np.cumsum(generator.integers(1, 64, rows))
    columns = generator.integers(0, width, starts[-1], np.int32)
    values = generator.standard_normal(starts[-1], np.float32)
    x = generator.standard_normal(width, np.float32)
    yield "CSR product", Case(
        lambda out: ours.csr_product[rows](starts, columns, values, x, out, B=16),
        peers.csr_product, (starts, columns, values, x),
        lambda: OfNumPy.csr_product(starts, columns, values, x),
        lambda: OfNumPy.csr_product(starts, columns, *wide(values, x)),
        (np.empty(rows, np.float32),), 1e-4)
    a, b = generator.standard_normal((2, LENGTH // 32, 5, 5), np.float32)
    yield "5x5 products", Case(
        lambda out: ours.small_products[bn.cdiv(len(a), 16)](a, b, out, B=16, N=8),
        peers.small_products, (a, b), lambda: a @ b, lambda: np.matmul(*wide(a, b)),
        (np.empty_like(a),))


def check(title: str, who: str, case: Case, run: Callable[..., object]) -> None:
    """Compare a run's outputs, which are poisoned first, with the exact results."""
    for output in case.outputs:
        output.view(np.uint8)[...] = 0x7F
    if case.peer is peers.histogram:
        case.outputs[0][:] = 0
    run()
    expected = case.exact()
    expected = expected if isinstance(expected, tuple) else (expected,)
    for output, exact in zip(case.outputs, expected, strict=True):
        found = output[case.inside] if case.inside != (Ellipsis,) else output
        if who == "fastmath" and case.unlike:
            assert (found != exact).mean() < case.unlike, f"{title}, {who}"
            continue
        np.testing.assert_allclose(found.astype(np.float64), exact, rtol=case.tolerance,
                                   atol=case.tolerance, err_msg=f"{title}, {who}")


def measure(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round, interleaved; the first round is not counted.

    Each runs once more before it is timed, so that each finds its own threads awake and its own
    memory in the caches; else the one that comes after NumPy pays for it.
    """
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            run()
            start = time.perf_counter()
            run()
            found[name].append((time.perf_counter() - start) * 1e3)
    return {name: times[1:] for name, times in found.items()}


def runs_of(title: str, case: Case) -> dict[str, Run]:
    """Ours, NumPy and Numba with and without fastmath; all but NumPy are checked."""
    runs: dict[str, Run] = {"ours": lambda: case.kernel(*case.outputs), "numpy": case.numpy}
    for name, fast in (("plain", False), ("fastmath", True)):
        loop = numba.njit(parallel=True, fastmath=fast)(case.peer)
        arguments = *case.inputs, *case.outputs, *case.after
        runs[name] = lambda loop=loop, arguments=arguments: loop(*arguments)
        check(title, name, case, runs[name])
    check(title, "ours", case, runs["ours"])
    return runs


def ratios_of(times: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Quartiles of NumPy by ours and of Numba, the faster of its two, by ours."""
    fast = min(("plain", "fastmath"), key=lambda name: np.median(times[name]))
    return {name: np.percentile(np.divide(times[peer], times["ours"]), (25, 50, 75)).round(
        2).tolist() for name, peer in (("numpy", "numpy"), ("numba", fast))}


def mean(results: Mapping[str, dict], peer: str) -> float:
    """The geometric mean of the medians, each at most CAP; without the vector add."""
    medians = [min(CAP, found["ratios"][peer][1]) for title, found in results.items()
               if title != "vector add"]
    return float(np.exp(np.mean(np.log(medians))))


def main() -> None:
    """Measure, print a table, write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="titles, or parts of them")
    given = parser.parse_args()
    results: dict[str, dict] = {}
    print("| case | ours, ms | NumPy / ours | Numba / ours |\n|---|---|---|---|")
    for family in (element_cases, row_cases, picture_cases, irregular_cases,
                   array_cases, point_cases, later_cases):
        for title, case in family(np.random.default_rng(0)):
            if given.only and not any(part in title for part in given.only):
                continue
            times = measure(runs_of(title, case), given.rounds)
            ratios = ratios_of(times)
            results[title] = {"ms": times, "ratios": ratios}
            print(f"| {title} | {np.median(times['ours']):.2f} | {ratios['numpy']} | "
                  f"{ratios['numba']} |", flush=True)
    if any(title != "vector add" for title in results):
        print(f"geometric means: {mean(results, 'numpy'):.2f} of NumPy, "
              f"{mean(results, 'numba'):.2f} of Numba")
    if given.json:
        given.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
