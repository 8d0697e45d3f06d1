"""Errors and speed of the CPU's mathematical functions, in one thread.

    python perf/math_functions.py errors            # float32: exp of every float, others of 10**8
    python perf/math_functions.py throughput        # beside NumPy and numba.njit
    python perf/math_functions.py errors erf tanh   # some of them

Writes perf/results/cpu-math.json, with what was measured before kept, and prints rows of a table.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/cpu_lower")]
from math_oracles import NUMPY_NAMES, exact_value  # noqa: E402
from vector_loops import compute, native  # noqa: E402

from blocknumba.cpu_lower.math import FUNCTIONS  # noqa: E402

RESULTS = ROOT / "perf/results/cpu-math.json"
CHUNK = 1 << 20
SAMPLES = 10 ** 8
LENGTH = 1 << 14  # of the arrays that are timed: they stay in the caches
ROUNDS, REPEATS = 9, 20
# (low, high) of the operands that are timed, where functions are not defined from 0.1 to 3.1.
DOMAINS = {"asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.1, 4.1)}


@numba.njit(error_model="numpy")
def worst_error(found: np.ndarray, exact: np.ndarray, of_one: bool) -> tuple[float, int]:
    """The largest error of float32 in units in the last place, and its index.

    exact: float64.  of_one: units are at least those of 1.
    """
    worst, place = 0.0, 0
    bits = exact.view(np.int64)
    for i in range(found.size):
        value, right = np.float64(found[i]), exact[i]
        if value == right or np.isnan(value) and np.isnan(right):
            continue
        exponent = max((bits[i] >> 52 & 0x7FF) - 1023, 0 if of_one else -126)
        limit = 2.0 ** 128  # the next number after the largest stands for infinity
        value, right = min(max(value, -limit), limit), min(max(right, -limit), limit)
        error = abs(value - right) / 2.0 ** (min(exponent, 127) - 23)
        if not error <= worst:
            worst, place = (math.inf if np.isnan(error) else error), i
    return worst, place


def all_floats(step: int, first: int) -> Iterator[np.ndarray]:
    """The float32 whose bits are first, first + step, ...: equally many of each magnitude."""
    for start in range(first, 1 << 32, step * CHUNK):
        bits = np.arange(start, min(start + step * CHUNK, 1 << 32), step, dtype=np.uint64)
        yield bits.astype(np.uint32).view(np.float32)


def pairs(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of floats, by turns of all magnitudes and of moderate ones."""
    for index in range(SAMPLES // CHUNK + 1):
        if index % 2:
            bits = rng.integers(0, 1 << 32, (2, CHUNK), dtype=np.uint32)
            yield tuple(bits.view(np.float32))
        else:
            sizes = 10.0 ** rng.uniform(-3, 2, (2, CHUNK))
            yield tuple((rng.standard_normal((2, CHUNK)) * sizes).astype(np.float32))


def largest_error(name: str) -> dict[str, object]:
    """Number of float32 operands tried, and the largest error with its operands."""
    if FUNCTIONS[name].arity == 2:
        batches = pairs(np.random.default_rng())
    elif name == "exp":
        batches = ((x,) for x in all_floats(1, 0))
    else:
        step = (1 << 32) // SAMPLES
        batches = ((x,) for x in all_floats(step, int(np.random.default_rng().integers(step))))
    worst, operands, count = 0.0, None, 0
    for batch in batches:
        exact = exact_value(name, *batch).astype(np.float64)
        error, place = worst_error(compute(name, *batch), exact, name == "lgamma")
        count += batch[0].size
        if error > worst:
            worst, operands = error, [float(x[place]) for x in batch]
    return {"operands_tried": count, "ulps": round(worst, 4), "worst_operands": operands}


def timed(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Nanoseconds of an element, the least of the rounds, in which competitors take turns."""
    best = dict.fromkeys(runs, math.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(REPEATS):
                run()
            elapsed = (time.perf_counter() - start) / REPEATS / LENGTH * 1e9
            best[name] = min(best[name], elapsed)
    return {name: round(value, 3) for name, value in best.items()}


def numba_loop(name: str) -> Callable | None:
    """A loop over elements by numba.njit, of NumPy's function or of the math module's."""
    function = getattr(np, NUMPY_NAMES.get(name, name), None) or getattr(math, name, None)
    if name == "rsqrt":
        return numba.njit(_rsqrt_loop)
    if function is None:
        return None

    def one(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    def two(x, y, out):
        for i in range(x.size):
            out[i] = function(x[i], y[i])

    return numba.njit(one if FUNCTIONS[name].arity == 1 else two)


def _rsqrt_loop(x, out):
    for i in range(x.size):
        out[i] = 1 / np.sqrt(x[i])


def _numpy(name: str) -> Callable | None:
    if name == "rsqrt":
        return lambda x, out: np.divide(1, np.sqrt(x, out=out), out=out)
    function = getattr(np, NUMPY_NAMES.get(name, name), None)
    return function and (lambda *operands: function(*operands[:-1], out=operands[-1]))


def throughput(name: str, dtype: str) -> dict[str, float]:
    """Nanoseconds of an element: ours with vectors of 64 and of 32 bytes, NumPy's, Numba's."""
    low, high = DOMAINS.get(name, (0.1, 3.1))
    rng = np.random.default_rng(0)
    operands = [rng.uniform(low, high, LENGTH).astype(dtype)
                for _ in range(FUNCTIONS[name].arity)]
    out = np.empty_like(operands[0])
    addresses = [out.ctypes.data, *(x.ctypes.data for x in operands)]
    runs = {}
    for width in (64, 32):
        lanes = width // out.itemsize
        function = native(name, dtype, lanes)
        runs[f"{width} bytes"] = lambda f=function, n=LENGTH // lanes: f(*addresses, n)
    if _numpy(name):
        runs["numpy"] = lambda f=_numpy(name): f(*operands, out)
    loop = numba_loop(name)
    if loop:
        try:
            loop(*operands, out)
        except numba.core.errors.TypingError:  # what Numba does not have
            loop = None
    if loop:
        runs["numba"] = lambda: loop(*operands, out)
    return timed(runs)


def main(mode: str, names: list[str]) -> None:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known["machine"] = f"{llvm.get_host_cpu_name()}, {platform.machine()}, one thread"
    known["versions"] = {"numpy": np.__version__, "numba": numba.__version__,
                         "llvm": ".".join(map(str, llvm.llvm_version_info))}
    for name in names or sorted(n for n, f in FUNCTIONS.items() if any(f.ulps.values())):
        if mode == "errors":
            row = largest_error(name)
            print(name, row["operands_tried"], row["ulps"], row["worst_operands"], flush=True)
        else:
            row = {dtype: throughput(name, dtype) for dtype in ("float32", "float64")}
            cells = [f"{row[d].get(who, float('nan')):.2f}" for d in row
                     for who in ("64 bytes", "32 bytes", "numpy", "numba")]
            print(f"| `{name}` | {' | '.join(cells)} |".replace("nan", "-"), flush=True)
        known.setdefault(mode, {})[name] = row
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] not in (["errors"], ["throughput"]):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
