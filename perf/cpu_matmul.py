"""Products on the CPU device next to NumPy's OpenBLAS: python perf/cpu_matmul.py --threads 1

Both take turns in one process, with the same number of threads; each process measures all sizes.
A ratio is the peer's time over ours in one round; the table has its median and quartiles over all
rounds of all processes.  The peer runs the kernel that is fastest on this machine, and is named.
On a machine that others use, --processor-time counts the seconds of the process, not of the wall.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import Run, host_timer, interleaved

import blocknumba as bn

SIZES = (256, 512, 1024, 2048)
# (BM, BN, BK); of 256 rows, several, so that all threads have work
TILES = {("float32", 256): (128, 128, 256), ("float64", 256): (128, 128, 256)}
LARGE = {"float32": (256, 512, 128), "float64": (512, 256, 128)}
KERNELS = ("", "HASWELL", "SKYLAKEX")  # of OpenBLAS; the first is its own choice
SECONDS = 0.5  # of measuring one size in one process, about
BATCH = 4096  # of small products


@bn.jit(device="cpu")
def matmul(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN), out.dtype)
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


@bn.jit(device="cpu")
def small_products(x, w, out, B: bn.constexpr, N: bn.constexpr):
    """out[i] = x[i] @ w[i] of matrices of at most N x N; B of them a program."""
    b, r = bn.block(0, B), bn.span(0, N)
    out[b, r, r] = x[b, r, r] @ w[b, r, r]


def core_name() -> str:
    """The kernel that NumPy's OpenBLAS runs."""
    folder = Path(np.__file__).parents[1] / "numpy.libs"
    for path in folder.glob("libscipy_openblas64_*"):
        name = ctypes.CDLL(str(path)).scipy_openblas_get_corename64_
        name.restype = ctypes.c_char_p
        return name().decode()
    return "unknown"


def operands(dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Random arrays."""
    generator = np.random.default_rng()
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def square(dtype: str, size: int, order: str) -> dict[str, Run]:
    """Runs of a product of size x size matrices; order: of both operands in memory."""
    x, w = (np.asarray(a, order=order) for a in operands(dtype, (size, size), (size, size)))
    ours, theirs = np.full((2, size, size), np.nan, dtype)
    rows, columns, depth = TILES.get((dtype, size), LARGE[dtype])
    grid = bn.cdiv(size, rows), bn.cdiv(size, columns)

    def run_ours() -> None:
        matmul[grid](x, w, ours, BM=rows, BN=columns, BK=depth)

    run_ours()
    theirs[...] = x @ w
    bound = (size + 2) * np.finfo(dtype).eps * (np.abs(x) @ np.abs(w))
    assert (np.abs(ours - theirs) <= 2 * bound).all()
    return {"ours": run_ours, "NumPy": lambda: np.matmul(x, w, out=theirs)}


def small(dtype: str, size: int) -> dict[str, Run]:
    """Runs of many products of size x size matrices, by masks of the next power of two."""
    x, w = operands(dtype, *[(BATCH, size, size)] * 2)
    ours, theirs = np.full((2, BATCH, size, size), np.nan, dtype)
    extent, batch = bn.next_power_of_2(size), 16

    def run_ours() -> None:
        small_products[BATCH // batch](x, w, ours, B=batch, N=extent)

    run_ours()
    np.testing.assert_allclose(ours, x @ w, rtol=1e-3, atol=1e-3)
    return {"ours": run_ours, "NumPy": lambda: np.matmul(x, w, out=theirs)}


def processor_timer(run: Run, repeats: int) -> float:
    """Seconds that one run takes of all processors together."""
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


def measure(timer: Callable[[Run, int], float]) -> dict[str, list[list[float]]]:
    """Seconds of each round, (ours, NumPy), by the name of a row."""
    rows = {f"{dtype} {size} {order}": square(dtype, size, order)
            for dtype in LARGE for size in SIZES for order in ("C", "F")
            if order == "C" or size == 1024}
    rows |= {f"{dtype} {BATCH} x {size}": small(dtype, size)
             for dtype in LARGE for size in (5, 16)}
    found = {}
    for name, runs in rows.items():
        rounds = max(5, min(60, int(SECONDS / host_timer(runs["NumPy"], 2))))
        samples = interleaved(runs, timer, rounds, repeats=1)
        found[name] = [list(pair) for pair in zip(samples["ours"], samples["NumPy"], strict=True)]
    return found


def child(threads: int, kernel: str, *arguments: str) -> str:
    """What this script prints in a process of its own."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive",
                   "OPENBLAS_THREAD_TIMEOUT": "4",  # sleep once the work is done
                   "NUMBA_NUM_THREADS": str(threads), "OPENBLAS_CORETYPE": kernel}
    return subprocess.run([sys.executable, __file__, *arguments], env=environment, check=True,
                          capture_output=True, text=True).stdout


def speed_of_numpy() -> float:
    """Seconds of NumPy's product of 1024 x 1024 float32."""
    x, w = operands("float32", (1024, 1024), (1024, 1024))
    return min(host_timer(lambda: x @ w, 1) for _ in range(8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--in-this-process", choices=("measure", "numpy"))
    given = parser.parse_args()
    timer = processor_timer if given.processor_time else host_timer
    if given.in_this_process == "measure":
        print(json.dumps(measure(timer)))
        return
    if given.in_this_process:
        print(json.dumps(speed_of_numpy()))
        return
    options = ["--in-this-process=measure", *["--processor-time"][:given.processor_time]]
    seconds = {kernel: json.loads(child(given.threads, kernel, "--in-this-process=numpy"))
               for kernel in KERNELS}
    best = min(seconds, key=seconds.get)
    os.environ["OPENBLAS_CORETYPE"] = best
    print(f"NumPy {np.__version__}, OpenBLAS kernel {best or core_name()}, "
          f"{given.threads} threads, {given.processes} processes\n")
    print("| product | NumPy / ours | quartiles | ours, GFLOP/s |\n|---|---|---|---|")
    runs = [json.loads(child(given.threads, best, *options))
            for _ in range(given.processes)]
    for name in runs[0]:
        pairs = [pair for run in runs for pair in run[name]]
        first, middle, last = statistics.quantiles([peer / own for own, peer in pairs], n=4)
        seconds_of_ours = statistics.median(own for own, _ in pairs)
        print(f"| {name} | {middle:.2f} | {first:.2f}-{last:.2f} | "
              f"{operations(name) / seconds_of_ours / 1e9:.1f} |")


def operations(row: str) -> float:
    """Floating-point operations of a row."""
    _, first, *rest = row.split()
    if rest[0] == "x":
        return 2.0 * int(first) * int(rest[1])**3
    return 2.0 * int(first)**3


if __name__ == "__main__":
    main()
