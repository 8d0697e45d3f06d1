"""Measure our kernels at every num_warps: how default_num_warps was chosen.

    python perf/sweep_warps.py [part of a name]    on a GPU
"""

from __future__ import annotations

import sys

from example_kernels import layernorm, softmax, vector_add
from measure import Run, gpu_timer, interleaved, medians
from memory_cases import CASES, SUBJECT

import blocknumba as bn

WARPS = (1, 2, 4, 8, 16, 32)
ROUNDS, REPEATS = 10, 5


KERNELS = ((vector_add, "add"), (softmax, "softmax"), (layernorm, "layernorm"))


def with_warps(run: Run, warps: int) -> Run:
    """run with the kernels of the examples compiled for a number of warps."""
    ours = [(module, name, bn.jit(getattr(module, name).python_function, num_warps=warps))
            for module, name in KERNELS]
    defaults = [(module, name, getattr(module, name)) for module, name in KERNELS]

    def run_with_warps() -> None:
        for module, name, kernel in ours:
            setattr(module, name, kernel)
        run()
        for module, name, kernel in defaults:
            setattr(module, name, kernel)

    return run_with_warps


def main() -> None:
    """Print GB/s of every case at every number of warps, of the default, and of Triton's best."""
    print("GB/s", *(f"warps={warps}" for warps in WARPS), "default", "Triton", sep="\t")
    part = "".join(sys.argv[1:])
    for name, make in CASES.items():
        if part not in name:
            continue
        case = make()
        runs = {str(warps): with_warps(case.runs[SUBJECT], warps) for warps in WARPS}
        runs |= {who: case.runs[who] for who in (SUBJECT, "Triton")}
        times = medians(interleaved(runs, gpu_timer(), ROUNDS, REPEATS))
        print(name, *(f"{case.bytes_moved / seconds / 1e9:.0f}" for seconds in times.values()),
              sep="\t", flush=True)


if __name__ == "__main__":
    main()
