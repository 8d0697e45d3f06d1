"""Files that launch Triton kernels of their own and keep the results, under Triton and under us.

    python perf/public_programs.py --processes 8 FOLDER          on a GPU: equal results
    python perf/public_programs.py --device cpu FOLDER           here alone, tensors in host memory

FOLDER: files that end with `result = test()` at module level, as those of TritonBench-G do; all
tensors that a file leaves in such variables, in dicts and tuples too, are compared.  Each file runs
in a process of its own, once for each side, with the same seed.  The exit status is 0 if every file
that runs under Triton runs under us, with the same dtypes and with values within the bounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import torch

from blocknumba.triton.loading import with_our_imports

TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 3e-2, torch.float32: 2e-3, torch.float64: 1e-7}


def loaded(file: Path, ours: bool, device: str) -> ModuleType:
    """The module of a file, after its code ran."""
    if device == "cpu":
        text = re.sub(r"\.cuda\(\)", ".cpu()", file.read_text())
        text = re.sub(r"""(["'])cuda(:0)?\1""", r"\1cpu\1", text)
        made = Path(tempfile.mkdtemp()) / file.name
        made.write_text(text)
        file = made
    spec = importlib.util.spec_from_file_location(file.stem, file)
    spec = with_our_imports(spec) if ours else spec
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    return module


def tensors(value: object, place: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors of a result, and where they are in it."""
    if isinstance(value, torch.Tensor):
        yield place, value.detach().cpu()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors(item, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from tensors(item, f"{place}[{number}]")


def run_file(file: Path, ours: bool, device: str, pipe: object) -> None:
    """Send the tensors that a file leaves, or the text of its error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        module = loaded(file, ours, device)
        found = {}
        for name, value in vars(module).items():
            if not name.startswith("__") and isinstance(value, dict | list | tuple | torch.Tensor):
                found |= {place: (str(t.dtype), t) for place, t in tensors(value, name)}
        made = io.BytesIO()  # a pipe would share memory that ends with this process
        torch.save(found, made)
        pipe.send(made.getvalue())
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        pipe.send(f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")


def outcome(file: Path, ours: bool, given: argparse.Namespace) -> dict | str:
    """The tensors of a file, or what stopped it."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_file, args=(file, ours, given.device, sender))
    process.start()
    sender.close()
    result: dict | str = "died"
    try:
        if receiver.poll(given.seconds):
            result = receiver.recv()
            if isinstance(result, bytes):
                result = torch.load(io.BytesIO(result))
        else:
            result = f"not done after {given.seconds} s"
    except EOFError:
        result = "died"
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return result


def difference(found: dict, wanted: dict) -> str:
    """Where the tensors of two runs differ; empty where nowhere."""
    for place, (dtype, b) in wanted.items():
        if place not in found:
            return f"{place} is missing"
        own, a = found[place]
        if own != dtype or a.shape != b.shape:
            return f"{place}: {own} {tuple(a.shape)}, {dtype} {tuple(b.shape)} under Triton"
        if not agree(a, b):
            worst = (a.double() - b.double()).abs().nan_to_num(float("inf")).max().item()
            return f"{place}: {own} {tuple(a.shape)} differs by {worst:.3g}"
    return ""


def agree(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether values are equal, floats within their bound."""
    if b.dtype not in TOLERANCE:
        return torch.equal(a, b)
    bound, a, b = TOLERANCE[b.dtype], a.double(), b.double()
    finite = b[b.isfinite()]
    scale = finite.square().mean().sqrt() if finite.numel() else 0
    near = (a - b).abs() <= bound * (b.abs() + scale)
    return bool((near | (a == b) | (a.isnan() & b.isnan())).all())


def judged(file: Path, given: argparse.Namespace) -> tuple[str, str]:
    """(kind, detail) of a file."""
    wanted = {} if given.device == "cpu" else outcome(file, False, given)
    if isinstance(wanted, str):
        return "Triton stops", wanted
    found = outcome(file, True, given)
    if isinstance(found, str):
        return "STOPS", found
    text = difference(found, wanted)
    if text:
        again = outcome(file, False, given)
        own = "" if isinstance(again, str) else difference(again, wanted)
        return ("Triton differs from itself", own) if own else ("DIFFERS", text)
    return "equal", f"{len(found)} tensors"


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default="", help="files whose name has this in it")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="for a file")
    parser.add_argument("--all", type=float, default=float("inf"), help="seconds for all of it")
    given = parser.parse_args()
    files = [file for file in sorted(given.folder.rglob("*.py")) if given.only in file.name]
    kinds: Counter[str] = Counter()
    ends = time.monotonic() + given.all

    def one(file: Path) -> tuple[str, str]:
        return judged(file, given) if time.monotonic() < ends else ("no time left", "")

    with ThreadPoolExecutor(given.processes) as pool:
        running = {pool.submit(one, file): file for file in files}
        for done in as_completed(running):
            file, (kind, detail) = running[done], done.result()
            kinds[kind] += 1
            print(f"{kind:12}  {file.name}  {' '.join(detail.split())[:400]}", flush=True)
    print(dict(kinds))
    return int(bool(kinds["STOPS"] or kinds["DIFFERS"]))


if __name__ == "__main__":
    raise SystemExit(main())
