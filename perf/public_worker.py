"""One process of public_kernels.py: compiles kernels under Triton and under us, and runs both.

Each kernel is tried with several guesses of its arguments until Triton's front end accepts one;
what it accepts must compile here.  Those that torch.compile wrote say their arguments themselves.
Both may be run on equal data (public_runs.py).  Reports are lines of JSON on standard output.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import triton as theirs
from public_runs import (
    NOTHING,
    Launch,
    TritonStops,
    cpu_result,
    gpu_result,
    launch_of,
    said,
    their_constant,
)
from public_sources import Sources, declared_types
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from blocknumba.dispatch.compile.ahead import parse_type, specialized
from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.triton.porting.arguments import guessed, launched_values, uses_of
from blocknumba.triton.porting.command import base_kernel, chosen_by_decorators, kernels_of
from blocknumba.triton.porting.launches import Array
from blocknumba.triton.runtime.jit import JITFunction
from blocknumba.typing.context import Options
from blocknumba.typing.frontend import build

TRIES, RUN_TRIES = 8, 4
ELEMENTS = ("fp16", "fp32", "bf16", "i32")
TARGET, TARGET_NAME = GPUTarget("cuda", 90, 32), "sm_90a"
_SPELLED = {"int": "i32", "float": "fp32", "bool": "i1", "int32": "i32", "int64": "i64",
            "float32": "fp32"}


@dataclass
class Report:
    """A kernel.

    ours, theirs: "ok", or the error of the front end.
    code: "ok", or the error of our compilation to machine code; empty where there is no device.
    run: "equal", "equal to Triton's own variation", or what differs; empty without a run.
    seconds, spills: of our compilation to machine code; of one processor; bytes of local memory.
    their_seconds, their_spills: of Triton's.
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
    their_seconds: float = 0.0
    their_spills: int = 0


def their_kernel(value: object) -> object:
    """Triton's kernel below decorators; None for what is none."""
    for _ in range(16):
        if isinstance(value, theirs.runtime.JITFunction):
            return value
        value = getattr(value, "fn", None)
    return None


def require_accepted(kernel: object, types: Mapping[str, str],
                     constants: Mapping[str, object]) -> None:
    """Let Triton's front end compile a kernel.  Errors: its own."""
    backend = make_backend(TARGET)
    options, context = backend.parse_options({"num_warps": 4}), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    their_source(kernel, types, constants).make_ir(
        TARGET, options, backend.get_codegen_implementation(options), backend.get_module_map(),
        context)


def their_source(kernel: object, types: Mapping[str, str],
                 constants: Mapping[str, object]) -> ASTSource:
    """A kernel with its arguments, as Triton compiles it; those that divide by 16 as ours."""
    signature, known, aligned = {}, {}, {}
    for number, name in enumerate(kernel.arg_names):
        if name in constants or types[name] == "int:1":
            signature[name] = "constexpr"
            known[number,] = their_constant(constants.get(name, 1))
            continue
        spelled, _, multiple = types[name].partition(":")
        signature[name] = _SPELLED.get(spelled, spelled)
        if multiple == "16":
            aligned[number,] = [["tt.divisibility", 16]]
    return ASTSource(kernel, signature, known, aligned)


def their_machine_code(kernel: object, types: Mapping[str, str], constants: Mapping[str, object],
                       options: Mapping[str, object]) -> tuple[float, int]:
    """Seconds of a processor and bytes of spills of Triton's compilation.  Errors: its own."""
    log, begun = io.StringIO(), seconds_used()
    with tempfile.TemporaryDirectory() as made, contextlib.redirect_stdout(log):
        theirs.knobs.cache.dir, theirs.knobs.nvidia.dump_ptxas_log = made, True
        theirs.compile(their_source(kernel, types, constants), TARGET, dict(options))
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", log.getvalue())
    return seconds_used() - begun, sum(map(int, spills))


def seconds_used() -> float:
    """Seconds of processors that this process and the ended ones that it started have used."""
    used = os.times()
    return sum(used[:4])


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


class Worker:
    """Loads, guesses, compiles and runs.

    runs: "cuda" or "cpu", to run there, or None.  count: kernels of a file, at most, drawn by the
    seed.  codes: to machine code, too, which needs no device.
    """

    def __init__(self, folders: list[Path], runs: str | None, seed: int, count: int | None = None,
                 codes: bool = False):
        self._ours, self._theirs = Sources(folders, True), Sources(folders, False)
        self._runs, self._seed, self._count, self._codes = runs, seed, count, codes
        # Triton's interpreter rounds float16 after each operation, which its code does not
        self._elements = ("fp32", "fp16") if runs == "cpu" else ELEMENTS

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
                    kernel, uses_of(kernel), chosen, self._elements[number % 2])
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
                self._their_code(report, original, types, constants, chosen)
            if self._runs and report.ours == "ok":
                if any(spelled.startswith("tensordesc") for spelled in types.values()):
                    report.code = report.run = "not run: descriptors"
                    return report
                self._run(report, launch_of(kernel, original, types, constants, self._seed,
                                            self._runs))
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

    def _their_code(self, report: Report, original: object, types: Mapping[str, str],
                    constants: Mapping[str, object], chosen: Mapping[str, object]) -> None:
        """Compile by Triton to machine code, which some that its front end accepts do not reach."""
        options = {key: chosen[key] for key in ("num_warps", "num_stages")
                   if key in chosen and key not in original.arg_names}
        with contextlib.suppress(Exception):
            report.their_seconds, report.their_spills = their_machine_code(
                original, types, constants, options)

    def _run(self, report: Report, launch: Launch) -> None:
        try:
            if self._runs == "cpu":
                report.code, report.run = cpu_result(launch)
            else:
                report.code, report.run = gpu_result(
                    launch, lambda: print(json.dumps({"ran": report.kernel}), flush=True))
        except TritonStops as error:
            report.run = f"Triton stops: {error}"
            if self._runs == "cuda" and ("illegal" in report.run or "CUDA" in report.run):
                print(json.dumps(asdict(report)), flush=True)
                sys.exit(1)



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
