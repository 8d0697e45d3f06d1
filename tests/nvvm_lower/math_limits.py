"""Mathematical ops of floats at their limits, on devices, next to a wider format.

    python tests/nvvm_lower/math_limits.py --on interpreter emulator --seconds 60
    python tests/nvvm_lower/math_limits.py --on gpu --seconds 60 --only pow

Each round draws new numbers, many of them where a function overflows, vanishes or changes its
formula (`math_oracles.limits`).  An error beyond what the op states is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    HERE = Path(__file__).parent
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import emulated_gpu  # noqa: E402
from math_oracles import (  # noqa: E402
    DRAWS, EXACT, Long, exact_value, lgamma, near_limits, of_moderate_size, special_numbers, ulps,
)

import blocknumba as bn  # noqa: E402
from blocknumba.tile_ir.ops.elementwise import ERROR_OF_TERMS, ERROR_ULPS  # noqa: E402

SIZE = 512  # elements of a program
DEVICES = ("interpreter", "emulator", "gpu")
NAMES = tuple(sorted({*ERROR_ULPS, "sqrt", *EXACT} - {"copysign"}))


@bn.jit
def power(x, y):
    return x ** y


@bn.jit
def mod(x, y):
    return x % y


@bn.jit
def floordiv(x, y):
    return x // y


OPERATORS = {"power": power, "mod": mod, "floordiv": floordiv}
OF_TWO = {*OPERATORS, "atan2", "hypot", "nextafter"}


@bn.jit
def apply(x, y, out, FUNCTIONS: bn.constexpr, ARITY: bn.constexpr, N: bn.constexpr):
    r = bn.span(bn.program_id(0) * N, N)
    for k in bn.static_range(len(FUNCTIONS)):
        if ARITY == 1:
            out[k, r] = FUNCTIONS[k](x[r])
        else:
            out[k, r] = FUNCTIONS[k](x[r], y[r])


def operands(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    """Pairs of floats (2, a multiple of SIZE): by every draw, special, and of related sizes."""
    special = np.stack([x.ravel() for x in np.meshgrid(*[special_numbers(dtype)] * 2)])
    parts = [draw(rng, dtype, (2, count)) for draw in DRAWS] + [special]
    x, other = of_moderate_size(rng, dtype, (2, count))
    share = 1 + 10.0 ** rng.uniform(-17, -2, count)
    scale = rng.choice([1, 2, 3, 0.5, 1e-8, 1e8, 1e-20, 1e20], count)
    ends = np.log(np.array([np.finfo(dtype).max, np.finfo(dtype).tiny,
                            np.finfo(dtype).smallest_subnormal], Long))
    with np.errstate(all="ignore"):
        parts.append(np.stack([x, (x * scale * share).astype(dtype)]))
        exponent = (rng.choice(ends, count) * share / np.log(np.abs(other).astype(Long)))
        parts.append(np.stack([other, exponent.astype(dtype)]))
    pairs = np.concatenate(parts, axis=1)
    return np.concatenate([pairs, near_limits(rng, dtype, (2, -pairs.shape[1] % SIZE))], axis=1)


def results(device: str, names: tuple[str, ...], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A row (len(names), x.size) for each function; all of one arity."""
    out = np.full((len(names), x.size), 77, x.dtype)
    functions = tuple(OPERATORS.get(name) or getattr(bn, name) for name in names)
    given = (x, y, out, functions, 1 + (names[0] in OF_TWO), SIZE)
    if device == "emulator":
        emulated_gpu.launch(apply, (x.size // SIZE,), given, {})
    else:
        apply[x.size // SIZE](*given, interpret=device == "interpreter")
    return out


def distances(name: str, x: np.ndarray, found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in units in the last place, or in those of the terms that lgamma is a sum of."""
    distance = ulps(found, exact)
    if name not in ERROR_OF_TERMS:
        return distance
    wide = np.where(np.isfinite(x) & (x < 0), x, -1).astype(Long)
    with np.errstate(all="ignore"):
        terms = np.maximum(1, np.where(wide < 0, lgamma(-wide), 1))
        of_terms = np.abs(found - exact) / (np.finfo(found.dtype).eps * terms)
    return np.where(np.isfinite(of_terms), np.minimum(distance, of_terms), distance)


def failures(device: str, names: tuple[str, ...], dtype: type,
             rng: np.random.Generator, count: int) -> Iterator[str]:
    """What is further from the exact value than its op states, or has another sign of zero."""
    for is_arity in (lambda name: name not in OF_TWO, OF_TWO.__contains__):
        chosen = tuple(filter(is_arity, names))
        if not chosen:
            continue
        x, y = operands(rng, dtype, count)
        for name, found in zip(chosen, results(device, chosen, x, y)):
            yield from _wrong(name, found, x, *[y] * (name in OF_TWO))


def _wrong(name: str, found: np.ndarray, *given: np.ndarray) -> Iterator[str]:
    exact = exact_value(name, *given)
    bound = ERROR_ULPS.get(name, 0.5 if name == "sqrt" else 0)
    distance = distances(name, given[0], found, exact)
    signs = (found == 0) & (exact == 0) & (np.signbit(found) != np.signbit(exact))
    for what, wrong in ((f"beyond {bound} units", distance > bound), ("the sign of zero", signs)):
        if wrong.any():
            at = int(np.argmax(np.where(wrong, distance, -1)))
            yield (f"{name}({', '.join(repr(x[at]) for x in given)}) is {found[at]!r}, exactly "
                   f"{exact[at]!r}: {distance[at]:.3f} units; {what}: {wrong.sum()} of "
                   f"{wrong.size}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", nargs="+", default=["interpreter", "emulator"], choices=DEVICES)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="", help="a part of the names")
    given, started, rounds, failed = parser.parse_args(), time.time(), 0, 0
    names, rng = tuple(n for n in NAMES if given.only in n), np.random.default_rng()
    while not rounds or time.time() - started < given.seconds:
        for device in given.on:
            for dtype in (np.float32, np.float64):
                for text in failures(device, names, dtype, rng, 8 * SIZE):
                    print(f"{device}: {text}", flush=True)
                    failed += 1
        rounds += 1
    print(f"{rounds} rounds of {len(names)} functions: {failed} fail")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
