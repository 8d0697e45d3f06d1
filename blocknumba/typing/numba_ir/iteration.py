"""Python's iteration protocol in Numba IR, spelled out as a counter."""

from __future__ import annotations

from numba.core import ir

# Expressions that replace getiter, iternext and pair_*; `iterator` is what is iterated over.
START, ITEM, VALID, NEXT = "iteration_start", "iteration_item", "iteration_valid", "iteration_next"


def count_iterations(blocks: dict[int, ir.Block]) -> None:
    """Give each iterator a counter: a variable that starts at START and goes on by NEXT.

    Afterwards an iterator is a value that does not change, so that SSA form, type inference and
    loops need to know nothing about iterators.
    """
    roots = _iterators(blocks)
    pairs: dict[str, str] = {}
    for block in blocks.values():
        body = []
        for statement in block.body:
            body += _rewrite(statement, roots, pairs)
        block.body = body


def _iterators(blocks: dict[int, ir.Block]) -> dict[str, ir.Var]:
    """Name of each variable that holds an iterator -> the variable that getiter assigned."""
    roots: dict[str, ir.Var] = {}
    copies: list[tuple[str, str]] = []
    for block in blocks.values():
        for statement in block.body:
            if not isinstance(statement, ir.Assign):
                continue
            node = statement.value
            if isinstance(node, ir.Expr) and node.op == "getiter":
                roots[statement.target.name] = statement.target
            elif isinstance(node, ir.Var):
                copies.append((statement.target.name, node.name))
    changed = bool(roots)
    while changed:
        changed = False
        for target, source in copies:
            if source in roots and target not in roots:
                roots[target] = roots[source]
                changed = True
    return roots


def _rewrite(statement: ir.Stmt, roots: dict[str, ir.Var], pairs: dict[str, str]) -> list[ir.Stmt]:
    if not isinstance(statement, ir.Assign):
        return [statement]
    node, target, loc = statement.value, statement.target, statement.loc
    if isinstance(node, ir.Var) and node.name in roots:
        return []
    if not isinstance(node, ir.Expr):
        return [statement]
    if node.op == "getiter":
        return [statement, ir.Assign(ir.Expr(START, loc, iterator=target), _counter(target), loc)]
    if node.op == "iternext":
        pairs[target.name] = node.value.name
        return []
    if node.op == "pair_first":
        return [ir.Assign(_step(ITEM, node, roots, pairs), target, loc)]
    if node.op == "pair_second":
        counter = _counter(roots[pairs[node.value.name]])
        return [ir.Assign(_step(VALID, node, roots, pairs), target, loc),
                ir.Assign(_step(NEXT, node, roots, pairs), counter, loc)]
    return [statement]


def _step(operation: str, node: ir.Expr, roots: dict[str, ir.Var],
          pairs: dict[str, str]) -> ir.Expr:
    root = roots[pairs[node.value.name]]
    return ir.Expr(operation, node.loc, iterator=root, counter=_counter(root))


def _counter(iterator: ir.Var) -> ir.Var:
    return ir.Var(iterator.scope, f"{iterator.name}.counter", iterator.loc)
