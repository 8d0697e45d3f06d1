"""Measure blocknumba next to its peers on the GPU: tables to read, and a file in results/.

    python perf/compare.py                 memory-bound kernels and launches
    python perf/compare.py --memory f16    only the memory-bound kernels with f16 in their names
    python perf/compare.py --launch        only the launches
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import re
from pathlib import Path

import cupy
from launch_cases import measure_launches
from measure import gpu_timer, interleaved, medians
from memory_cases import CASES, SUBJECT

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


def compare_launches() -> dict[str, float]:
    """Print the table of launches; host microseconds of each."""
    times_us = _medians_us(measure_launches())
    print(_line(("host us per launch", *times_us)), _line(["---"] * (1 + len(times_us))), sep="\n")
    print(_line(("3 arrays, 1 int", *(f"{us:.1f}" for us in times_us.values()))))
    return times_us


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


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", metavar="PART", nargs="?", const="",
                        help="memory-bound kernels whose names hold PART")
    parser.add_argument("--launch", action="store_true", help="launches")
    parser.add_argument("--output", type=Path, help="JSON file; default: results/CARD.json")
    options = parser.parse_args()
    everything = options.memory is None and not options.launch
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()), "\n")
    found: dict[str, object] = {"machine": facts}
    if everything or options.memory is not None:
        found["memory"] = compare_memory(options.memory or "")
        print()
    if everything or options.launch:
        found["launch, us"] = compare_launches()
    output = options.output or RESULTS / f"{re.sub(r'[^a-z0-9]+', '-', facts['card'].lower())}.json"
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(found, indent=1) + "\n")
    print(f"\nwrote {output}")


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
