"""Kinds of kernels that nobody here tuned, under Triton and under blocknumba.triton: one text.

    python perf/kinds.py [part of a name ...]          on a GPU, with Torch and Triton
    python perf/kinds.py --output FILE                 and all that is known, in a JSON file
    python perf/kinds.py --bound "fourth set"          those of a set: kinds_case.py names them
    python perf/kinds.py --code [part of a name ...]   our machine code for sm_90a, without a GPU
    python perf/kinds.py --small [part of a name ...]  small sizes, checked, on the CPU device

Interleaved; ours with the same warps and stages, and with those that blocknumba chooses. Results of
each side are compared with Torch's in float64: a side that is wrong is WRONG, and not in the means.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from unittest import mock

import kinds_attention  # noqa: F401  registers
import kinds_data  # noqa: F401  registers
import kinds_dots  # noqa: F401  registers
import kinds_fourth  # noqa: F401  registers
import kinds_fourth_dots  # noqa: F401  registers
import kinds_fourth_more  # noqa: F401  registers
import kinds_later  # noqa: F401  registers
import kinds_more  # noqa: F401  registers
import kinds_products  # noqa: F401  registers
import kinds_rows  # noqa: F401  registers
import kinds_third  # noqa: F401  registers
from kinds_case import KINDS, TOLERANCES, Kind, Launch, Make, worst
from measure import gpu_timer, interleaved, medians

import blocknumba as bn
import blocknumba.triton as ours
from blocknumba.settings import SETTINGS

TEXTS = ("kinds_kernels_rows", "kinds_kernels_data", "kinds_kernels_dots",
         "kinds_kernels_more", "kinds_kernels_attention", "kinds_kernels_products",
         "kinds_kernels_later", "kinds_kernels_third", "kinds_kernels_fourth",
         "kinds_kernels_fourth_more", "kinds_kernels_fourth_dots")
ROUNDS, SECONDS_OF_A_TIMING, MAX_REPEATS, CAP = 10, 2e-3, 20, 1.2
SECONDS_OF_A_LAUNCH, CLOCK_HZ = 60e-6, 1.8e9  # of the host, at most; of a GPU, about
TRITON, OURS, OWN_WARPS = "Triton", "ours", "own warps"
PACKAGES = ("blocknumba", "torch", "triton", "numba", "numba-cuda", "numpy", "nvidia-nvvm",
            "nvidia-nvjitlink")
SPELLED = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
           "float8_e4m3fn": "fp8e4nv", "int8": "i8", "uint8": "u8", "int32": "i32", "int64": "i64"}


def kernels_of(dialect: ModuleType | None) -> dict[str, object]:
    """The texts with a module under the name of Triton; None is Triton itself."""
    names = {} if dialect is None else {"triton": dialect, "triton.language": dialect.language}
    found = {}
    for text in TEXTS:
        path = Path(__file__).parent / f"{text}.py"
        spec = importlib.util.spec_from_file_location(f"{text}_{len(names)}", path)
        module = importlib.util.module_from_spec(spec)
        # leaving the patch would take from sys.modules what was imported within: Triton itself
        with mock.patch.dict(sys.modules, names) if names else nullcontext():
            spec.loader.exec_module(module)
        found |= vars(module)
    return found


def chosen_kinds(parts: Iterable[str], bound: str = "") -> list[Kind]:
    """Those with one of some parts in their names, all without, of some bound or set."""
    return [one for one in KINDS.values()
            if bound in one.bound and (not parts or any(part in one.name for part in parts))]


def signature_of(arguments: Iterable) -> tuple[str, ...]:
    """Types as Triton spells them, of tensors and numbers; tensors are aligned."""
    spelled = []
    for value in arguments:
        if isinstance(value, float):
            spelled.append("fp32")
        elif isinstance(value, int):  # what a launch would know of it
            power = min(16, value & -value)
            spelled.append("i32" if power == 1 < value or not value else f"i32:{power}")
        else:
            spelled.append(f"*{SPELLED[str(value.dtype).removeprefix('torch.')]}:16")
    return tuple(spelled)


def show_code(kinds: list[Kind]) -> None:
    """Our machine code at real sizes: registers, spills, seconds; or what stops it."""
    import torch

    kernels = kernels_of(ours)
    for one in kinds:
        launch = one.build(Make(torch, "meta"), **one.real)
        start = time.perf_counter()
        try:
            compiled = bn.compile(kernels[one.kernel], signature_of(launch.arguments),
                                  dict(launch.constants), target="sm_90a", **launch.options)
        except Exception as error:  # a finding
            print(f"{one.name:24} FAILS {type(error).__name__}: {error}", flush=True)
            continue
        stats = compiled.stats
        print(f"{one.name:24} {stats.registers:4} registers {stats.spills:5} spills "
              f"{time.perf_counter() - start:6.1f} s", flush=True)


def check_small(kinds: list[Kind]) -> bool:
    """Small sizes on the CPU device next to float64; whether all are right."""
    import torch

    kernels, right = kernels_of(ours), True
    for one in kinds:
        launch = one.build(Make(torch, "cpu"), **one.small)
        wanted = {i: expected() for i, expected in launch.wanted.items()}
        try:
            kernels[one.kernel][launch.grid](*launch.arguments, **launch.constants,
                                             **launch.options, device="cpu")
            error = error_of(torch, launch, wanted)
        except Exception as problem:  # a finding
            error = math.inf
            print(f"{one.name:24} FAILS {type(problem).__name__}: {problem}")
        right &= error <= 1
        print(f"{one.name:24} error / allowed {error:8.3f} {'' if error <= 1 else 'WRONG'}",
              flush=True)
    return right


def error_of(torch: ModuleType, launch: Launch, wanted: dict[int, object]) -> float:
    """The greatest error of a launch's results by what is allowed."""
    errors = []
    for index, expected in wanted.items():
        found = launch.arguments[index]
        usual = TOLERANCES[str(found.dtype).removeprefix("torch.")]
        size = launch.sizes[index]() if index in launch.sizes else None
        errors.append(worst(torch, found, expected, launch.tolerances.get(index, usual), size))
    return max(errors)


def measure_kind(torch: ModuleType, one: Kind, theirs: dict, mine: dict) -> dict:
    """Errors, first launches, registers and times of one kind."""
    launch = one.build(Make(torch, "cuda"), **one.real)
    wanted = {i: expected() for i, expected in launch.wanted.items()}
    first = {i: launch.arguments[i].clone() for i in (*wanted, *launch.restored)}
    result = {"kind": one.bound, "kernel": one.kernel, "sizes": dict(one.real),
              "grid": launch.grid, "constants": dict(launch.constants),
              "options": dict(launch.options), "sides": {}}
    runs = {}
    for who, kernels, options in ((TRITON, theirs, launch.options), (OURS, mine, launch.options),
                                  (OWN_WARPS, mine, {})):
        for index, value in first.items():
            launch.arguments[index].copy_(value)
        run = partial(kernels[one.kernel][launch.grid], *launch.arguments, **launch.constants,
                      **options)
        result["sides"][who] = side = first_launch(torch, run)
        if "fails" not in side:
            side["error"] = error_of(torch, launch, wanted)
            runs[who] = run
    del wanted
    times = timed(runs)
    for who, us in times.items():
        result["sides"][who]["us"] = round(us, 2)
    return result


def first_launch(torch: ModuleType, run: Callable) -> dict:
    """Seconds of a first launch, and registers and spills; or what stops it."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    try:
        compiled = run()
        torch.cuda.synchronize()
    except Exception as error:  # a finding; the table says so
        return {"fails": f"{type(error).__name__}: {error}"}
    return {"first launch, s": round(time.perf_counter() - start, 3),
            "registers": compiled.n_regs, "spills": compiled.n_spills}


def timed(runs: dict[str, Callable]) -> dict[str, float]:
    """Median microseconds on the GPU of each, in turns; as many launches a timing as take 2 ms."""
    if not runs:
        return {}
    timer = gpu_timer()
    slowest = max(min(timer(run, 1) for _ in range(3)) for run in runs.values())
    repeats = max(1, min(MAX_REPEATS, math.ceil(SECONDS_OF_A_TIMING / slowest)))
    return {who: 1e6 * seconds for who, seconds in medians(
        interleaved(runs, partial(queued_ahead, timer), ROUNDS, repeats)).items()}


def queued_ahead(timer: Callable, run: Callable, repeats: int) -> float:
    """Seconds of a run on the GPU, which sleeps while the host queues: launches cost nothing."""
    # here and not above: for a GPU only
    import torch

    torch.cuda._sleep(int(repeats * SECONDS_OF_A_LAUNCH * CLOCK_HZ))
    return timer(run, repeats)


def ratio(result: dict, who: str) -> float | None:
    """Triton's time by ours; None where a side fails or is wrong."""
    sides = [result["sides"][TRITON], result["sides"][who]]
    if any("us" not in side or not side["error"] <= 1 for side in sides):
        return None
    return sides[0]["us"] / sides[1]["us"]


def row_of(name: str, result: dict) -> str:
    """A line of the table, and a line for each side that fails or is wrong."""
    cells, notes = [name], []
    for who in (TRITON, OURS, OWN_WARPS):
        side = result["sides"][who]
        found = ratio(result, who)
        cells.append(f"{side['us']:.1f}" if "us" in side else "fails")
        if who != TRITON:
            cells.append("-" if found is None else f"{found:.3f}")
        if "fails" in side:
            notes.append(f"FAILS: {name}, {who}: {side['fails']}")
        elif not side["error"] <= 1:
            notes.append(f"WRONG: {name}, {who}: off by {side['error']:.3g} of what is allowed")
    for key in ("registers", "spills", "first launch, s"):
        cells.append(" / ".join(str(result["sides"][who].get(key, "-"))
                                for who in (TRITON, OURS, OWN_WARPS)))
    return "\n".join([f"| {' | '.join(cells)} |", *notes])


def means(results: dict[str, dict]) -> dict[str, dict]:
    """Geometric means of ratios, plain and capped, and the least, by what bounds a kernel."""
    found = {}
    bounds = dict.fromkeys(result["kind"] for result in results.values())
    for title in (*bounds, "all"):
        chosen = [result for result in results.values() if title in (result["kind"], "all")]
        for who in (OURS, OWN_WARPS):
            ratios = [r for r in (ratio(result, who) for result in chosen) if r is not None]
            if ratios:
                found[f"{title}, {who}"] = {
                    "kernels": len(ratios), "of": len(chosen), "mean": _mean(ratios),
                    "capped": _mean([min(r, CAP) for r in ratios]), "least": min(ratios)}
    return found


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def machine(torch: ModuleType) -> dict[str, str]:
    """Card, driver and versions."""
    driver = Path("/proc/driver/nvidia/version")
    installed = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    return {"card": torch.cuda.get_device_name(),
            "driver": driver.read_text().split("\n")[0] if driver.exists() else "unknown",
            "python": platform.python_version(), "date": datetime.date.today().isoformat(),
            **{name: installed[name] for name in PACKAGES if name in installed}}


def measure(kinds: list[Kind], output: Path | None) -> None:
    """The table, the means, and the file."""
    import torch

    torch.manual_seed(int.from_bytes(os.urandom(4), "little"))
    theirs, mine = kernels_of(None), kernels_of(ours)
    facts, results = machine(torch), {}
    print(", ".join(f"{key} {value}" for key, value in facts.items()), "\n")
    print("| kernel | Triton, us | ours, us | ratio | own warps, us | ratio | registers | spills "
          "| first launch, s |", "|---|---|---|---|---|---|---|---|---|", sep="\n")
    for one in kinds:
        results[one.name] = measure_kind(torch, one, theirs, mine)
        print(row_of(one.name, results[one.name]), flush=True)
        torch.cuda.empty_cache()
        found = {"machine": facts, "cap": CAP, "results": results, "means": means(results)}
        if output:
            output.write_text(json.dumps(found, indent=1) + "\n")
    print()
    for title, numbers in means(results).items():
        print(f"{title:28} {numbers['kernels']:3} of {numbers['of']:3}: mean "
              f"{numbers['mean']:.3f}, capped at {CAP} {numbers['capped']:.3f}, "
              f"least {numbers['least']:.3f}")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--bound", default="", help="part of what bounds them, or of a set")
    parser.add_argument("--code", action="store_true", help="machine code, without a GPU")
    parser.add_argument("--small", action="store_true", help="small sizes on the CPU device")
    parser.add_argument("--output", type=Path, help="JSON file")
    chosen = parser.parse_args()
    kinds = chosen_kinds(chosen.names, chosen.bound)
    if chosen.code:
        show_code(kinds)
    elif chosen.small:
        sys.exit(0 if check_small(kinds) else 1)
    else:
        # so that first launches compile
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"TRITON_CACHE_DIR": folder}), mock.patch.object(
                    SETTINGS, "cache", False):
            measure(kinds, chosen.output)


if __name__ == "__main__":
    main()
