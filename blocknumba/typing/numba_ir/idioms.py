"""Python's idioms in Numba IR: loops over iterators, assert, slices of constant length."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from numba.core import ir

from blocknumba.typing.functions.debug import device_assert
from blocknumba.wording import shown


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


def call_assertions(blocks: dict[int, ir.Block]) -> None:
    """Turn each branch that raises AssertionError on one side into `device_assert(condition)`.

    The rest of the program then need not be nested in the other side.  An assertion that is known
    to fail is no branch any more, and is left as it is.
    """
    for block in list(blocks.values()):
        last = block.body[-1]
        if not isinstance(last, ir.Branch):
            continue
        for failing, passing in ((last.falsebr, last.truebr), (last.truebr, last.falsebr)):
            message = _message(blocks[failing])
            if message is not None:
                check = _check(block, last, message, failing == last.truebr)
                block.body[-1:] = [*check, ir.Jump(passing, last.loc)]
                break


def assertion_text(error: AssertionError) -> str:
    """The message of an assertion, objects by their short names; empty when it has none."""
    return ", ".join(arg if isinstance(arg, str) else shown(arg) for arg in error.args)


def _message(block: ir.Block) -> list[ir.Stmt] | None:
    """The statements that make the message of a failed assertion, last the message itself.

    None when a block is anything else.
    """
    last = block.body[-1]
    if not isinstance(last, ir.Raise) or last.exception is None:
        return None
    definitions = {s.target.name: s for s in block.body[:-1] if isinstance(s, ir.Assign)}
    made = definitions.get(last.exception.name)
    if made is None or len(definitions) != len(block.body) - 1:
        return None
    node = made.value
    if isinstance(node, ir.Expr) and node.op == "call" and len(node.args) == 1:
        error, text = definitions.get(node.func.name), definitions.get(node.args[0].name)
        if not _is_assertion_error(error) or text is None:
            return None
        return [s for s in block.body[:-1] if s not in (made, error, text)] + [text]
    if isinstance(failed := _constant(node), AssertionError):
        return [ir.Assign(ir.Const(assertion_text(failed), made.loc), made.target, made.loc)]
    return [] if _is_assertion_error(made) else None


def _is_assertion_error(statement: ir.Assign | None) -> bool:
    return statement is not None and _constant(statement.value) is AssertionError


def _constant(node: object) -> object:
    """The value of a constant; None for other nodes, of which some have a variable as value."""
    return node.value if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)) else None


def _check(block: ir.Block, last: ir.Branch, message: list[ir.Stmt],
           is_negated: bool) -> list[ir.Stmt]:
    scope, loc, name = block.scope, last.loc, last.cond.name
    statements, condition = list(message), last.cond
    if is_negated:
        condition = ir.Var(scope, f"{name}.not", loc)
        statements.append(ir.Assign(ir.Expr.unary("not", last.cond, loc), condition, loc))
    function = ir.Var(scope, f"{name}.assert", loc)
    call = ir.Expr.call(function, [condition, *(s.target for s in message[-1:])], (), loc)
    callee = ir.FreeVar(0, "device_assert", device_assert, loc)
    return [*statements, ir.Assign(callee, function, loc),
            ir.Assign(call, ir.Var(scope, f"{name}.asserted", loc), loc)]


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
    if len(node.args) == 3 and _of_constant(node.args[2], definitions) not in (None, 1):
        return None
    start, stop = (_sum(variable.name, definitions) for variable in node.args[:2])
    if start is None or stop is None or not start.terms:
        return None
    length = stop.plus(start, -1)
    return length.constant if not length.terms and length.constant > 0 else None


def _of_constant(variable: ir.Var, definitions: dict[str, object]) -> object:
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
