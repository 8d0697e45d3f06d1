"""Sizes with zeros too many: each ends soon, in one message, before it fills the memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

CHILD = Path(__file__).with_name("bounded_compilations.py")
MAX_SECONDS = 5.0  # of one case; the slowest takes one
GPU = "sm_90a"
HEAD = """import math
import operator
import blocknumba as bn
LONG = 10**5000
FOREVER = iter(int, 1)
RANGE = range(10**12)

@bn.jit
def k(x, n):
"""
OUTSIDE = "compute it outside of the kernel, as a global or as an argument that is a constant"
BITS = "a compile-time int: accepted at most 4096 bits"
UNROLL = "use range, whose loop is not unrolled; BLOCKNUMBA_MAX_{} in the environment raises the limit"

NESTED = "def f0(v):\n    return v + v\n" + "\n".join(  # 8**5 calls of f0
    f"def f{i}(v):\n    return {f'f{i - 1}(' * 8}v{')' * 8}" for i in range(1, 6))
CHAIN = " and ".join(["n"] * 500)
NESTING = ("all that follows a break or a return is in a branch of its own, in a loop that is "
           "unrolled in each iteration: use range, or fewer conditions")
TOO_LONG = "inlining and unrolling make more than 50000 statements"
REGISTERS = "; BLOCKNUMBA_MAX_ELEMENTS_PER_THREAD in the environment raises the limit"
WARPS = {16: f"use num_warps=32 or smaller tiles{REGISTERS}", 32: f"use smaller tiles{REGISTERS}"}


class Case(NamedTuple):
    """A kernel that asks for too much.

    body: its statements.  marked: the text that carets stand below.
    message, hint: of its error.  target: a GPU, else it runs on the CPU.
    """

    body: str
    marked: str
    message: str
    hint: str = ""
    target: str = ""

    @property
    def source(self) -> str:
        return HEAD + "".join(f"    {line}\n" for line in self.body.split("\n"))

    @property
    def error(self) -> str:
        """The whole text of the error."""
        lines = self.source.split("\n")
        number, line = next((i, line) for i, line in reversed([*enumerate(lines)])
                            if self.marked in line)
        text = line.lstrip()
        shown = [self.message, f"  kernel.py, line {number + 1}, in k", f"    {text}",
                 "    " + " " * text.index(self.marked) + "^" * len(self.marked)]
        return "\n".join(shown + [f"  hint: {self.hint}"] * bool(self.hint))


def bits(expression: str, marked: str = "") -> Case:
    """A compile-time int that is too long."""
    return Case(f"x[0] = ({expression}) % 7", marked or expression, BITS)


def items(expression: str, count: int) -> Case:
    """A tuple or a string that is too long."""
    return Case(f"x[0] = len({expression})", expression,
                f"a compile-time value: given {count} items or characters, accepted at most 65536",
                OUTSIDE)


def loop(variable: str, iterable: str) -> str:
    """What is marked of a loop: from Python 3.13 on what it runs over."""
    return iterable if sys.version_info >= (3, 13) else f"for {variable} in {iterable}:"


def unrolled(iterable: str, count: str) -> Case:
    """A loop with too many iterations to be unrolled."""
    return Case(f"for i in {iterable}:\n    x[0] = i", loop("i", iterable),
                f"a loop of {count} iterations cannot be unrolled, accepted at most 4096",
                UNROLL.format("UNROLLED"))


def grown(start: str, step: str, count: int) -> Case:
    """A value that doubles in each of 100 iterations."""
    return Case(f"t = {start}\nfor i in bn.static_range(100):\n    t = {step}\nx[0] = 1", step,
                f"a compile-time value: given {count} items or characters, accepted at most 65536",
                OUTSIDE)


def on_cpu(body: str, marked: str, size: int, count: int) -> Case:
    """A tile that the memory of the CPU has no room for.  count: its bytes."""
    return Case(body, marked, f"k: a tile of shape ({size},) has {count} bytes, accepted at most "
                "134217728 on the CPU device", "use smaller tiles; BLOCKNUMBA_MAX_TILE_BYTES in "
                "the environment raises the limit")


def on_gpu(body: str, marked: str, shape: tuple[int, ...], held: int, num_warps: int) -> Case:
    """A tile that the registers of a GPU have no room for.  held: elements per thread."""
    return Case(body, marked, f"k: a tile of shape {shape} has {held} elements per thread with "
                f"num_warps={num_warps}, accepted at most 1024", WARPS[num_warps], GPU)


CASES = [
    bits("10 ** 10 ** 10"), bits("10 ** LONG", "LONG"), bits("1 << 10**10"), bits("3 ** 10**9"),
    bits("math.factorial(10**7)"), bits("math.comb(10**7, 5 * 10**6)"),
    bits("math.perm(10**7)"), bits("pow(3, 10**10)"), bits("pow(exp=10**10, base=3)"),
    bits("round(1, -10**10)"), bits("LONG"), bits("math.lcm(3**2500, 5**1700)"),
    items("(1,) * 10**9", 10**9), items("(n, 1) * 10**9", 2 * 10**9), items("'a' * 10**10", 10**10),
    items("10**10 * 'ab'", 2 * 10**10), items("'a'.ljust(10**10)", 10**10),
    items("'a'.rjust(10**10)", 10**10), items("'a'.center(10**10)", 10**10),
    items("'1'.zfill(10**10)", 10**10), items("'a\\t'.expandtabs(10**9)", 10**9 + 2),
    items("'aaa'.replace('a', 'b' * 60000)", 180003), items("('a' * 50).join(('',) * 2000)", 102000),
    items("'{:{}}'.format(1, 10**10)", 10**10 + 8), items("'%*d' % (10**10, 1)", 10**10 + 6),
    items("(1).to_bytes(10**10, 'big')", 10**10), items("format(1, '70000')", 70005),
    items("'{0}{0}'.format('a' * 40000)", 80006), items("max(RANGE, RANGE)", 10**12),
    unrolled("bn.static_range(10**12)", "1000000000000"),
    unrolled("bn.static_range(10**1000)", "2**3321 or more"),
    unrolled("bn.static_range(5, -10**12, -7)", "142857142858"),
    unrolled("(1,) * 5000", "5000"), unrolled("(n,) * 5000", "5000"),
    grown("(1,)", "t + t", 131072), grown("(n,)", "t + t", 65537), grown("'ab'", "t + t", 131072),
    grown("1", "(t, t)", 131072), grown("n", "(t, t)", 131072),
    Case("t = 3\nfor i in bn.static_range(100):\n    t = t * t\nx[0] = t % 7", "t * t", BITS),
    Case("t = n\nfor i in bn.static_range(100):\n    t = (t,)\nx[0] = 1", "(t,)",
         "a compile-time value: accepted at most 64 tuples in each other"),
    Case("for i in bn.static_range(1000):\n    for j in bn.static_range(1000):\n        x[0] += i",
         loop("j", "bn.static_range(1000)"), TOO_LONG, UNROLL.format("STATEMENTS")),
    Case(f"{NESTED}\nx[0] = f5(n)", "f5(n)", TOO_LONG, UNROLL.format("STATEMENTS")),
    Case("for i in bn.static_range(500):\n    if x[i] > 1:\n        break\n    x[i] = i", "x[i] > 1",
         "given more than 100 branches and loops in each other", NESTING),
    Case(f"x[0] = {CHAIN}", CHAIN, "given more than 100 branches and loops in each other", NESTING),
    on_cpu("x[0] = bn.sum(bn.zeros((2**40,)))", "bn.zeros((2**40,))", 2**40, 2**42),
    on_cpu("x[0] = bn.sum(bn.arange(0, 2**30))", "bn.arange(0, 2**30)", 2**30, 2**32),
    on_gpu("x[0] = bn.sum(bn.zeros((2**40,)))", "bn.zeros((2**40,))", (2**40,), 2**30, 32),
    on_gpu("bn.store(x + bn.arange(0, 2**30), 1.0)", "bn.arange(0, 2**30)", (2**30,), 2**20, 32),
    on_gpu("bn.store(x + bn.arange(0, 2**20), 1.0)", "bn.arange(0, 2**20)", (2**20,), 2048, 16),
    Case("r = bn.arange(0, 65536)\nt = x[r]\nfor i in bn.static_range(300):\n    t = t * 1.5 + i\n"
         "x[r] = t", "t * 1.5", "the kernel has more than 50000 instructions up to this line",
         "use smaller tiles, more num_warps, or loops that are not unrolled; "
         "BLOCKNUMBA_MAX_INSTRUCTIONS in the environment raises the limit", GPU),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What every case ended in: its message and its seconds; fewer when the process died."""
    asked = []
    for case in CASES:
        folder = tmp_path_factory.mktemp("case")
        Path(folder, "kernel.py").write_text(case.source)
        asked.append((str(folder), case.target))
    environment = os.environ | {"BLOCKNUMBA_CACHE": "0"}
    done = subprocess.run([sys.executable, CHILD], input=json.dumps(asked), capture_output=True,
                          text=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.body[:80] for case in CASES])
def test_what_is_too_large_is_refused_before_it_is_made(outcomes, index):
    found, log = outcomes
    assert index < len(found), f"too much memory or time: {log[-2000:]}"
    message, seconds = found[index]

    assert message == CASES[index].error
    assert seconds < MAX_SECONDS
