"""Measure memory-bound kinds of kernels at every number of warps, next to the compiler's choice.

    python perf/sweep_kinds.py [part of a name ...]    on a GPU, with Torch

The ratio is the time of the fastest of up to 16 warps by that of the compiler's choice: how the
constants of the cost model (gpu_layout/cost_model.py) were measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kinds import kernels_of, timed
from kinds_case import KINDS, MEMORY, Kind, Launch, Make

import blocknumba.triton as ours
from blocknumba.errors import BlockError

WARPS = (1, 2, 4, 8, 16, 32)
OWN = "own"
MAX_ELEMENTS_PER_THREAD = 128  # more takes long to compile, and is slow


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


def sweep(torch: object, one: Kind, kernels: dict, pool: ThreadPoolExecutor) -> str:
    """A line of the table."""
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
    return " | ".join(cells)


def main() -> None:
    """Sweep the memory-bound kinds that the command line names, or all."""
    # here and not above: for a GPU only
    import torch

    names, kernels = sys.argv[1:], kernels_of(ours)
    with ThreadPoolExecutor(8) as pool:
        for name, one in KINDS.items():
            if one.bound == MEMORY and (not names or any(part in name for part in names)):
                print(sweep(torch, one, kernels, pool), flush=True)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
