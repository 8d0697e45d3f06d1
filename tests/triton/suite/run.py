"""Triton's own unit tests against blocknumba.triton: a table of what passes.

    python tests/triton/suite/run.py CHECKOUT [--cases 12] [--sample 0] [--processes 2]
                                     [--device cpu|cuda] [--emulate] [--only TEXT] [--out FILE]

CHECKOUT: a folder with Triton's python/test/unit and python/triton.  Needs Torch, SciPy and
pytest.  See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from table import left_out, printed, records_of, running_case

HERE = Path(__file__).parent
HELPERS = ("_internal_testing.py", "_filecheck.py", "tools/mxfp.py")


def main() -> None:
    """Prepare a scratch folder, run, print the table."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        folder = prepared(Path(options.checkout) / "python", Path(scratch), options.device)
        answers = [folder / f"answers{part}.jsonl" for part in range(options.processes)]
        deadline = None if options.limit is None else time.monotonic() + options.limit
        with ThreadPoolExecutor(options.processes) as pool:
            list(pool.map(lambda part: _run(folder, options, part, answers[part], deadline),
                          range(options.processes)))
        text = "".join(path.read_text() for path in answers if path.exists())
    if options.out:
        Path(options.out).write_text(text)
    print(printed(records_of(text)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout")
    parser.add_argument("--cases", type=int, default=12, help="of each function at most")
    parser.add_argument("--sample", type=int, default=0, help="which cases: another sample")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--emulate", action="store_true", help="launches on sm_90a too")
    parser.add_argument("--only", default="", help="parts of file::function, by commas")
    parser.add_argument("--limit", type=float, default=None, help="seconds for all of it")
    parser.add_argument("--out", help="a file for the answers, one JSON object a line")
    return parser.parse_args()


def _run(folder: Path, options: argparse.Namespace, part: int, answers: Path,
         deadline: float | None) -> None:
    """One part of the cases, to its end or the deadline; one that ends the process has failed."""
    while True:
        process = _started(folder, options, part, answers)
        try:
            process.wait(None if deadline is None else max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print("stopped by the limit: some cases did not run")
            process.kill()
            return
        if process.returncode >= 0:
            if process.returncode in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
                raise SystemExit("pytest could not run the cases: see above")
            return
        with answers.open("a") as file:
            print(json.dumps(json.loads(running_case(answers).read_text()) | {
                "outcome": "failed", "seconds": 0, "expects_error": False,
                "error": f"the process ended by signal {-process.returncode}"}), file=file)


def prepared(sources: Path, scratch: Path, device: str) -> Path:
    """The tests in a folder of their own, for a device; beside them the helpers they import."""
    tests = scratch / "tests"
    tests.mkdir()
    for room in ("language", "runtime"):
        for path in sorted((sources / "test" / "unit" / room).glob("*.py")):
            text = _for_device(path.read_text(), device)
            if not path.name.startswith("test_"):  # a program that a test starts
                text = f"import replacement\n{text}"
            (tests / path.name).write_text(text)
    for name in HELPERS:
        target = scratch / "triton" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((sources / "triton" / name).read_text())
    with (scratch / "triton" / HELPERS[0]).open("a") as file:
        file.write("\n\nis_cpu = lambda: False  # what Triton's own CPU backend lacks, we do not\n")
    return tests


def _for_device(text: str, device: str) -> str:
    """The text of a test for a device; targets of compilations stay."""
    if device == "cuda":
        return text
    asked = re.sub(r"""device != ["']cpu["']""", "True", text)  # of Triton's own CPU backend
    return re.sub(r"""(?<!GPUTarget\()(["'])cuda\1""", r"\1cpu\1", asked)


def _started(folder: Path, options: argparse.Namespace, part: int, answers: Path,
             ) -> subprocess.Popen:
    """pytest over one part of the cases."""
    wanted = {"CASES": options.cases, "SAMPLE": options.sample, "PART": part,
              "PARTS": options.processes, "DEVICE": options.device, "ONLY": options.only,
              "EMULATE": int(options.emulate), "ANSWERS": answers,
              "HELPERS": folder.parent / "triton"}
    environment = {**os.environ, **{f"SUITE_{name}": str(value) for name, value in wanted.items()},
                   "PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent.parent),
                                                  os.environ.get("PYTHONPATH", "")))}
    files = [path.name for path in sorted(folder.glob("test_*.py"))
             if path.name not in left_out(options.device)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "replacement", "-p", "no:cacheprovider",
               "--continue-on-collection-errors", "--capture=sys", "--tb=no", "-W", "ignore",
               "--rootdir", str(folder), *files]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
