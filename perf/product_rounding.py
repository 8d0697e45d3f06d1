"""How far off a right product is: the roundings of each kind, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass

# Off from the typical error that a right product may be: in the mean square, and anywhere.
MAX_MEAN, MAX_ANYWHERE = 1.0, 8.0
# Terms that tensor cores add up before they cut the sum off, as far as their results show.
TENSOR_CORE_TERMS = 8
_LEAST = 1e-100  # where an exact result is due: any error is infinitely many times this


@dataclass(frozen=True)
class Rounding:
    """The roundings of one product, each relative to what is rounded.

    result: of the result, to nearest.   operands: of each operand.
    addition: of each sum so far.
    cut_after: terms between two additions where sums are cut off, always towards 0; 0 where each is
        rounded to nearest: errors up and down cancel but for the square root of their number.
    """

    result: float = 0.0
    operands: float = 0.0
    addition: float = 0.0
    cut_after: int = 0

    def typical(self, exact, terms, depth):
        """The error that each element of a right product keeps to, but for few of them.

        exact: a @ b, terms: abs(a) @ abs(b), both in float64.   depth: terms of each sum.
        Sums on the way are as large as the result, or as a random walk of the terms.
        """
        sums = abs(exact) + 2 * terms / depth**0.5
        additions = depth / self.cut_after if self.cut_after else depth**0.5
        return (self.result * abs(exact)
                + (2 * self.operands + additions * self.addition) * sums)

    def measure(self, off, exact, terms, depth) -> dict[str, float]:
        """How many times the typical error a product is off: in the mean square, and at most.

        off: abs(c - exact) in float64.
        """
        times = off / (self.typical(exact, terms, depth) + _LEAST)
        return {"mean": float((times**2).mean()) ** 0.5, "anywhere": float(times.max())}


def is_right(times: dict[str, float]) -> bool:
    """Whether a product that is off as measured is right; NaN is not."""
    return times["mean"] <= MAX_MEAN and times["anywhere"] <= MAX_ANYWHERE


def _tensor_cores(result: float, operands: float = 0.0, addition: float = 2**-23) -> Rounding:
    return Rounding(result, operands, addition, TENSOR_CORE_TERMS)


ROUNDINGS = {
    "f16": _tensor_cores(2**-11),
    "bf16": _tensor_cores(2**-8),
    # the tensor cores of Hopper keep 13 bits behind the leading one of the largest addend
    "fp8": _tensor_cores(2**-8, addition=2**-13),
    "tf32": _tensor_cores(2**-24, operands=2**-11),
    "tf32x3": _tensor_cores(2**-24, operands=2**-22),
    "f32": Rounding(2**-24, addition=2**-24),
    "f64": Rounding(2**-53, addition=2**-53),
    "int8": Rounding(),
    # of small integers no sum is rounded, not even in 13 bits
    "fp8 of integers": Rounding(2**-8),
    # float16 probabilities, and a float16 result
    "attention": _tensor_cores(2**-11, operands=2**-11),
}
