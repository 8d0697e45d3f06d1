"""The annotation of parameters that are known at compile time."""

from __future__ import annotations

import numpy as np


class constexpr:  # noqa: N801 - Triton's spelling
    """`BLOCK: bn.constexpr` makes a parameter a compile-time constant.

    `N = bn.constexpr(128)` marks a global as one, which is allowed but not needed: every global
    that a kernel reads is a constant.
    """

    def __init__(self, value: object):
        self.value = value

    def __repr__(self) -> str:
        return f"constexpr({self.value!r})"


def unwrapped(value: object) -> object:
    """What a kernel reads from a variable outside: the value of a constexpr, of an array
    without axes its element, and any other value as it is.
    """
    if isinstance(value, constexpr):
        return value.value
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value
