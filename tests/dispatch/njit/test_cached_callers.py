"""Functions in Numba's cache that launch kernels: found by other processes, and never stale."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blocknumba.dispatch.njit.cached_sites import linked_again

KERNELS = """
import blocknumba as bn
STEP = 10
@bn.jit
def first(x, out, a, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + a * STEP
@bn.jit
def second(x, out, a, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] - a
"""
CHOICE = "from kernels import first as chosen\n"
CALLERS = """
from numba import njit, prange
import kernels
from choice import chosen
@njit(cache=True)
def plain(x, out):
    chosen[1](x, out, 2, B=64)
@njit(cache=True)
def through_a_module(x, out):
    kernels.first[1](x, out, 2, 64)
@njit(cache=True, parallel=True)
def in_prange(x, out):
    for row in prange(4):
        chosen[1](x[row * 16:row * 16 + 16], out[row * 16:row * 16 + 16], 2, B=16)
"""
OUTER = """
from numba import njit
from callers import plain
@njit(cache=True)
def nested(x, out):
    plain(x, out)
"""
FUNCTIONS = ("plain", "through_a_module", "in_prange", "nested")
TELL = """
def tell(run):
    x, out = np.arange(64, dtype=np.float32), np.full(64, 77, np.float32)
    run(x, out)
    assert len({*(out - x)}) == 1, out
    print(int(out[0]), *(sum(counter.values()) for counter in (run.stats.cache_hits,
                                                               run.stats.cache_misses)))
"""
RUN = f"""
import numpy as np
import callers, outer
{TELL}
for name in {FUNCTIONS}:
    tell(getattr(outer if name == "nested" else callers, name))
"""
HIT, MISS = (1, 0), (0, 1)


class Program:
    """Modules in a folder, and the processes that run them."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name, text in (("kernels", KERNELS), ("choice", CHOICE), ("callers", CALLERS),
                           ("outer", OUTER), ("run", RUN)):
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """Write a module; not at a time at which an earlier text of the same length was."""
        path = self.folder / f"{name}.py"
        path.write_text(text)
        past = time.time() - 1000 + len(os.listdir(self.folder))
        os.utime(path, (past, past))

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.folder / f"{name}.py").read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def run(self) -> list[tuple[int, tuple[int, int]]]:
        """What each function stores besides x; hits and misses of Numba's cache."""
        environment = os.environ | {
            "BLOCKNUMBA_CACHE": "0", "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(self.folder / "cache"), "NUMBA_NUM_THREADS": "2",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "run.py"], cwd=self.folder, text=True,
                              env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        told = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        return [(stored, (hits, misses)) for stored, hits, misses in told]


@pytest.fixture
def program(tmp_path) -> Program:
    return Program(tmp_path)


def test_other_processes_find_the_callers_and_the_kernels_as_they_are_there(program):
    """`nested` finds `plain` in its own machine code, so that it is one hit."""
    assert program.run() == [(20, MISS)] * 4
    assert program.run() == [(20, HIT)] * 4
    program.change("kernels", "a * STEP", "a * STEP + 1")
    assert program.run() == [(21, HIT)] * 4
    program.change("kernels", "STEP = 10", "STEP = 15")
    assert program.run() == [(31, HIT)] * 4


def test_other_parameters_of_a_kernel_are_other_callers(program):
    assert program.run() == [(20, MISS)] * 4
    program.change("kernels", "def first(x, out, a, B: bn.constexpr)",
                   "def first(x, out, a: bn.int8, B: bn.constexpr)")
    assert program.run() == [(20, MISS)] * 4
    assert program.run() == [(20, HIT)] * 4
    program.change("kernels", "def first(x, out, a: bn.int8, B: bn.constexpr)",
                   "def first(x, out, a: bn.constexpr, B: bn.constexpr)")
    assert program.run() == [(20, MISS)] * 4


def test_a_name_that_means_another_kernel_is_another_caller(program):
    assert program.run() == [(20, MISS)] * 4
    program.write("choice", "from kernels import second as chosen\n")
    stored, found = zip(*program.run())
    assert stored == (-2, 20, -2, -2)
    assert {found[0], found[2], found[3]} == {MISS}


def test_a_kernel_that_went_away_is_the_error_that_it_is_without_a_cache(program):
    program.write("choice", "import kernels\nchosen = kernels.second\n")
    assert program.run() == [(-2, MISS), (20, MISS), (-2, MISS), (-2, MISS)]
    program.change("kernels", "def first", "def third")

    with pytest.raises(AssertionError, match="first"):
        program.run()


OWN = f"""
import warnings
import numpy as np
from numba import NumbaWarning, njit
{KERNELS}
{TELL}
"""


def test_a_kernel_of_the_script_is_found_again(program):
    program.write("run", OWN + """
@njit(cache=True)
def run(x, out):
    first[1](x, out, 2, 64)
tell(run)
""")
    assert program.run() == [(20, MISS)]
    assert program.run() == [(20, HIT)]
    program.change("run", "STEP = 10", "STEP = 12")
    assert program.run() == [(24, MISS)]


def test_a_caller_of_a_kernel_without_a_name_is_not_cached(program):
    program.write("run", OWN + """
nameless = bn.jit(first.python_function)
@njit(cache=True)
def run(x, out):
    nameless[1](x, out, 2, 64)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tell(run)
assert any("Cannot cache compiled function" in str(warning.message) for warning in caught)
""")
    assert [stored for stored, _ in program.run() + program.run()] == [20, 20]


def test_what_another_blocknumba_wrote_is_compiled_again():
    """Numba takes an OSError for a file that went away; any other error would reach the user."""
    for damaged in (b"", b"no pickle", pickle.dumps(("too", "few")),
                    b"cblocknumba.dispatch.njit.record\nAnEntryOfLater\n."):
        with pytest.raises(OSError):
            linked_again(damaged)
