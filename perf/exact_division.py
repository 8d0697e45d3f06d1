"""Quotients and square roots on a GPU next to those of IEEE 754: every bit, many operands.

    python perf/exact_division.py [--pairs 1000000000] [--doubles 100000000]    with Torch

Operands of any bits, so that threads take the cold way; moderate ones, for which the quick way is
taken; quotients next to ties; quotients among the subnormal numbers; every pair of exponents with
hard mantissas.  The peer is Torch's division on the GPU, which is NVIDIA's of IEEE 754; the first
chunk of each kind is compared with NumPy's on the host besides.  Prints a table, and fails if any
bit differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

import blocknumba as bn

TILE, CHUNK = 2048, 1 << 24
Pair = tuple[torch.Tensor, torch.Tensor]


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


@dataclass(frozen=True)
class Format:
    """A dtype of floats, the ints of its size, bits of its mantissa, and its exponents."""

    floats: torch.dtype
    ints: torch.dtype
    mantissa: int
    exponents: int

    @property
    def bits(self) -> int:
        return torch.finfo(self.floats).bits

    @property
    def bias(self) -> int:
        return self.exponents // 2 - 1

    def random_bits(self) -> torch.Tensor:
        """Ints of random bits, (CHUNK,)."""
        words = torch.randint(-1 << 31, 1 << 31, (CHUNK * self.bits // 32,), device="cuda",
                              dtype=torch.int32)
        return words.view(self.ints)

    def made_of(self, exponents: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        """Floats of exponents, and of the signs and mantissas of ints."""
        sign = torch.iinfo(self.ints).min
        kept = rest & (sign | (1 << self.mantissa) - 1)
        return (kept | exponents.to(self.ints) << self.mantissa).view(self.floats)

    def between(self, low: int, high: int) -> torch.Tensor:
        """Floats whose exponents are drawn from [low, high), without the bias."""
        drawn = torch.randint(low + self.bias, high + self.bias, (CHUNK,), device="cuda")
        return self.made_of(drawn, self.random_bits())


FLOAT32 = Format(torch.float32, torch.int32, 23, 256)
FLOAT64 = Format(torch.float64, torch.int64, 52, 2048)


def any_bits(form: Format) -> Pair:
    """Floats of random bits."""
    return form.random_bits().view(form.floats), form.random_bits().view(form.floats)


def moderate(form: Format) -> Pair:
    """Floats with exponents from -30 to 30."""
    return form.between(-30, 30), form.between(-30, 30)


def next_to_ties(form: Format) -> Pair:
    """Pairs (x, y) whose quotient is a float and a half of its last place, nearly."""
    y = form.between(0, 1).abs()
    quotient = form.between(0, 1).abs()
    half = 2.0 ** -(form.mantissa + 1)
    # y * quotient has more bits than x can hold: x is next to what would be a tie
    return torch.addcmul(y * half, y, quotient), y


def subnormal(form: Format) -> Pair:
    """Pairs of normal numbers whose quotients are subnormal, next to it, or round to zero."""
    least, far = 1 - form.bias, form.mantissa + 8
    return form.between(least, least + far + 4), form.between(far, far + 3)


def hard_pairs(form: Format) -> Iterator[Pair]:
    """Every pair of exponents, with mantissas that are hard to divide; zeros, infinities, NaN."""
    most = (1 << form.mantissa) - 1
    hard = (0, 1, most, most - 1, most // 3, most // 3 * 2, 1 << form.mantissa - 1)
    count = min(form.exponents, 256)
    own = torch.arange(form.exponents, device="cuda")
    for first in range(0, form.exponents, count):
        e, f = torch.meshgrid(own[first:first + count], own, indexing="ij")
        for m in hard:
            for n in hard:
                yield (form.made_of(e.flatten(), torch.full_like(e.flatten(), m, dtype=form.ints)),
                       form.made_of(f.flatten(), torch.full_like(f.flatten(), n, dtype=form.ints)))


def differing(found: torch.Tensor, wanted: torch.Tensor, form: Format) -> int:
    """How many results have other bits than wanted; any NaN is one."""
    same = torch.where(wanted.isnan(), found.isnan(),
                       found.view(form.ints) == wanted.view(form.ints))
    return int((~same).sum())


def checked(wanted: torch.Tensor, by_numpy: Callable, *operands: torch.Tensor) -> torch.Tensor:
    """wanted, if it is what NumPy computes on the host too."""
    with np.errstate(all="ignore"):
        expected = by_numpy(*(x.cpu().numpy() for x in operands))
    np.testing.assert_array_equal(wanted.cpu().numpy(), expected)
    return wanted


def differences(x: torch.Tensor, y: torch.Tensor, form: Format, is_first: bool) -> dict[str, int]:
    """Of one chunk: how many quotients, rows by a number, and roots differ."""
    def wanted(torchs, numpys, *operands):
        made = torchs(*operands)
        return checked(made, numpys, *operands) if is_first else made

    def found(kernel, *operands):
        out = torch.full_like(x, 77.0)
        kernel[len(x) // TILE](*operands, out, N=TILE, num_warps=4)
        return out

    rows, positive = x.reshape(-1, TILE), x.abs()
    numbers = y[:len(rows)].contiguous()
    return {
        "x / y": differing(found(quotients, x, y), wanted(torch.div, np.divide, x, y), form),
        "row / y": differing(
            found(by_number, x, numbers),
            wanted(torch.div, np.divide, rows, numbers[:, None]).flatten(), form),
        "sqrt": differing(found(roots, positive), wanted(torch.sqrt, np.sqrt, positive), form)}


def compare(form: Format, pairs: int) -> dict[str, tuple[int, int]]:
    """Name -> how many were tried, and how many differ."""
    found: dict[str, tuple[int, int]] = {}

    def add(name: str, pair: Pair, is_first: bool) -> None:
        for what, count in differences(*pair, form, is_first).items():
            tried, before = found.get(f"{what}, {name}", (0, 0))
            found[f"{what}, {name}"] = tried + len(pair[0]), before + count

    for draw in (any_bits, moderate, next_to_ties, subnormal):
        for number in range(-(-pairs // CHUNK)):
            add(draw.__name__.replace("_", " "), draw(form), number == 0)
    for number, pair in enumerate(hard_pairs(form)):
        add("every pair of exponents", pair, number < 8)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1_000_000_000, help="of float32, each kind")
    parser.add_argument("--doubles", type=int, default=100_000_000, help="of float64, each kind")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    chosen, wrong = parser.parse_args(), 0
    torch.manual_seed(chosen.seed)
    print(f"{torch.cuda.get_device_name()}, seed {chosen.seed}")
    for form, pairs in ((FLOAT32, chosen.pairs), (FLOAT64, chosen.doubles)):
        for name, (tried, differ) in compare(form, pairs).items():
            print(f"{str(form.floats)[6:]} {name:34} {tried:14,} tried {differ:8,} differ",
                  flush=True)
            wrong += differ
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
