"""Quotients and square roots of float32 on a GPU next to NumPy's: every bit, many operands.

    python perf/exact_division.py [--pairs 1000000000]

Half of the operands are any bits, so that threads take the cold way; half have exponents within
which the quick way is taken, some of them with quotients next to ties.  Prints a table, and fails
if any bit differs.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch

import blocknumba as bn

TILE, CHUNK = 2048, 1 << 24


@bn.jit
def quotients(x, y, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = x[i] / y[i]


@bn.jit
def by_number(x, y, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = x[i] / y[bn.program_id(0)]


@bn.jit
def roots(x, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = bn.sqrt(x[i])


def any_bits(rng: np.random.Generator, count: int) -> np.ndarray:
    """Floats of random bits."""
    return rng.integers(0, 1 << 32, count, np.uint32).view(np.float32)


def moderate(rng: np.random.Generator, count: int) -> np.ndarray:
    """Floats with exponents from -30 to 30."""
    exponents = rng.integers(127 - 30, 127 + 30, count, np.uint32) << 23
    return (exponents | rng.integers(0, 1 << 32, count, np.uint32) & 0x807FFFFF).view(np.float32)


def next_to_ties(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose quotient is a float that ends in a half of the last place, nearly: (x, y)."""
    y = rng.integers(1 << 23, 1 << 24, count, np.uint64) | np.uint64(1)
    half = (rng.integers(1 << 23, 1 << 24, count, np.uint64) << np.uint64(1)) | np.uint64(1)
    product = half * y
    x = product >> np.uint64(24)
    x = np.where(x >> np.uint64(24) != 0, x >> np.uint64(1), x)
    return x.astype(np.float32), y.astype(np.float32)


def differing(kernel: object, operands: tuple[np.ndarray, ...], wanted: np.ndarray) -> int:
    """How many results have other bits than wanted; any NaN is one."""
    on_device = [torch.from_numpy(x.copy()).cuda() for x in operands]
    out = torch.full((len(wanted),), 77.0, device="cuda")
    kernel[len(wanted) // TILE](*on_device, out, N=TILE, num_warps=4)
    found = out.cpu().numpy()
    is_nan = np.isnan(wanted)
    same = np.where(is_nan, np.isnan(found), found.view(np.uint32) == wanted.view(np.uint32))
    return int((~same).sum())


def rounds(rng: np.random.Generator) -> dict[str, int]:
    """The differences of one chunk of each kind."""
    ties = next_to_ties(rng, CHUNK)
    pairs = {"any bits": (any_bits(rng, CHUNK), any_bits(rng, CHUNK)),
             "moderate": (moderate(rng, CHUNK), moderate(rng, CHUNK)), "next to ties": ties}
    found = {}
    with np.errstate(all="ignore"):
        for name, (x, y) in pairs.items():
            found[f"x / y, {name}"] = differing(quotients, (x, y), x / y)
            rows = y[:CHUNK // TILE]
            found[f"row / y, {name}"] = differing(
                by_number, (x, rows), (x.reshape(-1, TILE) / rows[:, None]).ravel())
            found[f"sqrt, {name}"] = differing(roots, (np.abs(x),), np.sqrt(np.abs(x)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1_000_000_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng, total, tried = np.random.default_rng(chosen.seed), {}, 0
    while tried < chosen.pairs:
        for name, count in rounds(rng).items():
            total[name] = total.get(name, 0) + count
        tried += 3 * CHUNK
    print(f"{torch.cuda.get_device_name()}: {tried // 3} operands of each kind")
    for name, count in total.items():
        print(f"{name:24} {count} differ")
    return int(any(total.values()))


if __name__ == "__main__":
    sys.exit(main())
