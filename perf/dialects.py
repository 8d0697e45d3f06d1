"""Kernels that mean the same under blocknumba.jit and blocknumba.triton.jit: one text, two times.

    python perf/dialects.py [part of a name ...]     on a GPU, with Torch
    python perf/dialects.py --code                   whether the PTX is the same, without a GPU

Kinds of kinds.py without division, exp and other operations that the dialects do differently.
Interleaved, with the same warps; the exit status is 0 if each reaches LEAST of the other's speed,
or with --code if all are the same.
"""

from __future__ import annotations

import argparse
import types
from functools import partial

import kinds
import torch
from kinds_case import KINDS, Launch, Make

import blocknumba as bn
import blocknumba.triton

NAMES = ("add", "transpose_f16", "embedding", "jagged_sum", "cumsum", "column_sums", "topk",
         "rope_positions", "dequantise_rows", "copy_of_transposed", "gemm_masked", "gemm_int8")
LEAST = 0.98
OURS, TRITONS = "blocknumba.jit", "blocknumba.triton.jit"


def kernels() -> dict[str, dict[str, object]]:
    """The texts under each decorator."""
    ours = types.ModuleType("ours")
    ours.jit, ours.language = bn.jit, bn
    return {OURS: kinds.kernels_of(ours), TRITONS: kinds.kernels_of(blocknumba.triton)}


def instructions(kernel: object, launch: Launch) -> list[str]:
    """The PTX of a kernel for sm_90a, without its name and what says where a line comes from."""
    compiled = bn.compile(kernel, kinds.signature_of(launch.arguments), dict(launch.constants),
                          target="sm_90a", **launch.options)
    body = compiled.ptx.partition("{")[2].partition(".section")[0]
    return [line for line in body.splitlines() if not line.strip().startswith((".loc", "//"))]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--code", action="store_true")
    given = parser.parse_args()
    slow, texts = [], kernels()
    for name in (n for n in NAMES if not given.parts or any(part in n for part in given.parts)):
        one = KINDS[name]
        launch = one.build(Make(torch, "meta" if given.code else "cuda"), **one.real)
        if given.code:
            first, second = (instructions(those[one.kernel], launch) for those in texts.values())
            print(f"{name:24} {'same' if first == second else 'other'} PTX, {len(first)} and "
                  f"{len(second)} lines", flush=True)
            slow += [name] if first != second else []
            continue
        times = kinds.timed({who: partial(
            those[one.kernel][launch.grid], *launch.arguments, **launch.constants,
            **launch.options) for who, those in texts.items()})
        ratio = times[OURS] / times[TRITONS]
        slow += [name] if not LEAST <= ratio <= 1 / LEAST else []
        print(f"{name:24} {OURS} {times[OURS]:9.1f} us, {TRITONS} {times[TRITONS]:9.1f} us, "
              f"ratio {ratio:.3f}", flush=True)
    print(f"{'of other code' if given.code else f'further apart than {LEAST}'}: "
          f"{', '.join(slow) or 'none'}")
    return int(bool(slow))


if __name__ == "__main__":
    raise SystemExit(main())
