"""First launches on the CPU, each in a process of its own: python perf/bench_first_launch.py

    compiled          softmax, nothing on disk; numba and llvmlite are imported before
    compiled, warm    the same after another kernel, so that our own modules are imported too, and
                      the threads of launches wait for work
    from disk         from the disk cache, after another kernel
    import and first  import blocknumba, and a first launch from the disk cache; a process that
                      only imports numpy is subtracted

Medians of rounds in turns, ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 5
FOLDER = Path(__file__).resolve().parents[1]
_BEFORE = """
import sys, time
sys.path.insert(0, {examples!r})
import numpy as np
x = np.ones((64, 1000), np.float32)
"""
_IMPORTED = """
import numba, llvmlite.binding
import blocknumba as bn
import softmax, vector_add
"""
_OTHER = """
flat = x.reshape(-1)
vector_add.add[63](flat, flat, np.empty_like(flat), BLOCK=1024)
"""
_FIRST = """
start = time.perf_counter()
softmax.softmax[64](x, np.empty_like(x), BLOCK=1024)
print(time.perf_counter() - start)
"""
_WHOLE = """
import softmax
softmax.softmax[64](x, np.empty_like(x), BLOCK=1024)
"""
COMPILED, WARM, DISK = "compiled", "compiled, warm", "from disk"
WHOLE, EMPTY = "import and first launch", "numpy"


def clocked(program: str, cache: str, byte_code: str) -> float:
    """What a program prints last.

    cache: the folder of the disk cache, empty for none.   byte_code: where Python keeps that.
    """
    environment = dict(os.environ, BLOCKNUMBA_CACHE="1" if cache else "0",
                       BLOCKNUMBA_CACHE_DIR=cache, CUDA_VISIBLE_DEVICES="",
                       PYTHONPYCACHEPREFIX=byte_code)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = subprocess.run([sys.executable, "-c", program], env=environment, check=True,
                           capture_output=True, text=True, cwd=FOLDER)
    return float(found.stdout.split()[-1])


def started(program: str) -> str:
    """A program with what it needs before."""
    return _BEFORE.format(examples=str(FOLDER / "examples")) + program


def whole(program: str) -> str:
    """A program that prints how long all of it took."""
    return (f"import time\nstart = time.perf_counter()\n{started(program)}\n"
            "print(time.perf_counter() - start)")


def main() -> None:
    """Print the medians."""
    programs = {COMPILED: (started(_IMPORTED + _FIRST), False),
                WARM: (started(_IMPORTED + _OTHER + _FIRST), False),
                DISK: (started(_IMPORTED + _OTHER + _FIRST), True),
                WHOLE: (whole(_WHOLE), True), EMPTY: (whole(""), True)}
    with tempfile.TemporaryDirectory() as folder:
        cache, byte_code = f"{folder}/kernels", f"{folder}/modules"
        samples = {name: [] for name in programs}
        for number in range(ROUNDS + 1):  # the first one fills both folders
            for name, (program, reads) in programs.items():
                seconds = clocked(program, cache if reads else "", byte_code)
                samples[name] += [seconds] * bool(number)
    found = {name: statistics.median(taken) * 1e3 for name, taken in samples.items()}
    found[WHOLE] -= found.pop(EMPTY)
    for name, milliseconds in found.items():
        print(f"{name:24} {milliseconds:7.1f} ms")


if __name__ == "__main__":
    main()
