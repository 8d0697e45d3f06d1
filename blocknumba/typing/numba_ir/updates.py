"""Updates `x += y` that nothing reads: of an array, NumPy would change its elements.

Here `x + 1` of an array is a pointer, as in Triton, and an update that nothing reads a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from numba.core import ir

from blocknumba.typing.numba_ir import renaming
from blocknumba.typing.numba_ir.graph import Graph, Label

_MARK = "is_unread"


def mark_unread_updates(blocks: Mapping[Label, ir.Block], shared: set[str]) -> None:
    """Mark each `x += y` after which x is read by no statement but by such updates of x.

    shared: variables that other functions may read.
    """
    graph = Graph(blocks, min(blocks))
    live: dict[Label, set[str]] = {label: set() for label in graph.order}
    changed = True
    while changed:
        changed = False
        for label in reversed(graph.order):
            after = set().union(*(live[target] for target in graph.successors[label]))
            before = _read_from(blocks[label], after, shared)
            changed, live[label] = changed or before != live[label], before


def is_unread_update(expression: ir.Expr) -> bool:
    """Whether nothing reads what an expression updates."""
    return expression._kws.get(_MARK, False)


def _read_from(block: ir.Block, after: set[str], shared: set[str]) -> set[str]:
    """The variables that are read from the start of a block; after: from its end."""
    live, body = set(after), list(block.body)
    while body:
        statement = body.pop()
        if body and _is_update(body[-1], statement):
            update = body.pop().value
            update._kws[_MARK] = statement.target.name not in live | shared
            live.add(update.rhs.name)
            continue
        if isinstance(statement, ir.Assign):
            live.discard(statement.target.name)
        live.update(v.name for v in renaming.uses(statement))
    return live


def _is_update(statement: ir.Stmt, following: ir.Stmt | None) -> bool:
    """Whether two statements are `x += y`."""
    return (isinstance(statement, ir.Assign) and isinstance(following, ir.Assign)
            and isinstance(statement.value, ir.Expr) and statement.value.op == "inplace_binop"
            and isinstance(following.value, ir.Var)
            and following.value.name == statement.target.name
            and statement.value.lhs.name == following.target.name)
