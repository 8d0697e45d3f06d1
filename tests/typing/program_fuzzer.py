"""Random programs, run by Python, by the interpreter, by emulated machine code and by a GPU.

    python tests/typing/program_fuzzer.py --count 20000 --seed 1 [--emulated 2000] [--gpu 20000]
        [--processes 2]

Python runs the same source with ints that wrap to their dtype after every operation.
"""

from __future__ import annotations

import argparse
import linecache
import multiprocessing
import operator
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import emulated_gpu  # noqa: E402
from random_programs import TABLE, ProgramMaker  # noqa: E402
from shortening import shortened  # noqa: E402

import blocknumba as bn  # noqa: E402
from blocknumba.errors import BlockError, BlockNameError, UnsupportedError  # noqa: E402

CPU, EMULATOR, GPU = "CPU", "emulator", "GPU"
ROWS, COLUMNS = 4, 8  # programs of a launch, ints that each is given
UNTOUCHED = -77
# What a random program may be refused for: the kind of error and what its message starts with.
ACCEPTED_REFUSALS: tuple[tuple[type, str], ...] = (
    (BlockNameError, "name"),  # on a path that no row may take
    (UnsupportedError, "a call with * and a keyword"),  # as f(*u, m=a if c else b)
)
MAX_REFUSED = 0.03
SHOWN_EVERY = 1000  # programs: how far a long run has come


class Int:
    """An int of some bits, which wraps."""

    __slots__ = ("value", "bits")

    def __init__(self, value: int, bits: int):
        half = 1 << bits - 1
        self.value, self.bits = (int(value) + half) % (2 * half) - half, bits

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __bool__(self) -> bool:
        return self.value != 0

    def __hash__(self) -> int:
        return hash(self.value)

    def _with(self, other: object, function, swapped: bool = False):
        bits = max(self.bits, other.bits) if isinstance(other, Int) else self.bits
        first, second = (int(other), self.value) if swapped else (self.value, int(other))
        result = function(first, second)
        return result if isinstance(result, bool) else Int(result, bits)


def _binary(function, swapped: bool):
    return lambda self, other: self._with(other, function, swapped)


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift",
              "pow"):
    _function = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Int, f"__{_name}__", _binary(_function, False))
    setattr(Int, f"__r{_name}__", _binary(_function, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Int, f"__{_name}__", _binary(getattr(operator, _name), False))
for _name in ("neg", "invert", "abs"):
    setattr(Int, f"__{_name}__",
            lambda self, _f=getattr(operator, _name): Int(_f(self.value), self.bits))


def _extreme(function):
    """min or max: of several ints, the dtype of all of them."""
    def extreme(*values):
        items = tuple(values[0]) if len(values) == 1 else values
        bits = max((item.bits for item in items if isinstance(item, Int)), default=0)
        chosen = function(items, key=int)
        return Int(chosen, bits) if bits else chosen
    return extreme


class _Row:
    """A two-dimensional array of ints, for Python."""

    def __init__(self, array: np.ndarray):
        self._array, self._bits = array, array.dtype.itemsize * 8

    def __getitem__(self, index) -> Int:
        return Int(self._array[tuple(map(int, index))], self._bits)

    def __setitem__(self, index, value) -> None:
        self._array[tuple(map(int, index))] = int(Int(value, self._bits))


def _wrapping_range(bits: int):
    """range, whose ints are those of the program where they need its bits."""
    def wrapping(*bounds):
        over = range(*map(int, bounds))
        is_wide = any(not -2**20 < int(bound) < 2**20 for bound in bounds)
        return (Int(i, bits) for i in over) if is_wide else iter(over)
    return wrapping


@dataclass
class Program:
    """A random program: its source, and the dtype of its wide ints."""

    seed: int
    source: str
    bits: int

    @classmethod
    def of(cls, seed: int) -> Program:
        maker = ProgramMaker(seed)
        return cls(seed, maker.source(), maker.bits)

    def function(self, **names: object) -> FunctionType:
        """The function `program`, its source known to tracebacks."""
        name = f"<random program {self.seed}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        namespace = {"TABLE": TABLE, "MODE": "exact", **names}
        exec(compile(self.source, name, "exec"), namespace)
        return namespace["program"]

    def kernel(self) -> object:
        """The program as a kernel."""
        return bn.jit(self.function(static_range=bn.static_range, program_id=bn.program_id,
                                    wide=self.dtype.type))

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(f"int{self.bits}")

    def inputs(self) -> np.ndarray:
        """What the programs of a launch are given, (ROWS, COLUMNS)."""
        random, limits = np.random.default_rng(self.seed), np.iinfo(self.dtype)
        x = random.integers(limits.min, limits.max, (ROWS, COLUMNS), self.dtype, endpoint=True)
        x[random.random(x.shape) < 0.4] = random.integers(-9, 99)
        x[0, 1:4] = random.permutation([limits.min, limits.max, -1])
        return x

    def expected(self) -> tuple[np.ndarray, list[int]]:
        """What Python does; and the rows in which it reads a variable that is not assigned."""
        x, out, wrong = self.inputs(), self.untouched(), []
        for row in range(ROWS):
            function = self.function(
                static_range=range, program_id=lambda _, row=row: row, min=_extreme(min),
                max=_extreme(max), range=_wrapping_range(self.bits),
                wide=lambda i: Int(i, self.bits))
            try:
                function(_Row(x), _Row(out), 5)
            except NameError:
                wrong.append(row)
        return out, wrong

    def untouched(self) -> np.ndarray:
        return np.full((ROWS, COLUMNS), UNTOUCHED, self.dtype)

    def difference(self, device: str = CPU) -> str:
        """How what a kernel does on a device differs from what Python does; "" when it does not.

        Errors: the BlockError of a program that is refused.
        """
        expected, wrong = self.expected()
        x, out = self.inputs(), self.untouched()
        if device == EMULATOR:
            emulated_gpu.launch(self.kernel(), ROWS, (x, out, 5), {"num_warps": 1})
        else:
            self.kernel()[ROWS](x, out, 5, num_warps=1, interpret=device == CPU)
        rows = [row for row in range(ROWS) if row not in wrong]
        if np.array_equal(out[rows], expected[rows]):
            return ""
        return f"expected\n{expected[rows]}\ngot\n{out[rows]}"


@dataclass
class Report:
    """What came of many programs.

    programs: by device.
    refused: kind of error and message -> how often; failures: seed -> what went wrong.
    """

    programs: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Count the programs of another report too."""
        self.programs += other.programs
        self.refused += other.refused
        self.failures |= other.failures

    def __str__(self) -> str:
        refused = "".join(f"\n  {count} x {what}" for what, count in self.refused.most_common())
        done = ", ".join(f"{count} programs on the {device}"
                         for device, count in self.programs.items())
        return (f"{done}: {len(self.failures)} fail, {sum(self.refused.values())} are refused"
                f"{refused}")


def check(seed: int, devices: tuple[str, ...] = (CPU,)) -> Report:
    """Run one program by Python and on devices."""
    report, program = Report(Counter(devices)), Program.of(seed)
    try:
        problem = next(filter(None, map(program.difference, devices)), "")
    except BlockError as error:
        message = str(error).splitlines()[0]
        what = f"{type(error).__name__}: {message}"
        if any(isinstance(error, kind) and message.startswith(start)
               for kind, start in ACCEPTED_REFUSALS):
            report.refused[what] += 1
            return report
        problem = str(error)
    except Exception as error:  # a bug of ours may raise anything
        problem = f"{type(error).__name__}: {error}"
    if problem:
        report.failures[seed] = problem
    return report


def problem_kind(program: Program) -> str:
    """How a program goes wrong, in a few words."""
    try:
        program.expected()
    except Exception:  # no Python program any more
        return "not Python"
    try:
        return "differs" if program.difference() else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:30]


def failure_text(seed: int, problem: str) -> str:
    """A program that fails, whole and reduced, and what goes wrong."""
    program = Program.of(seed)
    return f"seed {seed}\n{program.source}\n{problem}\nreduced:\n{reduced(program).source}"


def reduced(program: Program, problem_of: Callable[[Program], str] = problem_kind,
            seconds: float = 20) -> Program:
    """A shorter program that goes wrong in the same way: lines, with what they hold, left out."""
    wrong = problem_of(program)
    source = shortened(program.source,
                       lambda text: problem_of(replace(program, source=text)) == wrong, seconds)
    return replace(program, source=source)


def _check_one(task: tuple[int, tuple[str, ...]]) -> Report:
    return check(*task)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--emulated", type=int, default=0, help="how many run emulated too")
    parser.add_argument("--gpu", type=int, default=0, help="how many run on a GPU too")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    whole, started = Report(), time.time()
    seeds = range(given.seed, given.seed + given.count)
    tasks = [(seed, (CPU, *[EMULATOR] * (index < given.emulated), *[GPU] * (index < given.gpu)))
             for index, seed in enumerate(seeds)]
    with multiprocessing.Pool(given.processes, maxtasksperchild=500) as pool:
        for report in pool.imap_unordered(_check_one, tasks, chunksize=10):
            whole.add(report)
            for seed, problem in report.failures.items():
                print(failure_text(seed, problem), flush=True)
            if whole.programs[CPU] % SHOWN_EVERY == 0:
                print(whole, flush=True)
    print(f"{whole}\nseeds {seeds.start} to {seeds.stop - 1}, {time.time() - started:.0f} s")
    return bool(whole.failures)


if __name__ == "__main__":
    sys.exit(main())
