"""One process of public_kernels.py: compiles kernels under Triton and under us, and runs both.

Each kernel is tried with several guesses of its arguments until Triton's front end accepts one;
what it accepts must compile here.  Those that torch.compile wrote say their arguments themselves.
With a device both are run on equal data: every array is filled, so that what a kernel does not
write must stay.  Reports are lines of JSON on standard output.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import triton as theirs
import triton.language as their_language
from public_sources import Sources, declared_types
from public_variants import ieee_products, is_explained
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from blocknumba.dispatch.compile.ahead import parse_type, specialized
from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.errors import BlockError, RaceError
from blocknumba.tile_ir.ir.types import DType
from blocknumba.triton.porting.arguments import guessed, launched_values, uses_of
from blocknumba.triton.porting.command import base_kernel, chosen_by_decorators, kernels_of
from blocknumba.triton.porting.launches import Array
from blocknumba.triton.runtime.jit import JITFunction
from blocknumba.typing.context import Options
from blocknumba.typing.frontend import build

TRIES, RUN_TRIES = 8, 4
NOTHING = "nothing written"
ELEMENTS = ("fp16", "fp32", "bf16", "i32")
BEFORE, AFTER = 1 << 21, 1 << 23  # elements of an array before and after its address
GRID = (3, 2, 2)  # along the axes that a kernel asks for; 1 along others
STRIDES = (1, 64, 4096, 1 << 18)  # of the axes of one array, the last one first
TARGET, TARGET_NAME = GPUTarget("cuda", 90, 32), "sm_90a"
_TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32,
          "fp64": torch.float64, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
          "i64": torch.int64, "u8": torch.uint8, "i1": torch.bool,
          "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
_SPELLED = {"int": "i32", "float": "fp32", "bool": "i1", "int32": "i32", "int64": "i64",
            "float32": "fp32"}
_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-3, torch.float64: 1e-9,
              torch.float8_e4m3fn: 0.13, torch.float8_e5m2: 0.26}


@dataclass
class Report:
    """A kernel.

    ours, theirs: "ok", or the error of the front end.
    code: "ok", or the error of our compilation to machine code; empty where there is no device.
    run: "equal", "equal to Triton's own variation", or what differs; empty without a run.
    seconds, spills: of our compilation to machine code; of one processor.
    """

    file: str
    kernel: str
    ours: str = ""
    theirs: str = ""
    code: str = ""
    run: str = ""
    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    spills: int = 0


def their_kernel(value: object) -> object:
    """Triton's kernel below decorators; None for what is none."""
    for _ in range(16):
        if isinstance(value, theirs.runtime.JITFunction):
            return value
        value = getattr(value, "fn", None)
    return None


def their_constant(value: object) -> object:
    """A constant as Triton has it."""
    if isinstance(value, DType):
        names = {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
        return getattr(their_language, names.get(value.name, value.name))
    return value


def require_accepted(kernel: object, types: Mapping[str, str],
                     constants: Mapping[str, object]) -> None:
    """Let Triton's front end compile a kernel.  Errors: its own."""
    signature, known = {}, {}
    for number, name in enumerate(kernel.arg_names):
        if name in constants or types[name] == "int:1":
            signature[name] = "constexpr"
            known[number,] = their_constant(constants.get(name, 1))
        else:
            spelled = types[name].partition(":")[0]
            signature[name] = _SPELLED.get(spelled, spelled)
    backend = make_backend(TARGET)
    options, context = backend.parse_options({"num_warps": 4}), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    ASTSource(kernel, signature, known).make_ir(
        TARGET, options, backend.get_codegen_implementation(options), backend.get_module_map(),
        context)


def varied(kernel: JITFunction, types: Mapping[str, str], constants: Mapping[str, object],
           chosen: Mapping[str, object], seed: int) -> tuple[dict[str, str], dict[str, object]]:
    """A guess with other values where nothing says them."""
    rng, known = random.Random(seed), launched_values(kernel)
    types, constants = dict(types), dict(constants)
    kinds = uses_of(kernel).kinds
    for name in [name for name, value in constants.items() if value is None]:
        if kinds.get(name, "").startswith("pointer") and rng.random() < 0.7:
            del constants[name]
            types[name] = "*fp32:16"
    for name, spelled in types.items():
        value = known.get(name)
        is_free = spelled.startswith("*") and getattr(value, "element", None) is None
        if is_free and rng.random() < 0.5:
            types[name] = f"*{rng.choice(ELEMENTS)}:16"
    for name, value in constants.items():
        if name in chosen or (name in known and not isinstance(known[name], Array)):
            continue
        if isinstance(value, bool):
            constants[name] = rng.random() < 0.5
        elif isinstance(value, int) and value >= 16:
            constants[name] = rng.choice((16, 32, 64, 128))
    return types, constants


def numbers(kernel: JITFunction, types: Mapping[str, str], seed: int) -> dict[str, object]:
    """The values of the arguments that are no arrays."""
    rng, known, found = random.Random(seed), launched_values(kernel), {}
    for name, spelled in types.items():
        value = known.get(name)
        if spelled.startswith("*"):
            continue
        if isinstance(value, bool | int | float):
            found[name] = value
        elif spelled == "float":
            found[name] = rng.choice((0.5, 1.25))
        elif spelled == "bool":
            found[name] = rng.random() < 0.5
        elif "stride" not in name.lower():
            found[name] = rng.choice((48, 64))
    return strides([name for name in types if "stride" in name.lower() and name not in found
                    and not types[name].startswith("*")]) | found


def strides(names: Sequence[str]) -> dict[str, int]:
    """Strides of arrays whose elements lie apart: those of an array's axes grow to its first."""
    by_array: dict[str, list[str]] = {}
    for name in names:
        words = [word for word in name.lower().replace("stride", "").split("_") if word]
        array = "_".join(words[:-1]) if len(words) > 1 else "".join(words)[:-1]
        by_array.setdefault(array, []).append(name)
    return {name: STRIDES[min(len(axes) - 1 - number, len(STRIDES) - 1)] if len(axes) > 1 else 64
            for axes in by_array.values() for number, name in enumerate(axes)}


def grid_of(kernel: JITFunction) -> tuple[int, ...]:
    """The grid of a kernel, which has one program along the axes that it does not ask for."""
    axes = set(re.findall(r"(?:program_id|num_programs)\(\s*(?:axis\s*=\s*)?(\d)",
                          inspect.getsource(kernel.python_function)))
    return tuple(count if str(axis) in axes or not axes else 1 for axis, count in enumerate(GRID))


def filled(spelled: str, seed: int) -> torch.Tensor:
    """An array with room before its address, of random numbers."""
    dtype = _TORCH[spelled.strip("*").partition(":")[0]]
    generator = torch.Generator("cuda").manual_seed(seed)
    shape = (BEFORE + AFTER,)
    if dtype.is_floating_point:
        values = torch.randn(shape, generator=generator, device="cuda")
        return values.to(dtype)
    high = {torch.uint8: 256, torch.int8: 128, torch.bool: 2}.get(dtype, 8)
    low = -128 if dtype == torch.int8 else 0
    return torch.randint(low, high, shape, generator=generator, device="cuda").to(dtype)


def difference(ours: torch.Tensor, wanted: torch.Tensor, start: torch.Tensor) -> str:
    """Where two arrays differ more than the dtype's bound; empty where nowhere."""
    changed = (bits(wanted) != bits(start)) | (bits(ours) != bits(start))
    a, b = ours[changed], wanted[changed]
    if ours.dtype not in _TOLERANCE:
        bad = a != b
    else:
        a, b = a.double(), b.double()
        finite = b[b.isfinite()]
        scale = finite.square().mean().sqrt() if len(finite) else 0
        bad = ~(((a - b).abs() <= _TOLERANCE[ours.dtype] * (b.abs() + scale)) | (a == b)
                | (a.isnan() & b.isnan()))
    if not bad.any():
        return ""
    first = bad.nonzero()[0, 0]
    return (f"{int(bad.sum())} of {bad.numel()} written differ, first {a[first].item():.6g}, "
            f"wanted {b[first].item():.6g}")


def bits(array: torch.Tensor) -> torch.Tensor:
    """The bits of an array, as integers."""
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return array.view(sizes[array.element_size()])


class Worker:
    """Loads, guesses, compiles and runs.

    runs: on a device, too.  count: kernels of a file, at most, drawn by the seed.
    codes: to machine code, too, which needs no device.
    """

    def __init__(self, folders: list[Path], runs: bool, seed: int, count: int | None = None,
                 codes: bool = False):
        self._ours, self._theirs = Sources(folders, True), Sources(folders, False)
        self._runs, self._seed, self._count, self._codes = runs, seed, count, codes

    def reports(self, file: Path, kernels: set[str] | None) -> Iterator[Report]:
        """The reports of the kernels of a file."""
        module, original = self._ours.load(file), self._theirs.load(file)
        found = []
        for name, layered in kernels_of(module):
            uses, their = uses_of(base_kernel(layered)), their_kernel(getattr(original, name, None))
            if not uses.returns and their is not None and (kernels is None or name in kernels) and (
                    any(kind.startswith("pointer") for kind in uses.kinds.values())):
                found.append((name, layered, their))
        random.Random(f"{file.name} {self._seed}").shuffle(found)
        for name, layered, their in found[:self._count]:
            print(json.dumps({"begins": [str(file), name]}), flush=True)
            yield self._report(Report(str(file), name), layered, their)

    def _report(self, report: Report, layered: object, original: object) -> Report:
        kernel, chosen = base_kernel(layered), chosen_by_decorators(layered)
        declared = declared_types(Path(report.file), report.kernel)
        for number in range(RUN_TRIES if self._runs else TRIES):
            try:
                types, constants = declared or guessed(
                    kernel, uses_of(kernel), chosen, ELEMENTS[number % 2])
            except Exception as error:
                report.ours = report.theirs = f"guess: {said(error)}"
                return report
            if number > 1 and declared is None:
                types, constants = varied(kernel, types, constants, chosen, self._seed + number)
            constants = {name: constants[name] for name in constants if name in kernel.arg_names}
            try:
                require_accepted(original, types, constants)
                report.theirs = "ok"
            except BaseException as error:
                report.theirs = report.theirs or said(error.__cause__ or error)
                continue
            report.types = types
            report.constants = {name: str(value) for name, value in constants.items()}
            report.ours = self._typed(kernel, types, constants)
            if self._codes and report.ours == "ok":
                self._code(report, kernel, types, constants, chosen)
            if self._runs and report.ours == "ok":
                self._run(report, kernel, original, types, constants)
            if declared is not None:
                return report
            # another guess may let the kernel do something
            if report.run != NOTHING and not report.run.startswith("Triton stops"):
                return report
        return report

    def _typed(self, kernel: JITFunction, types: Mapping[str, str],
               constants: Mapping[str, object]) -> str:
        arguments = {name: parse_type(spelled, name) for name, spelled in types.items()}
        try:
            build(kernel.python_function, arguments, dict(constants), Options(dialect="triton"))
        except Exception as error:
            return said(error)
        return "ok"

    def _code(self, report: Report, kernel: JITFunction, types: Mapping[str, str],
              constants: Mapping[str, object], chosen: Mapping[str, object]) -> None:
        """Compile to machine code, without a device."""
        options = {key: value for key, value in chosen.items()
                   if key in OPTION_NAMES and key not in kernel.arg_names}
        begun = time.process_time()
        try:
            compiled = kernel.compile(*specialized(kernel, types, constants, TARGET_NAME, options))
        except Exception as error:
            report.code = said(error)
            return
        report.code, report.spills = "ok", compiled.stats.spills
        report.seconds = time.process_time() - begun

    def _run(self, report: Report, kernel: JITFunction, original: object,
             types: Mapping[str, str], constants: Mapping[str, object]) -> None:
        if any(spelled.startswith("tensordesc") for spelled in types.values()):
            report.code = report.run = "not run: descriptors"
            return
        given, grid = numbers(kernel, types, self._seed), grid_of(kernel)
        start = {name: filled(spelled, self._seed + number)
                 for number, (name, spelled) in enumerate(types.items())
                 if spelled.startswith("*")}

        def ran(launch: object, convert: object, **options: object) -> dict[str, torch.Tensor]:
            arrays = {name: array.clone() for name, array in start.items()}
            passed = {name: convert(value) for name, value in constants.items()}
            launch[grid](**given, **passed, **{name: array[BEFORE:]
                                               for name, array in arrays.items()}, **options)
            torch.cuda.synchronize()
            return arrays

        try:
            wanted = ran(original, their_constant, num_warps=4)
        except Exception as error:
            report.run = f"Triton stops: {said(error)}"
            if "illegal" in report.run or "CUDA" in report.run:
                print(json.dumps(asdict(report)), flush=True)
                sys.exit(1)
            return
        print(json.dumps({"ran": report.kernel}), flush=True)
        try:
            found = ran(kernel, lambda value: value)
            report.code = "ok"
        except BlockError as error:
            report.code = said(error)
            return
        report.run = compared(found, wanted, start)
        if report.run in ("equal", NOTHING):
            return
        if any(compared(ran(original, their_constant, num_warps=warps), wanted, start) != "equal"
               for warps in (8, 4, 1)):
            report.run = f"Triton differs from itself; {report.run}"
        elif race := race_of(kernel, grid, given | constants, start):
            report.run = f"undefined: {race}; {report.run}"
        elif is_more_exact(lambda: ran(original, their_constant, num_warps=4), found, wanted,
                           start):
            report.run = f"more exact; {report.run}"


def race_of(kernel: JITFunction, grid: tuple[int, ...], given: Mapping[str, object],
            start: Mapping[str, torch.Tensor]) -> str:
    """The race of a launch, which our CPU device looks for with debug=True; empty without one."""
    arrays = {name: array.cpu()[BEFORE:] for name, array in start.items()}
    try:
        kernel[grid](**given, **arrays, device="cpu", debug=True)
    except RaceError as error:
        return said(error)
    except BlockError:
        return ""  # an access outside of the arrays, which have room on the GPU
    return ""


def is_more_exact(run: Callable[[], Mapping[str, torch.Tensor]],
                  found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor],
                  start: Mapping[str, torch.Tensor]) -> bool:
    """Whether ours is no farther from Triton's products of float32 without tf32 than Triton's."""
    with ieee_products():
        exact = run()
    return all(is_explained("ieee", found[name], wanted[name], exact[name]) for name in wanted
               if difference(found[name], wanted[name], start[name]))


def compared(found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor],
             start: Mapping[str, torch.Tensor]) -> str:
    """The differences of all arrays; "equal" without any, "nothing written" if so."""
    texts = [f"{name}: {text}" for name in wanted
             if (text := difference(found[name], wanted[name], start[name]))]
    if texts:
        return "; ".join(texts)
    if all(torch.equal(bits(wanted[name]), bits(start[name])) for name in wanted):
        return NOTHING
    return "equal"


def said(error: BaseException) -> str:
    """An error on one line, with its place in the user's source."""
    text = " ".join(str(getattr(error, "message", None) or error).split())
    line = getattr(getattr(error, "loc", None), "line", "")
    text = re.sub(r"^at \d+:\d+:.*\^ *", "", text)
    return f"{type(error).__name__}: {text[-300:]}" + (f" (line {line})" if line else "")


def main() -> None:
    """Standard input: folders, runs, seed, count, and files with the kernels of each, as JSON."""
    warnings.simplefilter("ignore")
    task = json.load(sys.stdin)
    worker = Worker([Path(folder) for folder in task["folders"]], task["runs"], task["seed"],
                    task["count"], task["codes"])
    for file, kernels in task["files"]:
        begun = time.perf_counter()
        try:
            for report in worker.reports(Path(file), None if kernels is None else set(kernels)):
                print(json.dumps(asdict(report)), flush=True)
        except Exception as error:
            print(json.dumps(asdict(Report(file, "", theirs=f"not loaded: {said(error)}"))),
                  flush=True)
        print(json.dumps({"done": file, "seconds": time.perf_counter() - begun}), flush=True)


if __name__ == "__main__":
    main()
