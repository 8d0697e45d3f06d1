"""Attributes of constexprs in Triton's dialect, which kernels have as the values themselves."""

from __future__ import annotations


class constexpr_type:  # noqa: N801 - Triton's name
    """The type of a constexpr, which tells its value too: `x.type` in a kernel.

    It is no dataclass, which kernels would have as a record.
    """

    __compile_time__ = True

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type({self.value!r})"


ATTRIBUTES = {"type": constexpr_type}
