"""The annotation of parameters that are known at compile time."""

from __future__ import annotations


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
    """The value of a constexpr, and any other value as it is."""
    return value.value if isinstance(value, constexpr) else value
