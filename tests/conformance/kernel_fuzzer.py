"""Whole kernels that are drawn from a seed, on a device and in NumPy.

    python tests/conformance/kernel_fuzzer.py --on cpu --count 1000 --seed 1 --processes 2
    python tests/conformance/kernel_fuzzer.py --on interpreter emulator --count 200
    python tests/conformance/kernel_fuzzer.py --on gpu --count 10000 --processes 15
    python tests/conformance/kernel_fuzzer.py --on compiler --count 2000

Each kernel is run by NumPy alone and on the devices named; ints, bools and exact floats must be the
same, others as near as their functions are.  A kernel that differs is printed, whole and shortened.
The compiler makes machine code for sm_90a, with no GPU, and nothing is run.
"""

from __future__ import annotations

import argparse
import linecache
import math
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import numpy as np

if __name__ == "__main__":
    HERE = Path(__file__).parent
    sys.path[:0] = [str(HERE.parents[1]), str(HERE), str(HERE.parent)]

import emulated_gpu  # noqa: E402
from array_layouts import placed, repeated  # noqa: E402
from kernel_maker import SPACE, KernelMaker  # noqa: E402
from kernel_parts import Input, Output, Parameter  # noqa: E402
from numpy_functions import FUNCTIONS  # noqa: E402
from numpy_tiles import (  # noqa: E402
    BOOL, BYTE_FLOATS, FLOATS, Array, IntOutOfRange, is_float, tile,
)
from shortening import shortened  # noqa: E402

import blocknumba as bn  # noqa: E402
import blocknumba.triton  # noqa: E402

DEVICES = ("interpreter", "cpu", "emulator", "gpu", "compiler")
SHOWN_EVERY = 100  # kernels


def _values(array: Input, random: np.random.Generator) -> np.ndarray:
    """The elements of an input, C-contiguous."""
    if array.dtype == BOOL:
        return random.random(array.shape) < 0.5
    if array.largest:
        low = 0 if array.dtype.kind == "u" else -array.largest
        return random.integers(low, array.largest + 1, array.shape).astype(array.dtype)
    size = int(np.prod(array.shape))
    if array.dtype in BYTE_FLOATS:
        return random.integers(0, 256, array.shape, np.uint8).view(array.dtype)
    if not is_float(array.dtype):
        limits = np.iinfo(array.dtype)
        found = random.integers(limits.min, limits.max, size, array.dtype, endpoint=True)
        edges = np.array([0, 1, limits.min, limits.max, limits.max - 1], array.dtype)
    else:
        with np.errstate(over="ignore"):
            found = (random.standard_normal(size) * 10.0 ** random.uniform(-3, 3, size)).astype(
                array.dtype)
            edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, 1e-30, 6e4, 3e38]).astype(
                array.dtype)
    chosen = random.random(size) < 0.3
    found[chosen] = random.choice(edges, int(chosen.sum()))
    return found.reshape(array.shape)


def _untouched(out: Output, random: np.random.Generator) -> np.ndarray:
    if out.zeros:
        return np.zeros(out.shape, out.dtype)
    return random.integers(1, 9, out.shape).astype(out.dtype)


def _program_functions(program: int, grid: tuple[int, ...]) -> dict[str, object]:
    """The functions of the language that tell a program where it is."""
    places, spans = np.unravel_index(program, grid), FUNCTIONS["spans"]
    extents = (*grid, 1, 1)
    here = (*map(int, places), 0, 0)
    return {"program_id": lambda axis: here[axis], "num_programs": lambda axis: extents[axis],
            "grid_spans": lambda stop, size, axis=0: spans(
                stop, size, here[axis] * size, extents[axis] * size)}


@dataclass(frozen=True)
class GeneratedKernel:
    """A kernel, its arrays and its launch."""

    seed: int
    source: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    parameters: tuple[Parameter, ...]
    grid: tuple[int, ...]
    options: dict[str, object]

    @classmethod
    def of(cls, seed: int) -> GeneratedKernel:
        maker = KernelMaker(seed)
        return cls(seed, maker.source, tuple(maker.inputs), tuple(maker.outputs),
                   maker.parameters, maker.grid, maker.options)

    def _function(self, language: object) -> object:
        name = f"<generated kernel {self.seed}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        space = {"bn": language, "tl": language, "triton_jit": lambda function: function, **SPACE}
        if language is bn:
            space |= {"tl": bn.triton.language, "triton_jit": bn.triton.jit}
        exec(compile(self.source, name, "exec"), space)
        return space["kernel"]

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a launch by name, all contiguous."""
        random = np.random.default_rng(self.seed)
        return ({i.name: repeated(_values(i, random), i.layout) for i in self.inputs}
                | {o.name: _untouched(o, random) for o in self.outputs})

    @cached_property
    def expected(self) -> dict[str, np.ndarray]:
        """The outputs by NumPy, one program after the other."""
        return self._by_numpy()

    @cached_property
    def is_refused_by_numpy(self) -> bool:
        """Whether NumPy raises for an int that a dtype does not hold."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", IntOutOfRange)
            try:
                self._by_numpy()
            except IntOutOfRange:
                return True
        return False

    def _by_numpy(self) -> dict[str, np.ndarray]:
        arrays = self.arrays()
        given = {name: Array(array) for name, array in arrays.items()}
        arguments = [tile(argument) if isinstance(argument, np.generic) else argument
                     for argument in (p.argument(given) for p in self.parameters)]
        for program in range(math.prod(self.grid)):
            language = SimpleNamespace(**FUNCTIONS, **_program_functions(program, self.grid))
            with np.errstate(all="ignore"):
                self._function(language)(*arguments)
        return {o.name: arrays[o.name] for o in self.outputs}

    def difference(self, device: str) -> str:
        """Where a device and NumPy differ; "" where they do not."""
        arrays, layouts = self.arrays(), {a.name: a.layout for a in (*self.inputs, *self.outputs)}
        there = {name: placed(values, layouts[name], self.seed)
                 for name, values in arrays.items()}
        before = {name: place.around() for name, place in there.items()}
        self._launch(device, {name: place.view for name, place in there.items()})
        if device == "compiler":
            return ""
        for out in self.outputs:
            if problem := _compared(out, there[out.name].view, self.expected[out.name]):
                return f"{device}: {problem}"
        for name, place in there.items():
            if not np.array_equal(place.around(), before[name]):
                return f"{device}: memory around {name} has changed"
        return ""

    def _launch(self, device: str, arrays: dict[str, np.ndarray]) -> None:
        kernel = bn.jit(self._function(bn))
        given = tuple(parameter.argument(arrays) for parameter in self.parameters)
        if device == "emulator":
            emulated_gpu.launch(kernel, self.grid, given, self.options)
            return
        if device == "compiler":
            emulated_gpu.compiled(kernel, given, self.options)
            return
        options = self.options | {"interpreter": {"interpret": True}, "cpu": {"device": "cpu"},
                                  "gpu": {}}[device]
        kernel[self.grid](*given, **options)


def _compared(out: Output, found: np.ndarray, expected: np.ndarray) -> str:
    same = found == expected
    if out.dtype in (*FLOATS, *BYTE_FLOATS):
        a, b = (x.astype(np.float64 if x.dtype.itemsize < 8 else np.longdouble)
                for x in (found, expected))
        with np.errstate(all="ignore"):
            same = (a == b) | np.isnan(a) & np.isnan(b)
            if out.facts.ulps:
                spacing = np.spacing(np.abs(expected).astype(
                    np.float32 if out.dtype.itemsize == 2 else out.dtype)).astype(a.dtype)
                spacing *= {"float16": 2.0**13, "bfloat16": 2.0**16}.get(out.dtype.name, 1)
                same |= np.abs(a - b) <= out.facts.ulps * spacing + out.facts.absolute
    if same.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return (f"{out.name}{list(place)} is {found[place]!r}, must be {expected[place]!r}; "
            f"{int((~same).sum())} of {same.size} differ")


@dataclass
class Report:
    """What came of many kernels.   failures: seed -> what went wrong."""

    kernels: Counter = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Count the kernels of another report too."""
        self.kernels += other.kernels
        self.failures |= other.failures

    def __str__(self) -> str:
        done = ", ".join(f"{count} on {device}" for device, count in self.kernels.items())
        return f"kernels: {done}: {len(self.failures)} fail"


def problem_of(kernel: GeneratedKernel, devices: tuple[str, ...]) -> str:
    """What goes wrong on the first device where something does."""
    try:
        return next(filter(None, map(kernel.difference, devices)), "")
    except Exception as error:  # a fault of ours may raise anything
        if "is out of range for" in str(error) and kernel.is_refused_by_numpy:
            return ""  # one that is known at compile time; others wrap
        return f"{type(error).__name__}: {error}"


def check(seed: int, devices: tuple[str, ...]) -> Report:
    """Run one kernel on devices."""
    try:
        kernel = GeneratedKernel.of(seed)
    except Exception as error:
        return Report(Counter(devices), {seed: f"not made: {type(error).__name__}: {error}"})
    problem = problem_of(kernel, devices)
    return Report(Counter(devices), {seed: problem} if problem else {})


def failure_text(seed: int, problem: str, devices: tuple[str, ...], seconds: float = 30) -> str:
    """A kernel that fails, whole and shortened, and what goes wrong."""
    kernel = GeneratedKernel.of(seed)

    def is_as_wrong(source: str) -> bool:
        shorter = replace(kernel, source=source)
        try:
            shorter.expected  # NumPy must still understand it
        except Exception:
            return False
        found = problem_of(shorter, devices)
        return bool(found) and _kind(found) == _kind(problem)

    short = shortened(kernel.source, is_as_wrong, seconds)
    return (f"seed {seed}, grid {kernel.grid}, options {kernel.options}\n{kernel.parameters}\n"
            f"{kernel.inputs}\n{kernel.source}\n{problem}\nshortened:\n{short}")


def _kind(problem: str) -> str:
    """The kind of a problem, whatever the numbers in it."""
    is_difference = problem.startswith(DEVICES)
    return problem.partition(":")[0] if is_difference else problem[:40]


def _check_one(task: tuple[int, tuple[str, ...]]) -> Report:
    return check(*task)


def _reports(tasks: list, processes: int) -> Iterator[Report]:
    """What comes of kernels, as it comes; by this process alone where processes is 0."""
    if not processes:
        yield from map(_check_one, tasks)
        return
    # spawned, not forked: each process has a CUDA driver of its own
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1000) as pool:
        yield from pool.imap_unordered(_check_one, tasks, chunksize=4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", nargs="+", default=["cpu"], choices=DEVICES)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first kernel")
    parser.add_argument("--processes", type=int, default=2,
                        help="0: this one alone")
    parser.add_argument("--seconds", type=float, default=1e9, help="no more kernels after these")
    parser.add_argument("--shown", type=int, default=5, help="failures that are shortened")
    given, started = parser.parse_args(), time.time()
    whole, devices = Report(), tuple(given.on)
    tasks = [(seed, devices) for seed in range(given.seed, given.seed + given.count)]
    for number, report in enumerate(_reports(tasks, given.processes), 1):
        whole.add(report)
        for seed, problem in report.failures.items():
            print(f"seed {seed}: {problem[:600]}", flush=True)
        if number % SHOWN_EVERY == 0:
            print(f"{whole}, {time.time() - started:.0f} s", flush=True)
        if time.time() - started > given.seconds:
            break
    for seed, problem in [*whole.failures.items()][:given.shown]:
        if not problem.startswith("not made"):
            print(failure_text(seed, problem, devices), flush=True)
    print(f"{whole}\nof seeds {given.seed} to {given.seed + given.count - 1}, "
          f"{time.time() - started:.0f} s")
    return bool(whole.failures)


if __name__ == "__main__":
    sys.exit(main())
