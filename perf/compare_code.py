"""Machine code of kernels beside Triton's for sm_90a, without a GPU, and compile times.

    python perf/compare_code.py [part of a name ...]        the kinds of kinds.py
    python perf/compare_code.py --own [part of a name ...]  ours by its own warps and stages
    python perf/compare_code.py --public FOLDER ...         kernels of public sources, without dots
    python perf/compare_code.py --output FILE ...           and all that is counted, as JSON
    python perf/compare_code.py --texts FOLDER ...          and the machine code of both

Needs Torch, Triton (its assembler, too) and nvdisasm.  A line a kernel, each entry ours / Triton's.
Counts are of one thread (machine_code_counts.py); seconds of one processor, of the first kernel with
what is imported for it.  TRITON_ALWAYS_COMPILE=1 and BLOCKNUMBA_CACHE=0 keep both from their caches.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import kinds
import torch
import triton as theirs
from kinds_case import Make
from machine_code_counts import Counts, counted
from public_sources import Sources, declared_types, files_of
from public_worker import require_accepted, said, their_constant, their_kernel
from triton.backends.compiler import GPUTarget

import blocknumba as bn
import blocknumba.triton as ours
from blocknumba.triton.porting.arguments import guessed, uses_of
from blocknumba.triton.porting.command import base_kernel, chosen_by_decorators, kernels_of

TARGET, THEIR_TARGET = "sm_90a", GPUTarget("cuda", 90, 32)
SPELLED = {"int": "i32", "float": "fp32", "bool": "i1", "int32": "i32", "int64": "i64",
           "float32": "fp32"}


@dataclass(frozen=True)
class Job:
    """One kernel for both.

    kernel, original: ours, Triton's.   signature: spelled types of what is no constant.
    """

    name: str
    kernel: object
    original: object
    signature: tuple[str, ...]
    constants: Mapping[str, object]
    options: Mapping[str, object]


def kind_jobs(parts: Sequence[str], bound: str) -> Iterator[Job]:
    """Those of kinds.chosen_kinds."""
    mine, original = kinds.kernels_of(ours), kinds.kernels_of(None)
    for one in kinds.chosen_kinds(parts, bound):
        launch = one.build(Make(torch, "meta"), **one.real)
        yield Job(one.name, mine[one.kernel], original[one.kernel],
                  kinds.signature_of(launch.arguments), launch.constants, launch.options)


def processor_seconds() -> float:
    """Of this process and of those that it has waited for: Triton's assembler is one."""
    return sum(os.times()[:4])


def our_code(kernel: object, signature: Sequence[str], constants: Mapping[str, object],
             options: Mapping[str, object]) -> tuple[Counts, str]:
    """Ours: what is counted, and the text."""
    start = processor_seconds()
    compiled = bn.compile(kernel, tuple(signature), dict(constants), target=TARGET, **options)
    seconds = processor_seconds() - start
    counts, stats = counted(compiled.asm["sass"]), compiled.stats
    counts.registers, counts.spills = stats.registers, stats.spills
    threads = int(re.search(r"\.(?:req|max)ntid (\d+)", compiled.ptx)[1])
    counts.warps, counts.seconds = threads // 32, seconds
    return counts, compiled.asm["sass"]


def their_source(kernel: object, signature: Sequence[str], constants: Mapping[str, object]
                 ) -> object:
    """Triton's source of a kernel; an int that is 1 is a constant, as in its launches."""
    names, known = kernel.arg_names, dict(constants)
    types, attributes = dict.fromkeys(names, "constexpr"), {}
    for name, spelled in zip([n for n in names if n not in constants], signature, strict=True):
        kind_of, _, divisor = spelled.partition(":")
        if divisor == "1":
            known[name] = 1
            continue
        types[name] = SPELLED.get(kind_of, kind_of)
        if divisor == "16":
            attributes[(names.index(name),)] = [["tt.divisibility", 16]]
    return theirs.compiler.ASTSource(
        fn=kernel, signature=types, attrs=attributes,
        constexprs={(names.index(name),): their_constant(value) for name, value in known.items()})


def their_code(source: object, options: Mapping[str, object]) -> tuple[Counts, str]:
    """Triton's: what is counted, and the text."""
    start = processor_seconds()
    compiled = theirs.compile(source, target=THEIR_TARGET, options=dict(options))
    seconds, tools = processor_seconds() - start, theirs.knobs.nvidia

    def shown(tool: str, *options: str) -> str:
        return subprocess.run([tool, *options, file.name], check=True, capture_output=True,
                              text=True).stdout

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        sass = shown(tools.nvdisasm.path, "-c")
        usage = shown(tools.cuobjdump.path, "-res-usage")
    counts = counted(sass)
    counts.registers, counts.spills = (int(re.search(rf"{what}:(\d+)", usage)[1])
                                       for what in ("REG", "STACK"))
    counts.warps, counts.seconds = compiled.metadata.num_warps, seconds
    return counts, sass


def public_jobs(folders: Sequence[Path], seed: int, count: int) -> Iterator[Job]:
    """Kernels without dots of public sources, drawn by a seed; arguments as public_worker.py."""
    mine, original = Sources(folders, ours=True), Sources(folders, ours=False)
    files = list(files_of(folders))
    random.Random(seed).shuffle(files)
    left = count
    for file in files:
        try:
            pairs = [(name, layered, their_kernel(getattr(original.load(file), name, None)))
                     for name, layered in kernels_of(mine.load(file))]
        except Exception as error:  # a package is missing
            print(f"{file.name}: {said(error)}", flush=True)
            continue
        for name, layered, their in pairs:
            job = their and left and _public_job(file, name, layered, their)
            if job:
                left -= 1
                yield job


def _public_job(file: Path, name: str, layered: object, their: object) -> Job | None:
    """A job of a kernel; None for one with dots, or whose arguments are not guessed."""
    kernel, chosen = base_kernel(layered), chosen_by_decorators(layered)
    uses = uses_of(kernel)
    if uses.returns or "dot" in inspect.getsource(kernel.python_function) or not any(
            kind.startswith("pointer") for kind in uses.kinds.values()):
        return None
    for element in ("fp16", "fp32"):
        try:
            types, constants = declared_types(file, name) or guessed(kernel, uses, chosen, element)
            constants = {key: constants[key] for key in constants if key in kernel.arg_names}
            require_accepted(their, types, constants)
        except BaseException:  # of Triton's front end, any
            continue
        options = {key: value for key, value in chosen.items()
                   if key in ("num_warps", "num_stages") and key not in kernel.arg_names}
        return Job(f"{file.stem}:{name}", kernel, their,
                   tuple(types[key] for key in kernel.arg_names if key in types), constants,
                   {"num_warps": 4} | options)
    return None


COLUMNS = {
    "instructions": lambda c: c.instructions, "loop": lambda c: c.loop,
    "loads": lambda c: widths(c.loads, c.copies), "stores": lambda c: widths(c.stores, c.atomics),
    "shared": lambda c: c.shared, "shuffles": lambda c: c.shuffles,
    "barriers": lambda c: c.barriers, "branches": lambda c: c.branches, "chain": lambda c: c.chain,
    "registers": lambda c: c.registers, "spills": lambda c: c.spills, "warps": lambda c: c.warps,
    "seconds": lambda c: f"{c.seconds:.2f}"}


def widths(by_bytes: Mapping[int, int], others: int) -> str:
    """Accesses by bytes, 4x16 for four of 16 bytes, and +n others: copies, or atomics."""
    texts = [f"{count}x{size}" for size, count in sorted(by_bytes.items(), reverse=True)]
    return ",".join(texts) + (f"+{others}" if others else "") or "-"


def line(name: str, mine: Counts, other: Counts) -> str:
    """A line of the table."""
    cells = []
    for count in COLUMNS.values():
        pair = [str(count(side)) for side in (mine, other)]
        cells.append(pair[0] if pair[0] == pair[1] else " / ".join(pair))
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--bound", default="", help="as of kinds.py")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--public", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--draw", type=int, default=60, help="kernels of public sources")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--texts", type=Path)
    given = parser.parse_args()
    jobs = (public_jobs(given.public, given.seed, given.draw) if given.public
            else kind_jobs(given.parts, given.bound))
    found: dict[str, object] = {}
    print(f"| kernel | {' | '.join(COLUMNS)} |\n{'|---' * (len(COLUMNS) + 1)}|", flush=True)
    for job in jobs:
        try:
            mine, our_text = our_code(job.kernel, job.signature, job.constants,
                                      {} if given.own else job.options)
            other, their_text = their_code(
                their_source(job.original, job.signature, job.constants), job.options)
        except Exception as error:  # a finding
            print(f"{job.name} FAILS {said(error)}", flush=True)
            continue
        found[job.name] = {"ours": asdict(mine), "Triton": asdict(other)}
        print(line(job.name, mine, other), flush=True)
        if given.texts:
            for side, text in (("ours", our_text), ("triton", their_text)):
                (given.texts / f"{job.name}.{side}.sass").write_text(text)
        if given.output:
            given.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
