"""Statements about whole arrays, which the programs of a grid share, and arrays of no axes."""

from __future__ import annotations

import re

from kernel_parts import statement
from kernel_recipes import Made
from numpy_tiles import BOOL, DTYPES, INTS

_TEXTS = ("a + b", "a - b", "bn.maximum(a, b)", "bn.where(a > b, a, b)", "bn.where(a > 2, b, a)",
          "a * b", "a * 3 + b", "-a", "bn.abs(a) + b", "bn.clamp(a, 0, 2)")


@statement(2)
def over_the_grid(m):
    """A whole array, tile by tile, shared between the programs; of it is made another."""
    if m.scope.depth or m.scope.in_function:
        return None
    dtype = m.pick([*INTS, *(DTYPES[name] for name in ("float16", "bfloat16", "float32",
                                                       "float64"))])
    length, size = m.pick([0, 1, m.random.randint(2, 700)]), m.pick([16, 64, 256])
    x, y = (m.new_input((length,), dtype, m.pick([0, 9])) for _ in range(2))
    text = m.pick(_TEXTS)
    out = m.new_output(dtype, (length,))
    r, a, b = m.new_name("r"), m.new_name("a"), m.new_name("b")
    return [f"for {r} in bn.grid_spans({x.name}.shape[0], {size}"
            f"{', axis=0' if m.chance(0.2) else ''}):",
            f"    {a}, {b} = {x.name}[{r}], {y.name}[{r}]",
            f"    {out.name}[{r}] = {_spelled(text, a, b)}"]


def _spelled(text: str, a: str, b: str) -> str:
    """A text with other names for a and b."""
    return re.sub(r"\b[ab]\b", lambda found: a if found[0] == "a" else b, text)


@statement(1)
def single_element(m):
    """An array of no axes, which is read."""
    array = m.new_input((), layouts=("c", "offset", "readonly"))
    return m.bound(Made(f"{array.name}[()]", array.facts))


@statement(1)
def counted_into_one(m):
    """An array of no axes, to which all programs add."""
    x = m.any_of(lambda v: v.shape and v.dtype == BOOL)
    if x is None:
        return None
    out = m.new_output(DTYPES["int32"], (), zeros=True, layouts=("c", "offset"))
    return [f"bn.atomic_add({out.name}.at[()], bn.sum({x.name}))"]


@statement(2)
def updated_in_place(m):
    """Elements of an array, or of a view of it, which an operator replaces."""
    x = m.any_of(lambda v: v.shape and v.dtype != BOOL)
    if x is None or m.scope.in_function:
        return None
    out, spans = m.new_output(x.dtype, (m.programs, *x.shape)), m.spans(x.shape)
    symbol = m.pick(["+", "-", "*"] + ([] if x.is_float else ["^", "&", "|"]))
    place = m.pick([f"{out.name}[{', '.join(['p', *spans])}]",
                    f"{out.name}[p][{', '.join(spans)}]"])
    lines = [f"{place} {symbol}= {x.name}"]
    if m.chance(0.5):  # the last axis from its end
        turned = f"{out.name}[{', '.join(['p', *[':'] * (len(spans) - 1), '::-1'])}]"
        lines.append(f"{turned}[{', '.join(spans)}] {symbol}= {m.pick([x.name, '2'])}")
    return lines
