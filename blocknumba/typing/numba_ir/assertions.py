"""Python's assert, as a call in place of a branch to a raise."""

from __future__ import annotations

from numba.core import ir

from blocknumba.typing.functions.debug import device_assert
from blocknumba.wording import shown


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

