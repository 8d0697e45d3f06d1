"""The cases of every op."""

from __future__ import annotations

from collections.abc import Iterator

import conversion_cases  # noqa: F401  each adds its cases to CASES
import dot_cases  # noqa: F401
import elementwise_cases  # noqa: F401
import gather_cases  # noqa: F401
import kernel_cases  # noqa: F401
import map_cases  # noqa: F401
import order_cases  # noqa: F401
import scan_cases  # noqa: F401
import tile_cases  # noqa: F401
import view_cases  # noqa: F401
from case import CASES, Case


def cases() -> Iterator[Case]:
    """Every case of every op, in a fixed order."""
    for name in CASES:
        yield from cases_of(name)


def cases_of(name: str) -> Iterator[Case]:
    """The cases of one op."""
    for function in CASES[name]:
        yield from (case for case in function() if case.op == name)
