"""The kernels of micro_kernels.py under Triton and under blocknumba.triton: one text, interleaved.

    python perf/micro.py [part of a name ...]          on a GPU, with Torch and Triton
    python perf/micro.py --code [part of a name ...]   our machine code for sm_90a, without a GPU

Prints microseconds of both, Triton's by ours, and whether the results agree; ours with the same
warps, and with those that blocknumba chooses.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from unittest import mock

import blocknumba as bn
import blocknumba.triton as ours

ROUNDS, REPEATS = 15, 5
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_]+)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One kernel and its launch.

    signature: as Triton spells types.   arguments: Torch tensors and numbers, given torch.
    outputs: indices of arguments that it writes.   tolerance: relative, of results.
    """

    signature: tuple[str, ...]
    constants: Mapping[str, int]
    warps: int | None
    grid: int
    arguments: Callable[[ModuleType], list]
    outputs: tuple[int, ...]
    tolerance: float = 1e-3
    zeroed: tuple[int, ...] = field(default=())


def _random(torch: ModuleType, *shape: int, dtype: str = "float32") -> object:
    return torch.randn(shape, device="cuda").to(getattr(torch, dtype))


def _zeros(torch: ModuleType, *shape: int, dtype: str = "float32") -> object:
    return torch.zeros(shape, device="cuda", dtype=getattr(torch, dtype))


CASES: dict[str, Case] = {
    "scatter_add": Case(
        ("*bf16:16", "*i32:16", "*fp32:16"), {"N": 4096}, 4, 16384,
        lambda t: [_random(t, 16384, 4096, dtype="bfloat16"),
                   t.randint(0, 32000, (16384,), device="cuda", dtype=t.int32),
                   _zeros(t, 32000, 4096)], (2,), zeroed=(2,)),
    "add_halves": Case(
        ("*fp16:16", "*fp16:16"), {"N": 4096}, 8, 8192,
        lambda t: [_random(t, 8192, 4096, dtype="float16") / 64,
                   _zeros(t, 512, 4096, dtype="float16")], (1,), 2e-2, (1,)),
    "greatest": Case(
        ("*fp32:16", "*fp32:16"), {"N": 4096}, 8, 8192,
        lambda t: [_random(t, 8192, 4096), _zeros(t, 512, 4096) - 9], (1,)),
    "divide_row": Case(
        ("*fp32:16", "*fp32:16", "fp32"), {"N": 4096}, 4, 16384,
        lambda t: [_random(t, 16384, 4096) + 3, _zeros(t, 16384, 4096), 3.7], (1,)),
    "gate": Case(
        ("*bf16:16",) * 3, {"N": 4096}, 4, 22016,
        lambda t: [_random(t, 22016, 4096, dtype="bfloat16") for _ in range(3)], (2,), 2e-2),
    "adam": Case(
        ("*fp32:16",) * 4 + ("fp32",), {"N": 1024}, 4, 32768,
        lambda t: [_random(t, 32768, 1024), _random(t, 32768, 1024), _zeros(t, 32768, 1024),
                   _zeros(t, 32768, 1024) + 1, 1e-3], (0,)),
    "pixels": Case(
        ("*fp16:16", "*fp16:16", "i32:8", "i32:8", "i32:16"), {"C": 64, "P": 128}, 4, 8192,
        lambda t: [_random(t, 64, 1024 * 1024, dtype="float16"),
                   _zeros(t, 1024 * 1024, 64, dtype="float16"), 1024, 1024, 1024 * 1024], (1,)),
    "locked_add": Case(
        ("*fp32:16", "*fp32:16", "*i32:16"), {"N": 4096}, 8, 8192,
        lambda t: [_random(t, 8192, 4096), _zeros(t, 64, 4096), _zeros(t, 64, dtype="int32")],
        (1,), 2e-2, (1,)),
    "tickets": Case(
        ("*i32:16", "*i32:16"), {"N": 1024}, 4, 65536,
        lambda t: [_zeros(t, 1, dtype="int32"), _zeros(t, 65536, 1024, dtype="int32")], (1,)),
    "int_times_half": Case(
        ("*i32:16", "*fp16:16", "*fp16:16"), {"N": 1024}, 4, 65536,
        lambda t: [t.randint(0, 1 << 30, (65536, 1024), device="cuda", dtype=t.int32),
                   _random(t, 65536, 1024, dtype="float16"),
                   _zeros(t, 65536, 1024, dtype="float16")], (2,), 2e-3),
    "row_sums": Case(
        ("*bf16:16", "*bf16:16", "*fp32:16", "i32", "i32"), {"N": 8192}, 16, 132,
        lambda t: [_random(t, 8192, 8192, dtype="bfloat16") / 16,
                   _random(t, 8192, 8192, dtype="bfloat16") / 16, _zeros(t, 132, 8192), 8192, 132],
        (2,), 2e-2),
    "bfloat_scale": Case(
        ("*bf16:16", "*fp32:16", "*bf16:16"), {"N": 2048}, 4, 32768,
        lambda t: [_random(t, 32768, 2048, dtype="bfloat16"), _random(t, 32768, 2048),
                   _zeros(t, 32768, 2048, dtype="bfloat16")], (2,), 2e-2),
}


def kernels_of(dialect: ModuleType | None) -> ModuleType:
    """micro_kernels.py with a module under the name of Triton; None is Triton itself."""
    names = {} if dialect is None else {"triton": dialect, "triton.language": dialect.language}
    path = Path(__file__).parent / "micro_kernels.py"
    spec = importlib.util.spec_from_file_location(f"micro_kernels_{len(names)}", path)
    module = importlib.util.module_from_spec(spec)
    # leaving the patch would take from sys.modules what was imported within: Triton itself
    with mock.patch.dict(sys.modules, names) if names else nullcontext():
        spec.loader.exec_module(module)
    return module


def show_code(names: list[str]) -> None:
    """Our machine code: the number of instructions, and the most frequent ones."""
    kernels = kernels_of(ours)
    for name in names:
        case = CASES[name]
        options = {} if case.warps is None else {"num_warps": case.warps}
        compiled = bn.compile(getattr(kernels, name), case.signature, dict(case.constants),
                              target="sm_90a", **options)
        found = Counter(_INSTRUCTION.findall(compiled.asm["sass"]))
        found.pop("NOP", None)
        stats = compiled.stats
        print(f"{name:16} {found.total():5} instructions {stats.registers:4} registers "
              f"{stats.spills:4} spills", dict(found.most_common(9)))


def measure(names: list[str]) -> None:
    """Times of both, and whether they agree."""
    import torch  # only on a GPU
    from measure import gpu_timer, interleaved, medians

    theirs, mine = kernels_of(None), kernels_of(ours)
    print("| kernel | Triton, us | ours, us | ratio | our warps, us | ratio | agree |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        case = CASES[name]
        arguments = case.arguments(torch)
        first = {i: arguments[i].clone() for i in (*case.outputs, *case.zeroed)}
        options = {} if case.warps is None else {"num_warps": case.warps}
        runs, results = {}, {}
        for who, kernel, chosen in (("Triton", getattr(theirs, name), options),
                                    ("ours", getattr(mine, name), options),
                                    ("own warps", getattr(mine, name), {})):
            for index, value in first.items():
                arguments[index].copy_(value)
            runs[who] = partial(kernel[case.grid,], *arguments, **case.constants, **chosen)
            runs[who]()
            results[who] = [arguments[i].float().clone() for i in case.outputs]
        agree = all(torch.allclose(found, wanted, rtol=case.tolerance, atol=case.tolerance)
                    for who in ("ours", "own warps")
                    for found, wanted in zip(results[who], results["Triton"], strict=True))
        us = {who: 1e6 * seconds for who, seconds in medians(
            interleaved(runs, gpu_timer(), ROUNDS, REPEATS)).items()}
        ratios = [us["Triton"] / us[who] for who in ("ours", "own warps")]
        print(f"| {name} | {us['Triton']:.1f} | {us['ours']:.1f} | {ratios[0]:.3f} | "
              f"{us['own warps']:.1f} | {ratios[1]:.3f} | {agree} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--code", action="store_true", help="machine code, without a GPU")
    chosen = parser.parse_args()
    names = [name for name in CASES
             if not chosen.names or any(part in name for part in chosen.names)]
    (show_code if chosen.code else measure)(names)


if __name__ == "__main__":
    main()
