"""Measure kinds of kernels at every number of warps, next to the compiler's choice.

    python perf/sweep_kinds.py [part of a name ...]    memory-bound kinds; on a GPU, with Torch
    python perf/sweep_kinds.py --bound "with dots"     others: what bounds them, in kinds_case.py

The ratio is the time of the fastest of up to 16 warps by that of the compiler's choice: how the
constants of the cost model (gpu_layout/cost_model.py) were measured.  Those under 0.95 are named
at the end.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kinds import kernels_of, timed
from kinds_case import DOTS, FOURTH, FOURTH_DOTS, KINDS, LATER, MEMORY, THIRD, Kind, Launch, Make

import blocknumba.triton as ours
from blocknumba.errors import BlockError

WARPS = (1, 2, 4, 8, 16, 32)
OWN = "own"
MAX_ELEMENTS_PER_THREAD = 128  # more takes long to compile, and is slow
LEAST = 0.95  # of the best, what the compiler's choice should reach


def runs_of(kernel: object, launch: Launch) -> dict[str, Callable]:
    """A launch with the compiler's choice, and with each number of warps that makes sense."""
    sizes = [value for value in launch.constants.values() if isinstance(value, int)]
    largest = max(sizes) if len(sizes) == 1 else max(
        (a * b for i, a in enumerate(sizes) for b in sizes[i + 1:] if a * b <= 1 << 16), default=1)
    chosen = {str(warps): {"num_warps": warps} for warps in WARPS
              if largest <= warps * 32 * MAX_ELEMENTS_PER_THREAD} | {OWN: {}}
    return {name: partial(kernel[launch.grid], *launch.arguments, **launch.constants, **options)
            for name, options in chosen.items()}


def compiled(run: Callable) -> object | None:
    """What a launch compiled; None where it needs too much."""
    try:
        return run()
    except BlockError as error:
        print(f"# {type(error).__name__}: {str(error).splitlines()[0]}")
        return None


def sweep(torch: object, one: Kind, kernels: dict, pool: ThreadPoolExecutor) -> float:
    """The ratio of a kind, whose line of the table is printed."""
    launch = one.build(Make(torch, "cuda"), **one.real)
    runs = runs_of(kernels[one.kernel], launch)
    made = dict(zip(runs, pool.map(compiled, runs.values())))
    torch.cuda.synchronize()
    times = timed({name: run for name, run in runs.items() if made[name] is not None})
    best = min(times[str(warps)] for warps in WARPS[:-1] if str(warps) in times)
    cells = [f"{one.name:22}", f"{best / times[OWN]:.3f}"]
    for name in (OWN, *map(str, WARPS)):
        if name in times:
            code = made[name]
            own = f"={code.metadata.num_warps}" if name == OWN else ""
            cells.append(f"{name}{own}: {times[name]:.1f} us {code.n_regs}r {code.n_spills}s")
    print(" | ".join(cells), flush=True)
    return best / times[OWN]


def main() -> None:
    """Sweep the kinds that the command line names, or all."""
    # here and not above: for a GPU only
    import torch

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--bound", default=MEMORY,
                        choices=(MEMORY, LATER, THIRD, FOURTH, DOTS, FOURTH_DOTS))
    chosen = parser.parse_args()
    kernels, ratios = kernels_of(ours), {}
    with ThreadPoolExecutor(8) as pool:
        for name, one in KINDS.items():
            if one.bound == chosen.bound and (
                    not chosen.names or any(part in name for part in chosen.names)):
                ratios[name] = sweep(torch, one, kernels, pool)
                torch.cuda.empty_cache()
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    print(f"\n{len(ratios)} kinds: own warps by the best of up to 16, mean {mean:.3f}")
    for name, found in ratios.items():
        if found < LEAST:
            print(f"under {LEAST}: {name} {found:.3f}")


if __name__ == "__main__":
    main()
