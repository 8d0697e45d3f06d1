"""Machine code of one tree of sources next to another's, without a GPU.

    python perf/code_table.py write --tree OLD --output old.json
    python perf/code_table.py write --output new.json --like old.json
    python perf/code_table.py compare old.json new.json

`write` compiles, for several targets, the variants of the examples' kernels that
tests/test_example_code.py lists, each kernel that a check of an example launches, the kernels of
perf/, and cases drawn from tests/conformance; it records the instructions, registers, spills and
shared bytes of each.  `compare` prints what differs.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from math import exp, log
from pathlib import Path
from unittest import mock

TARGETS = ("sm_80", "sm_90a", "sm_100")
DRAWN, SEED = 300, 12
WARPS = 2  # of cases of conformance
EXAMPLES = ("vector_add", "softmax", "layernorm", "sums", "transpose", "photograph", "gather_rows",
            "histogram", "matmul", "attention", "digits", "fractals", "heat", "nearest")
PROCESSORS = 132  # of the device that examples choose tiles for
NOTABLE = 0.02  # a share of the instructions
FIELDS = ("instructions", "registers", "spills", "shared_bytes")
# nvdisasm's lines: an offset in a comment, then the instruction
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+([^;]*);", re.MULTILINE)

Record = dict[str, object]
Compiling = Callable[[str], Record]  # of a target


def record(sass: str, registers: int, spills: int, shared_bytes: int) -> Record:
    """The record of a kernel's machine code; NOPs, which pad it, do not count."""
    instructions = [text.strip() for text in _INSTRUCTION.findall(sass)]
    instructions = [text for text in instructions if text != "NOP"]
    assert instructions, "the disassembler showed no instructions"
    return {"instructions": len(instructions), "registers": registers, "spills": spills,
            "shared_bytes": shared_bytes,
            "digest": sha256("\n".join(instructions).encode()).hexdigest()[:16]}


# kernels of users -------------------------------------------------------------------------------
def example_kernels() -> Iterator[tuple[str, Compiling]]:
    """The kernels of the examples."""
    import test_example_code as table  # of the tree that --tree names

    for name, parts in table.KERNELS.items():
        yield f"example {name}", lambda target, parts=parts: _compiled(target, *parts)
    for name in table.ALL_PRODUCTS:
        yield f"example {name}", lambda target, name=name: _recorded(
            table.compile_product(name, target))


def perf_kernels() -> Iterator[tuple[str, Compiling]]:
    """The kernels of perf/: of launches, and of scalar functions where the tree has them."""
    import launch_kernels  # of the tree, as above

    for count in launch_kernels.ARGUMENTS:
        kernel = launch_kernels.tile_kernel("blocknumba", count)
        arrays, numbers = launch_kernels.names(count)
        types = ("f32[::1]",) * len(arrays) + ("i32",) * len(numbers)
        yield f"perf {count} arguments", lambda target, parts=(kernel, types, {
            "BLOCK": launch_kernels.BLOCK}): _compiled(target, *parts)
    if importlib.util.find_spec("scalar_function_cases"):
        table = importlib.import_module("scalar_function_cases")
        for tile in table.TILES:
            parts = (table.mandelbrot, ("i32[:,::1]",), dict(zip(("ROWS", "COLUMNS"), tile)))
            yield f"perf mandelbrot {tile}", lambda t, parts=parts: _compiled(t, *parts)
        for size in table.SIZES:
            parts = (table.kepler, ("f32[::1]",) * 3, {"SIZE": size})
            yield f"perf kepler {size}", lambda t, parts=parts: _compiled(t, *parts)


def _compiled(target: str, kernel: object, types: tuple[str, ...],
              constants: Mapping[str, object]) -> Record:
    import blocknumba as bn  # of the tree, as above

    return _recorded(bn.compile(kernel, types, constants, target=target))


def _recorded(compiled: object) -> Record:
    stats = compiled.stats
    return record(compiled.asm["sass"], stats.registers, stats.spills, stats.shared_bytes)


class Launched:
    """Records of what the checks of examples launch, for one target.

    The launches themselves are done on the CPU device: the checks get right results.
    """

    def __init__(self, target: str):
        import emulated_gpu  # of the tree, as above

        self.found: dict[str, Record] = {}
        self._target, self._gpu, self._example = target, emulated_gpu, ""
        self._seen: dict[int, object] = {}
        self._count: Counter[str] = Counter()

    def run(self, examples: Iterable[str]) -> None:
        """Run the checks of examples, by their names."""
        import blocknumba as bn  # of the tree, all of them
        from array_libraries import NUMPY
        from test_emulated_examples import Device, Kernel, Target

        device = Device(self._target, Target.parse(self._target), PROCESSORS)
        launch = Kernel.__getitem__
        with (mock.patch.object(bn, "current_device", lambda: device),
              mock.patch.object(Kernel, "__getitem__", lambda kernel, grid: partial(
                  self._launched, kernel, launch(kernel, grid)))):
            for self._example in examples:
                try:
                    importlib.import_module(self._example).check(NUMPY)
                except Exception as error:  # what was launched before it counts
                    self.found[f"launch {self._example}: its check"] = _failed(error)

    def _launched(self, kernel: object, launch: Callable, *arguments: object,
                  **named: object) -> object:
        """Record the code of a launch unless it is known, and launch."""
        bound, changes = kernel.signature.bind(arguments, named)
        compiled = self._gpu._prepare(
            kernel, bound, kernel.options.override(changes), self._target).compiled
        if id(compiled) not in self._seen:
            self._seen[id(compiled)] = compiled  # kept, so that no other gets its id
            name = f"launch {self._example}: {kernel.signature.kernel}"
            self._count[name] += 1
            self.found[f"{name} {self._count[name]}"] = _recorded(compiled)
        return launch(*arguments, **named)


# cases of conformance ---------------------------------------------------------------------------
def conformance_kernels(wanted: set[str] | None) -> Iterator[tuple[str, Compiling]]:
    """Cases of conformance: the wanted ones, else a number drawn by SEED."""
    import cases  # of the tree, as above

    found: dict[str, object] = {}
    for case in cases.cases():
        found.setdefault(f"conformance {case}", case)
    names = sorted(found)
    if wanted is None:
        names = sorted(random.Random(SEED).sample(names, DRAWN))
    for name in names:
        if wanted is None or name in wanted:
            yield name, lambda target, case=found[name]: _case_compiled(case, target)


def _case_compiled(case: object, name: str) -> Record:
    from blocknumba.gpu_layout.options import LayoutOptions  # of the tree, all of them
    from blocknumba.gpu_layout.pipeline import lay_out
    from blocknumba.nvvm_lower.emitter import CodeOptions
    from blocknumba.nvvm_lower.kernel import assemble_kernel, lower
    from blocknumba.nvvm_lower.target import Target
    from blocknumba.nvvm_lower.toolchain import disassemble

    target = Target.parse(name)
    options = LayoutOptions(WARPS, features=target.capabilities, arrays_are_disjoint=True,
                            shared_bytes=target.shared_bytes_per_block)
    lowered = lower(lay_out(_optimise()(case.function), options), target, CodeOptions(WARPS))
    assembled = assemble_kernel(lowered, target, CodeOptions(WARPS))
    return record(disassemble(assembled.cubin), assembled.registers, assembled.spill_bytes,
                  lowered.shared_bytes + assembled.shared_bytes)


def _optimise() -> Callable:
    """The passes of the tile IR, wherever the tree has them."""
    for name in ("blocknumba.tile_ir.passes.pipeline", "blocknumba.tile_ir.pipeline"):
        try:
            return importlib.import_module(name).optimise
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError("the tree has no pipeline of tile passes")


# writing and comparing --------------------------------------------------------------------------
def write(tree: Path, output: Path, like: Path | None, targets: tuple[str, ...]) -> None:
    """Compile the kernels of a tree and write their records.

    like: another table, whose kernels alone are compiled.
    """
    _import_from(tree)
    wanted = None if like is None else {
        name for of in json.loads(like.read_text()).values() for name in of}
    found: dict[str, dict[str, Record]] = {target: {} for target in targets}
    for name, compiling in _kernels(wanted):
        for target in targets:
            try:
                found[target][name] = compiling(target)
            except Exception as error:  # a target that lacks what the kernel needs, by any error
                found[target][name] = _failed(error)
    for target in targets:
        launched = Launched(target)
        launched.run(name for name in EXAMPLES if (tree / "examples" / f"{name}.py").exists())
        found[target] |= launched.found
    output.write_text(json.dumps(found, indent=1))


def _failed(error: Exception) -> Record:
    return {"error": f"{type(error).__name__}: {error}".split("\n")[0]}


def _kernels(wanted: set[str] | None) -> Iterator[tuple[str, Compiling]]:
    for kernels in (example_kernels(), perf_kernels()):
        yield from ((name, compiling) for name, compiling in kernels
                    if wanted is None or name in wanted)
    yield from conformance_kernels(wanted)


def _import_from(tree: Path) -> None:
    """Import the package, tests and perf from a tree, not from where this script is."""
    os.environ["BLOCKNUMBA_CACHE"] = "0"
    own = str(Path(__file__).resolve().parent)
    sys.path[:] = [str(tree / folder) for folder in (
        "", "tests", "tests/conformance", "examples", "perf")] + [
        path for path in sys.path if path != own]


def compare(before: Path, after: Path) -> str:
    """A table of two files, and lines of what differs by more than NOTABLE."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    lines = ["| target | kernels | same code | as many instructions | fewer | more "
             "| instructions, geometric mean | registers, geometric mean | spills, bytes |",
             "|---" * 9 + "|"]
    notable: list[str] = []
    for target in [target for target in old if target in new]:
        lines.append(_row(target, old[target], new[target], notable))
    return "\n".join([*lines, "", *notable])


def _row(target: str, old: Mapping[str, Record], new: Mapping[str, Record],
         notable: list[str]) -> str:
    """The row of a target; appends what is notable."""
    names = [name for name in old if name in new]
    notable += [f"{target} {name}: only {side}" for side, one, other in (
        ("before", old, new), ("after", new, old)) for name in one if name not in other]
    notable += [f"{target} {name}: {side[name]['error']}" for name in names
                for side, other in ((old, new), (new, old))
                if "error" in side[name] and "error" not in other[name]]
    pairs = {name: (old[name], new[name]) for name in names
             if "error" not in old[name] and "error" not in new[name]}
    counts = {"same": 0, "equal": 0, "fewer": 0, "more": 0}
    for name, (x, y) in pairs.items():
        ratio = y["instructions"] / x["instructions"]
        counts["same" if x["digest"] == y["digest"] else "equal" if ratio == 1 else
               "fewer" if ratio < 1 else "more"] += 1
        if abs(ratio - 1) > NOTABLE or x["spills"] != y["spills"]:
            changes = ", ".join(f"{field} {x[field]} -> {y[field]}" for field in FIELDS
                                if x[field] != y[field])
            notable.append(f"{target} {name}: {changes}")
    means = [_mean([y[field] / x[field] for x, y in pairs.values()])
             for field in ("instructions", "registers")]
    spills = [sum(pair[side]["spills"] for pair in pairs.values()) for side in (0, 1)]
    return (f"| {target} | {len(pairs)} | " + " | ".join(map(str, counts.values()))
            + f" | {means[0]:.4f} | {means[1]:.4f} | {spills[0]} -> {spills[1]} |")


def _mean(ratios: list[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else 1.0


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("--tree", type=Path, default=Path(__file__).resolve().parent.parent)
    writing.add_argument("--output", type=Path, required=True)
    writing.add_argument("--like", type=Path, help="a table: compile its kernels")
    writing.add_argument("--targets", default=",".join(TARGETS))
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        print(compare(given.before, given.after))
    else:
        write(given.tree.resolve(), given.output, given.like, tuple(given.targets.split(",")))


if __name__ == "__main__":
    main()
