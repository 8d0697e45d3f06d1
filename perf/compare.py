"""Measure blocknumba next to its peers on the GPU: tables to read, and a file in results/.

    python perf/compare.py                 everything
    python perf/compare.py --memory f16    only the memory-bound kernels with f16 in their names
    python perf/compare.py --matmul f16    only the products of matrices with f16 in their names
    python perf/compare.py --attention     only attention
    python perf/compare.py --launch        only the launches
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import re
from collections.abc import Callable
from pathlib import Path

import attention_cases
import cupy
import matmul_cases
from launch_cases import BOUND, DRIVER, OTHERS, SUBJECTS, TRITON, measure_launches
from launch_kernels import ARGUMENTS
from measure import gpu_timer, interleaved, median_ratio, medians
from memory_cases import CASES, SUBJECT
from product_cases import Case
from product_rounding import MAX_ANYWHERE, MAX_MEAN

ROUNDS, REPEATS = 20, 10
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("blocknumba", "torch", "triton", "cupy-cuda13x", "numba", "numba-cuda", "numpy",
            "nvidia-nvvm", "nvidia-nvjitlink")
PEERS = ("Triton", "Torch", "CuPy", "numba-cuda")


def compare_memory(part: str) -> dict[str, dict]:
    """Print the table of the cases whose names hold part; bytes and microseconds of each."""
    titles = ("GB/s", SUBJECT, *PEERS, f"{SUBJECT} / Triton")
    print(_line(titles), _line(["---"] * len(titles)), sep="\n")
    results = {}
    for name in (name for name in CASES if part in name):
        case = CASES[name]()
        case.check()
        times_us = _medians_us(interleaved(case.runs, gpu_timer(), ROUNDS, REPEATS))
        results[name] = {"bytes": case.bytes_moved, "us": times_us}
        rates = {who: case.bytes_moved / us / 1e3 for who, us in times_us.items()}
        cells = [f"{rates[who]:.0f}" for who in (SUBJECT, *PEERS)]
        print(_line([name, *cells, f"{rates[SUBJECT] / rates['Triton']:.3f}"]), flush=True)
    return results


def compare_products(cases: dict[str, Callable[[], Case]], peers: tuple[str, ...],
                     part: str) -> dict[str, dict]:
    """Print rates, and ratios to peers, of the cases whose names hold part; all that is known."""
    ratios = [f"{SUBJECT} / {peer}" for peer in peers]
    titles = ("TFLOP/s", SUBJECT, *peers, *ratios)
    print(_line(titles), _line(["---"] * len(titles)), sep="\n")
    results = {}
    for name in (name for name in cases if part in name):
        case = cases[name]()
        errors, samples = case.errors(), case.samples()
        times_us = _medians_us(samples)
        faster = {peer: round(median_ratio(samples, peer, SUBJECT), 4)
                  for peer in peers if peer in samples}
        results[name] = {"operations": case.operations, "us": times_us, "ratios": faster,
                         "errors": errors}
        rates = {who: f"{case.operations / us / 1e6:.0f}" for who, us in times_us.items()}
        cells = [rates.get(who, "") for who in (SUBJECT, *peers)]
        cells += [f"{faster[peer]:.3f}" if peer in faster else "" for peer in peers]
        print(_line([name, *cells]), flush=True)
        _print_wrong(case, errors)
    return results


def print_errors(results: dict[str, dict]) -> None:
    """Print the table of errors of products."""
    titles = ("off from float64", "greatest / (abs(a) @ abs(b))", "norm / norm", "who")
    print(_line(titles), _line(["---"] * len(titles)), sep="\n")
    for name, result in results.items():
        for who, off in result["errors"].items():
            print(_line([name, f"{off['of terms']:.1e}", f"{off['relative']:.1e}", who]))


def compare_matmul(part: str) -> dict[str, dict]:
    """Products of matrices: rates, then errors, also of cases that are not timed."""
    results = compare_products(matmul_cases.CASES, matmul_cases.PEERS, part)
    for name, make in matmul_cases.EXACT_CASES.items():
        if part in name:
            case = make()
            results[name] = {"errors": case.errors()}
            _print_wrong(case, results[name]["errors"])
    print()
    print_errors(results)
    return results


def compare_attention(part: str) -> dict[str, dict]:
    """Attention: rates, then errors."""
    results = compare_products(attention_cases.CASES, attention_cases.PEERS, part)
    print()
    print_errors(results)
    return results


def compare_launches() -> dict[str, dict[str, float]]:
    """Print the table of launches; host microseconds of each, by the number of arguments."""
    results: dict[str, dict[str, float]] = {}
    for count in ARGUMENTS:
        times_us = _medians_us(measure_launches(count))
        results[f"{count} arguments"] = times_us
        own = {who: us for who, us in times_us.items() if who not in OTHERS}
        if len(results) == 1:
            ratios = ("slowest / driver", "bound / driver", "Torch / Triton")
            titles = ("host us per launch", *own, *ratios)
            print(_line(titles), _line(["---"] * len(titles)), sep="\n")
        arrays, numbers = ARGUMENTS[count]
        ratios = (max(own[who] for who in SUBJECTS) / own[DRIVER], own[BOUND] / own[DRIVER],
                  own[SUBJECTS[1]] / own[TRITON])
        print(_line([f"{count}: {arrays} arrays, {numbers} ints",
                     *(f"{us:.2f}" for us in own.values()), *(f"{r:.2f}" for r in ratios)]),
              flush=True)
    for who in OTHERS:
        print(f"{who}: {results['4 arguments'][who]:.2f} us")
    return results


def machine() -> dict[str, str]:
    """Card, driver and versions."""
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    versions = {name: _version(name) for name in PACKAGES}
    return {"card": properties["name"].decode(),
            "driver": _driver(),
            "CUDA of the driver": str(cupy.cuda.runtime.driverGetVersion()),
            "python": platform.python_version(),
            "date": datetime.date.today().isoformat(),
            **{name: version for name, version in versions.items() if version}}


# name on the command line -> what it measures; what measures the cases whose names hold a part
SECTIONS: dict[str, tuple[str, Callable[[str], dict]]] = {
    "memory": ("memory-bound kernels", compare_memory),
    "matmul": ("products of matrices", compare_matmul),
    "attention": ("attention", compare_attention),
}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (what, _) in SECTIONS.items():
        parser.add_argument(f"--{name}", metavar="PART", nargs="?", const="",
                            help=f"{what} whose names hold PART")
    parser.add_argument("--launch", action="store_true", help="launches")
    parser.add_argument("--output", type=Path,
                        help="JSON file; default: results/CARD.json.  What was measured before "
                        "of what is not measured now stays in it")
    options = parser.parse_args()
    parts = {name: getattr(options, name) for name in SECTIONS}
    if not options.launch and all(part is None for part in parts.values()):
        options.launch, parts = True, dict.fromkeys(SECTIONS, "")
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()), "\n")
    output = options.output or RESULTS / f"{re.sub(r'[^a-z0-9]+', '-', facts['card'].lower())}.json"
    output.parent.mkdir(exist_ok=True)
    for name, (_, measure) in SECTIONS.items():
        if parts[name] is not None:
            record(output, name, facts, measure(parts[name]))
            print()
    if options.launch:
        record(output, "launch, us", facts, compare_launches())
    print(f"\nwrote {output}")


def record(output: Path, section: str, facts: dict[str, str], results: dict) -> None:
    """Put a section, with the machine that it was measured on, into a file."""
    found = json.loads(output.read_text()) if output.exists() else {}
    found[section] = {"machine": facts, "results": results}
    output.write_text(json.dumps(found, indent=1) + "\n")


def _print_wrong(case: Case, errors: dict[str, dict[str, float]]) -> None:
    for who in case.wrong(errors):
        off = errors[who]
        print(f"WRONG: {who}, off by {off['mean']:.1e} of what its roundings make typical, and by "
              f"{off['anywhere']:.1e} in one place; {MAX_MEAN:g} and {MAX_ANYWHERE:g} are right")


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def _medians_us(samples) -> dict[str, float]:
    return {who: round(seconds * 1e6, 2) for who, seconds in medians(samples).items()}


def _driver() -> str:
    """The version of the kernel driver.  Source: /proc/driver/nvidia/version."""
    path = Path("/proc/driver/nvidia/version")
    found = re.search(r"\d+\.\d+(\.\d+)?", path.read_text()) if path.exists() else None
    return found[0] if found else "unknown"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
