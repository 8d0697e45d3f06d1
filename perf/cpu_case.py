"""One computation of compare_cpu.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType

import numpy as np

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """One computation.

    kernel: runs ours into the outputs that it is given.  peer, inputs: the loop for Numba, and what
    it takes before the outputs; it may be given more after.  numpy: in float32.
    exact: the results in float64.  tolerance: absolute and relative.  outputs: like the results.
    inside: the part of the results that counts.  unlike: fraction of the elements that fastmath may
    make others, where small errors grow without bound.
    """

    kernel: Callable[..., object]
    peer: FunctionType
    inputs: tuple
    numpy: Run
    exact: Run
    outputs: tuple[np.ndarray, ...]
    tolerance: float = 1e-5
    after: tuple = ()
    inside: tuple = (Ellipsis,)
    unlike: float = 0.0


def wide(*arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays in float64."""
    return [array.astype(np.float64) for array in arrays]
