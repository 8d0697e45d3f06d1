"""Kernels under NVIDIA's compute-sanitizer: memory errors, races in shared memory, barriers.

    python tests/sanitize.py --processes 14
    python tests/sanitize.py --tools racecheck --samples softmax generated --seconds 120

Needs a GPU, and compute-sanitizer of the CUDA Toolkit on the path or below CUDA_HOME.  Prints a
table of samples and tools: errors found, "right" or "wrong" by the sample's own check.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("memcheck", "racecheck", "synccheck")
EXAMPLES = ("softmax", "layernorm", "matmul", "attention", "transpose", "histogram", "gather_rows",
            "sums", "scan")
_CASES = "tests/conformance/run_cases.py --on gpu --processes 1 --count"
# one library alone: imports of the others take most of the time under a sanitizer
_CHECK = "import array_libraries, {0}; {0}.check(array_libraries.NUMPY)"
# name -> arguments of Python; each checks its results itself
SAMPLES: dict[str, tuple[str, ...]] = {
    name: ("-c", _CHECK.format(name)) for name in EXAMPLES} | {
    f"conformance of {what}": (*_CASES.split(), count, "--only", what) for what, count in (
        ("dot", "24"), ("reduce", "60"), ("sort", "40"), ("scan", "40"), ("gather", "40"),
        ("atomic", "40"))} | {
    "generated": ("tests/conformance/kernel_fuzzer.py", "--on", "gpu", "--count", "40",
                  "--processes", "0")}
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")


@dataclass(frozen=True)
class Outcome:
    """What a tool said of a sample.

    errors: that it found; None where it printed no summary.   is_right: the sample's own check.
    """

    sample: str
    tool: str
    errors: int | None
    is_right: bool
    seconds: float
    text: str

    def __str__(self) -> str:
        found = "no summary" if self.errors is None else f"{self.errors} errors"
        return f"{found}, {'right' if self.is_right else 'wrong'}, {self.seconds:.0f} s"

    @property
    def is_clean(self) -> bool:
        return self.errors == 0 and self.is_right


def errors_in(text: str) -> int | None:
    """The number of errors in a tool's summary; None where there is none."""
    found = _SUMMARY.findall(text)
    return sum(map(int, found)) if found else None


def sanitizer() -> str | None:
    """The path of compute-sanitizer."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [f"{home}/{folder}" for home in homes if home
              for folder in ("bin", "compute-sanitizer")]
    return shutil.which("compute-sanitizer", path=os.pathsep.join(
        [os.environ.get("PATH", ""), *places]))


def checked(program: str, sample: str, tool: str, seconds: float) -> Outcome:
    """Run one sample under one tool."""
    started = time.time()
    # calls of the driver that answer a question by an error are none of a kernel's
    options = ["--report-api-errors", "no"] if tool == "memcheck" else []
    command = [program, "--tool", tool, *options, sys.executable, *SAMPLES[sample]]
    path = os.pathsep.join([str(ROOT), str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired as stopped:
        text = (stopped.stdout or b"").decode(errors="replace")
        return Outcome(sample, tool, errors_in(text), False, seconds, f"{text}\nstopped")
    return Outcome(sample, tool, errors_in(done.stdout + done.stderr), done.returncode == 0,
                   time.time() - started, done.stdout + done.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="+", default=TOOLS, choices=TOOLS)
    parser.add_argument("--samples", nargs="+", default=list(SAMPLES), choices=list(SAMPLES))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=300, help="for one sample and tool")
    given, program = parser.parse_args(), sanitizer()
    if program is None:
        print("compute-sanitizer is neither on the path nor below CUDA_HOME")
        return 2
    pairs = [(sample, tool) for sample in given.samples for tool in given.tools]
    outcomes = []
    with ThreadPoolExecutor(given.processes) as pool:
        for outcome in pool.map(lambda pair: checked(program, *pair, given.seconds), pairs):
            print(f"{outcome.sample}, {outcome.tool}: {outcome}", flush=True)
            outcomes.append(outcome)
    width = max(map(len, given.samples))
    for sample in given.samples:
        cells = [f"{o.tool}: {o}" for o in outcomes if o.sample == sample]
        print(f"{sample:{width}}  " + "  |  ".join(cells))
    unclean = [o for o in outcomes if not o.is_clean]
    for outcome in unclean:
        print(f"\n{outcome.sample}, {outcome.tool}:\n{outcome.text[-3000:]}")
    print(f"{len(outcomes) - len(unclean)} of {len(outcomes)} clean")
    return bool(unclean)


if __name__ == "__main__":
    sys.exit(main())
