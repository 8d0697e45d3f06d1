"""The cases of every op."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping

import conversion_cases  # noqa: F401  each adds its cases to CASES
import control_cases  # noqa: F401
import dot_cases  # noqa: F401
import elementwise_cases  # noqa: F401
import function_cases  # noqa: F401
import gather_cases  # noqa: F401
import kernel_cases  # noqa: F401
import map_cases  # noqa: F401
import order_cases  # noqa: F401
import scan_cases  # noqa: F401
import tile_cases  # noqa: F401
import view_cases  # noqa: F401
from case import CASES, Case
from expression_cases import EXPRESSIONS, PER_FUNCTION, expression_case

# names whose cases are many: tests draw some of all of them, others each time
DRAWN = tuple(f"bn.{name}" for name in EXPRESSIONS)
SAMPLED = tuple(name for name in CASES if name not in DRAWN)  # tests run some of each


def cases() -> Iterator[Case]:
    """Every case of every op, in a fixed order."""
    for name in CASES:
        yield from cases_of(name)


def cases_of(name: str) -> Iterator[Case]:
    """The cases of one op."""
    for function in CASES[name]:
        yield from (case for case in function() if case.op == name)


def spread(counts: Mapping[str, int], total: int) -> dict[str, list[int]]:
    """The numbers of `total` cases, evenly spread over the cases of each op; few ops lose all.

    counts: how many cases each op has.
    """
    left, chosen = min(total, sum(counts.values())), {}
    # ops with few cases first: what they leave goes to the others
    for place, (name, count) in enumerate(sorted(counts.items(), key=lambda item: item[1])):
        share = min(count, -(-left // (len(counts) - place)))
        chosen[name] = [number * count // share for number in range(share)]
        left -= share
    return {name: chosen[name] for name in counts if chosen[name]}


def drawn_cases(count: int) -> Iterator[Case]:
    """So many cases of functions, of one function each."""
    generator = random.Random(secrets.randbits(40))
    for name in generator.sample(list(EXPRESSIONS), count):
        yield expression_case(name, generator.randrange(PER_FUNCTION))


def some_cases(name: str, count: int | None) -> list[Case]:
    """So many of the cases of an op, evenly spread; all where count is None, or is not reached."""
    found = list(cases_of(name))
    if count is None:
        return found
    return [found[number] for number in spread({name: len(found)}, count)[name]]
