"""Kernels of public repositories under Triton and under us: what compiles, and equal numbers.

    python perf/public_kernels.py FOLDER ...              compile: every kernel of the folders
    python perf/public_kernels.py --code FOLDER ...       to machine code: spills, seconds
    python perf/public_kernels.py --run cuda --draw 100 FOLDER ...   run 100, drawn by a seed
    python perf/public_kernels.py --run cpu --draw 100 FOLDER ...    without a GPU

FOLDER: the sources of a repository, or kernels that torch.compile wrote, each in a file.
Arguments are guessed from launches in a kernel's file and from what it does with them; a guess
counts when Triton's own front end accepts it.  Needs Torch and Triton, and with `--run cpu` a NumPy
before 2.4, for Triton's interpreter.  The exit status is 0 if all that Triton accepts compiles, and
no number differs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from public_sources import files_of

WORKER = Path(__file__).with_name("public_worker.py")
EXPLAINED = ("Triton differs from itself", "undefined", "more exact", "tf32")
COMPARED = ("equal", "DIFFERS", "more exact", "tf32")
SLOW, NOTICED = 5.0, 1.0  # seconds of a compilation to machine code, shown alone or
RATIO = 3  # if Triton compiles that many times as fast
SECONDS = 90  # for a kernel, after which it counts as stuck


def main() -> int:
    """See the module."""
    given = arguments()
    folders = [folder.resolve() for folder in given.folders]
    files = [str(file) for file in files_of(folders)]
    random.Random(given.seed).shuffle(files)
    reports, lock, ends = [], threading.Lock(), time.monotonic() + given.seconds
    queue = deque(batches([f for f in files if given.only is None or given.only in f], folders,
                          given))

    def is_enough() -> bool:
        return given.draw is not None and given.draw <= sum(
            bool(report["run"]) and kind(report["run"]) in COMPARED for report in reports)

    def serve() -> None:
        while time.monotonic() < ends and not is_enough():
            with lock:
                if not queue:
                    return
                files = queue.popleft()
            for report in answers(folders, files, given, ends):
                reports.append(report)
                if given.verbose:
                    print(json.dumps(report), flush=True)

    threads = [threading.Thread(target=serve) for _ in range(given.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if given.output is not None:
        given.output.write_text(json.dumps(reports, indent=1))
    return table(reports, folders)


def batches(files: Sequence[str], folders: Sequence[Path],
            given: argparse.Namespace) -> Iterator[list[str]]:
    """Files of one folder for one process, which imports what they share once.

    As many files as kernels are to be drawn are sorted by folder at a time.
    """
    def folder_of(file: str) -> int:
        return next(n for n, folder in enumerate(folders) if Path(file).is_relative_to(folder))

    size = given.draw or len(files)
    for begin in range(0, len(files), max(size, 1)):
        for _, those in itertools.groupby(sorted(files[begin:begin + size], key=folder_of),
                                          folder_of):
            left = list(those)
            while left:
                yield left[:given.files]
                del left[:given.files]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--run", choices=("cuda", "cpu"), help="by Triton and by us, too")
    parser.add_argument("--code", action="store_true", help="to machine code, without a device")
    parser.add_argument("--draw", type=int, help="stop after so many whose numbers were compared")
    parser.add_argument("--kernels", type=int, help="of a file, at most, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--files", type=int, default=4, help="that one process is given at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all of it")
    parser.add_argument("--only", help="files whose path has this in it")
    parser.add_argument("--output", type=Path, help="a file for all reports, JSON")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def answers(folders: Sequence[Path], files: list[str], given: argparse.Namespace,
            ends: float) -> Iterator[dict]:
    """The reports of some files, from processes that may die."""
    left = {file: None for file in files}
    while left and time.monotonic() < ends:
        task = {"folders": list(map(str, folders)), "runs": given.run, "seed": given.seed,
                "count": given.kernels, "codes": given.code, "files": list(left.items())}
        begun, stage = None, "compilation, or Triton's run"
        for line in spoken(task, ends):
            if "begins" in line:
                begun, stage = line["begins"], "compilation, or Triton's run"
            elif "ran" in line:
                stage = "our run"
            elif "done" in line:
                left.pop(line["done"], None)
            else:
                yield line
                begun = None
        if begun is not None and time.monotonic() < ends:
            yield {"file": begun[0], "kernel": begun[1], "ours": "ok", "theirs": "ok", "code": "",
                   "run": f"died in {stage}"}
        if left:
            # the rest of its file is left out: what killed the process may be there again
            left.pop(next(iter(left)) if begun is None else begun[0], None)


def spoken(task: dict, ends: float) -> Iterator[dict]:
    """The lines that a process says until it ends, or says nothing for too long."""
    process = subprocess.Popen([sys.executable, str(WORKER)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    process.stdin.write(json.dumps(task))
    process.stdin.close()

    def limited() -> threading.Timer:
        timer = threading.Timer(max(min(SECONDS, ends - time.monotonic()), 0.1), process.kill)
        timer.start()
        return timer

    timer = limited()
    for text in process.stdout:
        timer.cancel()
        timer = limited()
        if text.startswith("{"):
            with contextlib.suppress(json.JSONDecodeError):  # what a kernel prints
                yield json.loads(text)
    timer.cancel()
    process.wait()


def accepted(reports: Sequence[dict]) -> list[dict]:
    """Those that Triton's front end accepts."""
    return [report for report in reports if report["theirs"] == "ok"]


def table(reports: Sequence[dict], folders: Sequence[Path]) -> int:
    """Print how many compile, run and agree, and why the others do not; the exit status."""
    good = accepted(reports)
    ours = [report for report in good if report["ours"] == "ok"]
    print(f"{len(reports)} kernels and files; {len(good)} have arguments that Triton accepts, of "
          f"which {len(ours)} compile here")
    show("stopped here", [r for r in good if r["ours"] != "ok"], "ours")
    coded = [report for report in ours if report["code"]]
    stopped = [report for report in coded if report["code"] not in ("ok", "not run: descriptors")]
    show("stopped on the way to machine code", stopped, "code")
    print_beside_triton(coded)
    ran = [report for report in good if report["run"]]
    kinds = Counter(kind(report["run"]) for report in ran)
    for name, count in kinds.most_common():
        print(f"{count:5}  {name}")
    differs = [report for report in ran if kind(report["run"]) == "DIFFERS"]
    show("differ", differs, "run")
    show("died", [r for r in ran if r["run"].startswith("died")], "run")
    return int(len(ours) < len(good) or bool(stopped) or bool(differs))


def print_beside_triton(reports: Sequence[dict]) -> None:
    """What is slow to compile, alone or beside Triton, and what spills more than Triton's code."""
    both = [r for r in reports if r["their_seconds"] and r["code"] == "ok"]
    if both:
        print(f"machine code: {sum(r['seconds'] for r in both):.1f} s of a processor, Triton "
              f"{sum(r['their_seconds'] for r in both):.1f} s, {len(both)} kernels that both make")
    for r in sorted(both, key=lambda r: -r["seconds"]):
        is_slow = r["seconds"] > SLOW or (
            r["seconds"] > NOTICED and r["seconds"] > RATIO * r["their_seconds"])
        if is_slow or r["spills"] > r["their_spills"]:
            print(f"{r['seconds']:6.1f} s, Triton {r['their_seconds']:.1f} s; {r['spills']} bytes "
                  f"of spills, Triton {r['their_spills']}: {Path(r['file']).name}:{r['kernel']}")


def kind(run: str) -> str:
    """The kind of a result of a run."""
    if run in ("equal", "nothing written") or run.startswith(("not run", "died")):
        return run
    return next((start for start in ("Triton stops", *EXPLAINED) if run.startswith(start)),
                "DIFFERS")


def show(title: str, reports: Sequence[dict], key: str) -> None:
    """Reasons, most frequent first, with the kernels of each."""
    by_reason: dict[str, list[dict]] = {}
    for report in reports:
        reason = re.sub(r"\d+", "#", report[key])[:160]
        by_reason.setdefault(reason, []).append(report)
    for reason, those in sorted(by_reason.items(), key=lambda pair: -len(pair[1])):
        places = ", ".join(f"{Path(r['file']).name}:{r['kernel']}" for r in those[:3])
        print(f"{title} {len(those):4}  {reason}  [{places}] {those[0][key][:200]}")


if __name__ == "__main__":
    raise SystemExit(main())
