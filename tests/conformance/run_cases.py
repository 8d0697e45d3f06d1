"""Runs many cases by several processes, and counts them by op.

    python tests/conformance/run_cases.py --count 0                     counts only
    python tests/conformance/run_cases.py                               all, by the interpreter
    python tests/conformance/run_cases.py --on cpu
    python tests/conformance/run_cases.py --on emulator --count 2000 --targets sm_80 sm_90a sm_100
    python tests/conformance/run_cases.py --on gpu --processes 16

On a GPU a pool compiles all kernels, and then one process launches them.  --count draws as many
cases, spread over all ops; --only runs those whose names have a text in them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

if __name__ == "__main__":
    HERE = Path(__file__).parent
    sys.path[:0] = [str(HERE.parents[1]), str(HERE), str(HERE.parent)]

from case import CASES, Case  # noqa: E402
from cases import cases_of, spread  # noqa: E402
from cpu_executor import is_native, run_natively  # noqa: E402
from emulator_executor import emulated  # noqa: E402
from executors import difference, interpreted  # noqa: E402
from gpu_executor import Gpu, MachineCode, compiled  # noqa: E402

from blocknumba.dispatch.launch.driver import require_driver  # noqa: E402
from blocknumba.nvvm_lower.target import Target  # noqa: E402

CHUNK = 50  # cases of a task
TARGETS = ("sm_80", "sm_90a", "sm_100")


@dataclass(frozen=True)
class Task:
    """Some cases of an op, by their numbers, and what to do with them.

    on: "interpreter", "cpu", "emulator" or "compiler", whose target is named.
    """

    name: str
    numbers: tuple[int, ...]
    on: str
    target: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a task.  failures: "case: what is wrong"; made: machine code by number."""

    task: Task
    failures: tuple[str, ...]
    made: tuple[tuple[int, MachineCode], ...] = ()


@lru_cache(maxsize=4)
def _cases(name: str) -> list[Case]:
    return list(cases_of(name))


def _difference(case: Case, task: Task) -> str:
    if task.on == "interpreter":
        return difference(case, interpreted(case))
    if task.on == "emulator":
        return difference(case, emulated(case, Target.parse(task.target)))
    return difference(case, run_natively(case)) if is_native(case) else ""


def perform(task: Task) -> Outcome:
    """Run the cases of a task, or compile them."""
    failures, made = [], []
    for number in task.numbers:
        case = _cases(task.name)[number]
        try:
            if task.on == "compiler":
                made.append((number, compiled(case, Target.parse(task.target))))
            elif wrong := _difference(case, task):
                failures.append(f"{case}: {wrong}")
        except Exception as error:  # a fault of ours may raise anything
            failures.append(f"{case}: {type(error).__name__}: {str(error)[:300]}")
    return Outcome(task, tuple(failures), tuple(made))


def tasks(chosen: dict[str, list[int]], on: str, targets: Sequence[str]) -> list[Task]:
    """All that is to be done, in tasks of a few cases."""
    return [Task(name, tuple(numbers[start:start + CHUNK]), on, target)
            for target in targets for name, numbers in chosen.items()
            for start in range(0, len(numbers), CHUNK)]


def _launched(outcome: Outcome, gpu: Gpu) -> list[str]:
    failures = list(outcome.failures)
    for number, code in outcome.made:
        case = _cases(outcome.task.name)[number]
        if wrong := difference(case, gpu.launch(case, code)):
            failures.append(f"{case}: {wrong}")
    return failures


def _run(todo: list[Task], processes: int) -> list[Outcome]:
    # spawned, not forked: the CUDA driver of this process is not that of a child
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return list(pool.imap_unordered(perform, todo))


def _table(counts: dict[str, int]) -> str:
    cells = [f"{name} {count}" for name, count in sorted(counts.items())]
    width = max(map(len, cells)) + 2
    rows = [cells[i:i + 4] for i in range(0, len(cells), 4)]
    return "\n".join("".join(cell.ljust(width) for cell in row).rstrip() for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="interpreter",
                        choices=("interpreter", "cpu", "emulator", "gpu"))
    parser.add_argument("--count", type=int, help="how many cases; all where it is not given")
    parser.add_argument("--targets", nargs="+", default=TARGETS, help="of the emulator")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="a part of the names of ops")
    given, started = parser.parse_args(), time.time()
    counts = {name: sum(1 for _ in cases_of(name)) for name in CASES if given.only in name}
    total = sum(counts.values())
    print(f"{_table(counts)}\n{total} cases of {len(counts)} ops and functions")
    if given.count == 0:
        return 0
    chosen = spread(counts, given.count or total)
    gpu = Gpu(require_driver("conformance")) if given.on == "gpu" else None
    targets = [str(gpu.target)] if gpu else given.targets if given.on == "emulator" else [""]
    todo = tasks(chosen, "compiler" if gpu else given.on, targets)
    outcomes = _run(todo, given.processes)
    ran = Counter()
    failures = []
    print(f"{time.time() - started:.0f} s until all tasks were done", flush=True)
    for outcome in outcomes:
        ran[outcome.task.target or given.on] += len(outcome.task.numbers)
        failures += _launched(outcome, gpu) if gpu else outcome.failures
    print("\n".join(failures))
    print(f"{dict(ran)}: {len(failures)} fail, {time.time() - started:.0f} s")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
