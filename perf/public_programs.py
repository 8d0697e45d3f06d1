"""Files that launch Triton kernels of their own and keep the results, under Triton and under us.

    python perf/public_programs.py --processes 8 FOLDER          on a GPU: equal results
    python perf/public_programs.py --device cpu FOLDER           here alone, tensors in host memory

FOLDER: files that end with `result = test()` at module level, as those of TritonBench-G do; all
tensors that a file leaves in such variables, in dicts and tuples too, are compared.  Each file runs
in a process of its own, once for each side, with the same seed.  With --times the last launch of
each kernel is repeated from a CUDA graph, on both sides, one at a time; host work does not count.
The exit status is 0 if every file that runs under Triton runs under us, with the same dtypes and
with values within the bounds, or with a difference that Triton's own runs under other circumstances
explain (public_variants.py): it reads what nothing wrote, its tf32 is farther from float32 than
ours ("more exact"), or rounding of the inputs would change as much ("ill-conditioned").
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib
import importlib.util
import io
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType

import torch
from public_variants import circumstances, is_explained

from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.triton.loading import with_our_imports

LAUNCHES, REPLAYS = 20, 30  # of a graph; of it
# by the parent, once
PRELOADED = ("triton", "numba.cuda", "blocknumba.typing.frontend",
             "blocknumba.nvvm_lower.toolchain", "blocknumba.triton.language")
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


def last_launches(ours: bool) -> dict[str, Callable[[], object]]:
    """A dict that is filled while kernels are launched: name -> its last launch again."""
    found: dict[str, Callable[[], object]] = {}
    if ours:
        index = Kernel.__getitem__

        def recorded(kernel: Kernel, grid: object) -> Callable[..., object]:
            launch = index(kernel, grid)

            def called(*arguments: object, **keywords: object) -> object:
                found[kernel.__name__] = lambda: launch(*arguments, **keywords)
                return launch(*arguments, **keywords)
            return called

        Kernel.__getitem__ = recorded
        return found
    import triton  # only this side's process needs Triton

    run = triton.runtime.JITFunction.run

    def noted(kernel: object, *arguments: object, **keywords: object) -> object:
        if not keywords.get("warmup"):
            found[kernel.__name__] = lambda: run(kernel, *arguments, **keywords)
        return run(kernel, *arguments, **keywords)

    triton.runtime.JITFunction.run = noted
    return found


def time_us(launch: Callable[[], object]) -> float:
    """Microseconds of a launch: the least of several replays of a graph of launches."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            launch()
    times = []
    with open(Path(tempfile.gettempdir()) / "public_programs.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process times at a time
        for _ in range(REPLAYS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / LAUNCHES)
    return min(times)


def timed(launches: dict[str, Callable[[], object]]) -> dict[str, float | str]:
    """Kernel -> its time in us, or why there is none."""
    found: dict[str, float | str] = {}
    for name, launch in launches.items():
        try:
            found[name] = time_us(launch)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"[:200]
            if "CUDA" in found[name]:
                break
    return found


def run_file(file: Path, ours: bool, given: argparse.Namespace, variant: str,
             pipe: object) -> None:
    """Send the tensors that a file leaves, or the text of its error; with --times those too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    device = given.device
    # torch.empty is filled, so that what no kernel writes is equal
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        launches = last_launches(ours) if given.times and not variant else {}
        with circumstances(variant, device):
            module = loaded(file, ours, device)
        found = {}
        for name, value in vars(module).items():
            if not name.startswith("__") and isinstance(value, dict | list | tuple | torch.Tensor):
                found |= {place: (str(t.dtype), t) for place, t in tensors(value, name)}
        made = io.BytesIO()  # a pipe would share memory that ends with this process
        torch.save(found, made)
        pipe.send(made.getvalue())
        pipe.send(timed(launches))
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        pipe.send(f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")


def outcome(file: Path, ours: bool, given: argparse.Namespace,
            times: dict[str, float | str] | None = None, variant: str = "") -> dict | str:
    """The tensors of a file, or what stopped it.

    times: is filled with those of its kernels.   variant: of public_variants, for Triton's side.
    """
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_file, args=(file, ours, given, variant, sender))
    process.start()
    sender.close()
    result: dict | str = "died"
    try:
        if receiver.poll(given.seconds):
            result = receiver.recv()
            if isinstance(result, bytes):
                result = torch.load(io.BytesIO(result))
                if times is not None:
                    with contextlib.suppress(EOFError):
                        times.update(receiver.recv() if receiver.poll(given.seconds) else {})
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
            scale = b.double().nan_to_num(0).square().mean().sqrt().item()
            return (f"{place}: {own} {tuple(a.shape)} differs by {worst:.3g}, root mean square "
                    f"{scale:.3g}")
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


def judged(file: Path, given: argparse.Namespace, pairs: list[Pair]) -> tuple[str, str]:
    """(kind, detail) of a file.  pairs: the times of its kernels are added."""
    theirs, own_times = {}, {}
    wanted = {} if given.device == "cpu" else outcome(file, False, given, theirs)
    if isinstance(wanted, str):
        return "Triton stops", wanted
    found = outcome(file, True, given, own_times)
    pairs += [Pair(file.name, name, own_times[name], theirs[name])
              for name in own_times.keys() & theirs.keys()]
    if isinstance(found, str):
        return "STOPS", found
    text = difference(found, wanted)
    return explained(file, given, found, wanted, text) if text else (
        "equal", f"{len(found)} tensors")


def explained(file: Path, given: argparse.Namespace, found: dict, wanted: dict,
              text: str) -> tuple[str, str]:
    """(kind, detail) of a file whose results differ, after Triton's runs under variants."""
    for variant in ("", "memory"):
        again = outcome(file, False, given, variant=variant)
        if own := "" if isinstance(again, str) else difference(again, wanted):
            return "Triton differs from itself", own
    if any(place not in found or found[place][0] != dtype or found[place][1].shape != values.shape
           for place, (dtype, values) in wanted.items()):
        return "DIFFERS", text
    differing = [place for place, (_, values) in wanted.items()
                 if not agree(found[place][1], values)]
    for variant, kind in (("ieee", "more exact"), ("ulp", "ill-conditioned")):
        again = outcome(file, False, given, variant=variant)
        if not isinstance(again, str) and all(
                is_explained(variant, found[place][1], wanted[place][1], again[place][1])
                for place in differing):
            return kind, text
    return "DIFFERS", text


@dataclass(frozen=True)
class Pair:
    """A kernel's times in us, ours and Triton's, or why there is none."""

    file: str
    kernel: str
    ours: float | str
    theirs: float | str

    def ratio(self) -> float | None:
        """Triton / ours; None without both times."""
        numbers = isinstance(self.ours, float) and isinstance(self.theirs, float)
        return self.theirs / self.ours if numbers else None


def show_times(pairs: Sequence[Pair]) -> None:
    """Print all times, slowest next to Triton first."""
    both = sorted((pair for pair in pairs if pair.ratio() is not None), key=Pair.ratio)
    for pair in both:
        print(f"{pair.ratio():6.3f}  {pair.ours:9.2f} us, Triton {pair.theirs:9.2f} us  "
              f"{pair.file}:{pair.kernel}")
    for pair in pairs:
        if pair.ratio() is None:
            print(f"no time  {pair.file}:{pair.kernel}  ours {pair.ours}, Triton {pair.theirs}")
    if len(both) > 1:
        print(f"{len(both)} kernels, geometric mean {geometric_mean(map(Pair.ratio, both)):.3f}, "
              f"{sum(pair.ratio() < 0.9 for pair in both)} under 0.9")


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
    parser.add_argument("--seed", type=int, default=0, help="of the order of the files")
    parser.add_argument("--times", action="store_true", help="of each kernel, on a GPU")
    given = parser.parse_args()
    pairs: list[Pair] = []
    files = [file for file in sorted(given.folder.rglob("*.py")) if given.only in file.name]
    random.Random(given.seed).shuffle(files)
    if given.device == "cuda":
        for name in PRELOADED:
            importlib.import_module(name)
    kinds: Counter[str] = Counter()
    ends = time.monotonic() + given.all

    def one(file: Path) -> tuple[str, str]:
        return judged(file, given, pairs) if time.monotonic() < ends else ("no time left", "")

    with ThreadPoolExecutor(given.processes) as pool:
        running = {pool.submit(one, file): file for file in files}
        for done in as_completed(running):
            file, (kind, detail) = running[done], done.result()
            kinds[kind] += 1
            print(f"{kind:12}  {file.name}  {' '.join(detail.split())[:400]}", flush=True)
            show_times([pair for pair in pairs if pair.file == file.name])
    print(f"{sum(kinds.values())} files; their kernels, slowest next to Triton first:")
    show_times(pairs)
    print(dict(kinds))
    return int(bool(kinds["STOPS"] or kinds["DIFFERS"]))


if __name__ == "__main__":
    raise SystemExit(main())
