"""A kernel in plain Triton, what it is given, and what NumPy says it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """A kernel and its launch.

    make: generator -> the arguments in order, and the expected contents of the output arrays, by
    position; outputs hold poison before.   error: relative, of floats.
    """

    kernel: object
    grid: object
    make: Callable[[np.random.Generator], tuple[list, dict[int, np.ndarray]]]
    named: Mapping[str, object] = field(default_factory=dict)
    error: float = 0.0

    def check(self, run: Callable[..., None]) -> None:
        """Run it and compare.   run: (kernel, grid, *arguments, **named)."""
        arguments, expected = self.make(np.random.default_rng())
        run(self.kernel, self.grid, *arguments, **self.named)
        for position, wanted in expected.items():
            found = np.asarray(arguments[position])
            if wanted.dtype.kind == "f" and self.error:
                np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=self.error,
                                           atol=self.error * max(1, np.abs(wanted).max()))
            else:
                np.testing.assert_array_equal(found, wanted.astype(found.dtype))


def case(kernel: object, grid: object, error: float = 0.0, **named: object) -> Callable:
    """Declare a case by the function that makes its arguments."""
    def declare(make: Callable) -> Callable:
        CASES[make.__name__] = Case(kernel, grid, make, named, error)
        return make
    return declare


def poison(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """An output that no kernel writes by chance."""
    return np.full(shape, -77, dtype)


def floats(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal float32."""
    return generator.standard_normal(shape).astype(np.float32)
