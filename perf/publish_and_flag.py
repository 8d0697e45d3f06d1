"""A litmus test of atomics on a GPU: what is written before a flag is seen after it, every time.

    python perf/publish_and_flag.py [--rounds 200]

The first half of the programs each write a row and then add to a flag, by an atomic whose result
nothing reads: it releases.  The other half wait for a flag, by an atomic that acquires, and copy
the row.  Rows and flags are of one launch each, and rows differ from launch to launch.
"""

from __future__ import annotations

import argparse
import sys

import torch

import blocknumba as bn

PAIRS, SIZE = 64, 4096  # all programs fit a GPU at once, and producers come first


@bn.jit
def by_scalar(values, rows, flags, out, PAIRS: bn.constexpr, N: bn.constexpr):
    """Flags of which each is one element."""
    program, c = bn.program_id(0), bn.arange(N)
    if program < PAIRS:
        rows[program, c] = values[program, c]
        bn.atomic_add(flags.at[program], 1)
    else:
        while bn.atomic_or(flags.at[program - PAIRS], 0, sem="acquire") == 0:
            pass
        out[program - PAIRS, c] = rows[program - PAIRS, c]


@bn.jit
def by_tile(values, rows, flags, out, PAIRS: bn.constexpr, N: bn.constexpr):
    """Flags of which a tile of 32 is added to, by vectors, and one is waited for."""
    program, c, f = bn.program_id(0), bn.arange(N), bn.arange(32)
    if program < PAIRS:
        rows[program, c] = values[program, c]
        bn.atomic_add(flags.at[program * 32 + f], bn.full((32,), 1.0, flags.dtype))
    else:
        at = (program - PAIRS) * 32 + program % 32
        while bn.atomic_add(flags.at[at], 0.0, sem="acquire") == 0:
            pass
        out[program - PAIRS, c] = rows[program - PAIRS, c]


def differing(kernel: object, dtype: str, per_flag: int, rounds: int) -> int:
    """How many elements were not those that had been published."""
    found, dtype = 0, getattr(torch, dtype)
    rows = torch.zeros((PAIRS, SIZE), device="cuda")
    for number in range(rounds):
        values = torch.rand((PAIRS, SIZE), device="cuda") + number
        flags = torch.zeros((PAIRS * per_flag,), device="cuda", dtype=dtype)
        out = torch.full_like(values, -1.0)
        kernel[2 * PAIRS](values, rows, flags, out, PAIRS=PAIRS, N=SIZE, num_warps=4)
        found += int((out != values).sum())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    found = {"flag of int32": differing(by_scalar, "int32", 1, rounds),
             "tile of float32": differing(by_tile, "float32", 32, rounds)}
    for name, count in found.items():
        print(f"{name:16} {rounds} launches, {count} elements differ")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
