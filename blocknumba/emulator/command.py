"""`python -m blocknumba emulate`: run a kernel in NumPy, print its counters beside its source."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from blocknumba.emulator.errors import EmulatorError
from blocknumba.emulator.launch import Options
from blocknumba.emulator.listing import listing
from blocknumba.emulator.module import Module, Parameter
from blocknumba.errors import require
from blocknumba.text_files import read_text
from blocknumba.wording import MAX_TEXT, quoted

_THREADS = 128  # of a block, when nothing is said
MAX_ELEMENTS = 1 << 28  # of an array; more would take longer to fill than anybody waits
MAX_AXES = 64  # Source: NumPy, ndarray
_ARRAY = re.compile(r"(\w+)\[((?:[0-9]{1,18}(?:,[0-9]{1,18})*,?)?)\]")
_EXTENT = re.compile(r"[1-9][0-9]{0,9}")
_COUNT = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
           "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
           "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}


@dataclass(frozen=True, slots=True)
class Launchable:
    """A kernel and all that its launch needs."""

    ptx: str
    kernel: str
    grid: Sequence[int]
    block: Sequence[int]
    parameters: Sequence[Parameter]
    shared_bytes: int = 0
    cluster: Sequence[int] | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("kernel", help="FILE:NAME of a kernel; FILE is PTX or Python")
    parser.add_argument("parameters", nargs="*", help="what it is given: numbers, and arrays as "
                        "f32[1024] or i32[64,64], filled with random numbers")
    parser.add_argument("--grid", type=_extents, default=(1,), help="blocks, as 4 or 4,2")
    parser.add_argument("--block", type=_extents, help="threads of a block, of PTX; 128 by default")
    parser.add_argument("--cluster", type=_extents, help="blocks of a cluster, of PTX")
    parser.add_argument("--shared", type=_count, help="bytes of dynamic shared memory, of PTX")
    parser.add_argument("--order", type=_count, help="run warps in the random order of this seed")
    parser.add_argument("--no-races", action="store_true", help="do not look for races")


def run(arguments: argparse.Namespace,
        prepare: Callable[[argparse.Namespace, list[Parameter]], Launchable] | None = None) -> int:
    """Run the kernel and print the listing; the exit status.

    prepare: makes the PTX of a kernel in a Python file; without it only PTX files are accepted.
    Errors: EmulatorError for what the kernel does wrong.
    """
    parameters = [parse_parameter(text, seed)
                  for seed, text in enumerate(arguments.parameters)]
    launchable = (prepare or from_ptx)(arguments, parameters)
    report = Module.parse(launchable.ptx).launch(
        launchable.kernel, launchable.grid, launchable.block, launchable.parameters,
        launchable.shared_bytes, cluster=launchable.cluster,
        options=Options(seed=arguments.order, races=not arguments.no_races))
    print(listing(report, launchable.ptx))
    return 0


def from_ptx(arguments: argparse.Namespace, parameters: list[Parameter]) -> Launchable:
    """The kernel of a PTX file, launched as the arguments say.

    Errors: EmulatorError for a file that is not PTX; BlockValueError when it cannot be read.
    """
    path, _, name = arguments.kernel.rpartition(":")
    require(path.endswith(".ptx"), "emulate: given {!r}, accepted FILE.ptx:NAME", arguments.kernel,
            error=EmulatorError)
    return Launchable(read_text(path, "emulate"), name, arguments.grid,
                      arguments.block or (_THREADS,), parameters, arguments.shared or 0,
                      arguments.cluster)


def parse_parameter(text: str, seed: int = 0) -> Parameter:
    """A number, or an array of random numbers from its dtype and shape.

    Errors: EmulatorError for any other text.
    """
    array = _ARRAY.fullmatch(text)
    if array is None:
        return _number(text)
    require(array[1] in _DTYPES, "emulate: given the dtype {}, accepted {}", array[1][:MAX_TEXT],
            ", ".join(_DTYPES), error=EmulatorError)
    dtype = np.dtype(_DTYPES[array[1]])
    shape = [int(extent) for extent in array[2].split(",") if extent.strip()]
    require(math.prod(shape) <= MAX_ELEMENTS and len(shape) <= MAX_AXES,
            "emulate: given the array {}, accepted at most {} "
            "elements and {} axes", quoted(text), MAX_ELEMENTS, MAX_AXES, error=EmulatorError)
    random = np.random.default_rng(seed)
    if dtype.kind in "iu":
        return random.integers(0, 100, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _number(text: str) -> int | float:
    if _NUMBER.fullmatch(text):
        return int(text)
    with contextlib.suppress(ValueError):
        if not text.lstrip("+-").isdigit():
            return float(text)
    raise EmulatorError(f"emulate: given the parameter {quoted(text)}, accepted a number, or an "
                        "array such as f32[1024]")


def _count(text: str) -> int:
    """An int that is not negative.  Errors: ArgumentTypeError."""
    if not _COUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"given {quoted(text)}, accepted an int from 0 on")
    return int(text)


def _extents(text: str) -> tuple[int, ...]:
    """Extents as 4 or 4,2.  Errors: ArgumentTypeError for what is not 1 to 3 positive ints."""
    extents = text.split(",")
    if not (len(extents) <= 3 and all(map(_EXTENT.fullmatch, extents))):
        raise argparse.ArgumentTypeError(f"given {quoted(text)}, accepted 1 to 3 "
                                         "positive ints, as 4 or 4,2")
    return tuple(map(int, extents))
