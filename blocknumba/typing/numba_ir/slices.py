"""Slices whose length is a compile-time constant, though where they start is not."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from numba.core import ir

SPAN = "span"  # an expression: start, a variable; size, an int
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class _Sum:
    """constant + the sum of factor * variable over terms."""

    constant: int
    terms: dict[str, int] = field(default_factory=dict)

    def plus(self, other: _Sum, sign: int = 1) -> _Sum:
        """self + sign * other."""
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + sign * factor
        return _Sum(self.constant + sign * other.constant, {n: f for n, f in terms.items() if f})

    def times(self, factor: int) -> _Sum:
        """self * factor."""
        terms = {name: f * factor for name, f in self.terms.items() if factor}
        return _Sum(self.constant * factor, terms)


def find_spans(blocks: dict[int, ir.Block]) -> None:
    """Turn `start : start + SIZE` into the span of SIZE elements from start.

    The difference of the bounds is computed as a sum over variables, so that `i * B : (i + 1) * B`
    is one too.  The blocks are in SSA form.
    """
    definitions = {s.target.name: s.value for block in blocks.values() for s in block.body
                   if isinstance(s, ir.Assign)}
    for block in blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.Assign) and _is_slice_call(statement.value, definitions):
                size = _size(statement.value, definitions)
                if size is not None:
                    start = statement.value.args[0]
                    statement.value = ir.Expr(SPAN, statement.loc, start=start, size=size)


def _is_slice_call(node: object, definitions: dict[str, object]) -> bool:
    if not (isinstance(node, ir.Expr) and node.op == "call" and len(node.args) in (2, 3)):
        return False
    function = definitions.get(node.func.name)
    return isinstance(function, (ir.Global, ir.FreeVar)) and function.value is slice


def _size(node: ir.Expr, definitions: dict[str, object]) -> int | None:
    if len(node.args) == 3 and _constant(node.args[2], definitions) not in (None, 1):
        return None
    start, stop = (_sum(variable.name, definitions) for variable in node.args[:2])
    if start is None or stop is None or not start.terms:
        return None
    length = stop.plus(start, -1)
    return length.constant if not length.terms and length.constant > 0 else None


def _constant(variable: ir.Var, definitions: dict[str, object]) -> object:
    node = definitions.get(variable.name)
    return node.value if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)) else node


def _sum(name: str, definitions: dict[str, object], depth: int = 0) -> _Sum | None:
    """A variable as a sum; None when it is a constant that is not an int."""
    node = definitions.get(name)
    if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)):
        is_int = isinstance(node.value, int) and not isinstance(node.value, bool)
        return _Sum(node.value) if is_int else None
    itself = _Sum(0, {name: 1})
    if depth > _MAX_DEPTH:
        return itself
    if isinstance(node, ir.Var):
        return _sum(node.name, definitions, depth + 1)
    if not isinstance(node, ir.Expr) or node.op not in ("binop", "inplace_binop"):
        return itself
    function = node.fn if node.op == "binop" else node.immutable_fn
    if function not in (operator.add, operator.sub, operator.mul):
        return itself
    left, right = (_sum(v.name, definitions, depth + 1) for v in (node.lhs, node.rhs))
    if left is None or right is None:
        return itself
    if function is operator.add:
        return left.plus(right)
    if function is operator.sub:
        return left.plus(right, -1)
    for a, b in ((left, right), (right, left)):
        if not b.terms:
            return a.times(b.constant)
    return itself
