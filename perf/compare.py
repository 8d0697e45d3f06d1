"""Measure the memory-bound kernels next to their peers: one table, and a file in results/."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import re
from pathlib import Path

import cupy
from measure import gpu_timer, interleaved, medians
from memory_cases import CASES, SUBJECT

ROUNDS, REPEATS = 20, 10
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("blocknumba", "torch", "triton", "cupy-cuda13x", "numba", "numba-cuda", "numpy",
            "nvidia-nvvm", "nvidia-nvjitlink")


def measure(names: list[str]) -> dict[str, dict]:
    """Per case: bytes moved and each competitor's median, in microseconds."""
    results = {}
    for name in names:
        case = CASES[name]()
        case.check()
        times = medians(interleaved(case.runs, gpu_timer(), ROUNDS, REPEATS))
        results[name] = {"bytes": case.bytes_moved,
                         "us": {who: round(seconds * 1e6, 2) for who, seconds in times.items()}}
        print(row(name, results[name]), flush=True)
    return results


def header() -> str:
    """The first two lines of the table."""
    peers = ("Triton", "Torch", "CuPy", "numba-cuda")
    titles = ("GB/s", SUBJECT, *peers, f"{SUBJECT} / Triton")
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def row(name: str, result: dict) -> str:
    """One line of the table: bytes moved per second by each, and the ratio to Triton."""
    rates = {who: result["bytes"] / us / 1e3 for who, us in result["us"].items()}
    cells = [f"{rate:.0f}" for rate in rates.values()]
    return f"| {name} | {' | '.join(cells)} | {rates[SUBJECT] / rates['Triton']:.3f} |"


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


def main() -> None:
    """Measure the cases whose names contain the given text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="part of the names of the cases")
    parser.add_argument("--output", type=Path, help="JSON file; default: results/CARD.json")
    options = parser.parse_args()
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()), "\n")
    print(header())
    results = measure([name for name in CASES if options.filter in name])
    slug = re.sub(r"\W+", "-", facts["card"]).strip("-").lower()
    output = options.output or RESULTS / f"memory-{slug}.json"
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps({"machine": facts, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
