"""Checks that variables are assigned which hold what is known at compile time alone.

With debug=True a number that some path does not assign is followed at run time.  A function, a
text or a dtype has no value there, so its variable gets a companion that has one:

    if n > 3:                      if n > 3:
        f = helper                     f = helper;  f#assigned = True
    y[0] = f(x[0])                 device_assert(f#assigned);  y[0] = f(x[0])
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba.core import ir

from blocknumba.typing.functions.debug import device_assert
from blocknumba.typing.numba_ir.bytecode import Source
from blocknumba.typing.numba_ir.renaming import uses

_NUMBERS = (bool, int, float, np.generic)
_OF_COMPILE_TIME = ("make_function", "getattr")


def checked(source: Source) -> Source:
    """The function with an assertion before each use of such a variable, if it has any."""
    code = source.function.__code__
    # what other functions share is assigned there too
    elsewhere = {*source.signature.parameters, *code.co_freevars, *code.co_cellvars}
    watched = _candidates(source.blocks) - elsewhere
    if not watched:
        return source
    known = _assigned_before(source.blocks, source.entry, watched)
    blocks = {label: ir.Block(block.scope, block.loc) for label, block in source.blocks.items()}
    for label, block in source.blocks.items():
        assigned, body = set(known[label]), blocks[label].body
        for statement in block.body:
            for name in sorted({v.name for v in uses(statement)} & watched - assigned):
                body += _check(block.scope, name, statement.loc)
            body.append(statement)
            if isinstance(statement, ir.Assign) and statement.target.name in watched:
                assigned.add(statement.target.name)
                companion = _companion(block.scope, statement.target.name, statement.loc)
                body.append(ir.Assign(ir.Const(True, statement.loc), companion, statement.loc))
    return replace(source, blocks=blocks)


def _candidates(blocks: dict[int, ir.Block]) -> set[str]:
    """Variables of the user that are assigned something that is no number."""
    made = {s.target.name: s.value for block in blocks.values() for s in block.body
            if isinstance(s, ir.Assign)}
    found = set()
    for block in blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.Assign) and not statement.target.name.startswith("$"):
                node = statement.value
                if isinstance(node, ir.Var) and node.name.startswith("$"):
                    node = made.get(node.name, node)
                if _is_of_compile_time(node):
                    found.add(statement.target.name)
    return found


def _is_of_compile_time(node: object) -> bool:
    if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)):
        return not isinstance(node.value, _NUMBERS)
    return isinstance(node, ir.Expr) and node.op in _OF_COMPILE_TIME


def _assigned_before(blocks: dict[int, ir.Block], entry: int,
                     watched: set[str]) -> dict[int, set[str]]:
    """For each block, the variables that all paths to it assign."""
    before = {label: set(watched) for label in blocks}
    before[entry] = set()
    waiting = list(blocks)
    while waiting:
        label = waiting.pop()
        body = blocks[label].body
        after = before[label] | {s.target.name for s in body if isinstance(s, ir.Assign)}
        for target in body[-1].get_targets():
            if not before[target] <= after:
                before[target] &= after
                waiting.append(target)
    return before


def _check(scope: ir.Scope, name: str, loc: ir.Loc) -> list[ir.Stmt]:
    function = ir.Var(scope, f"${name}.assert", loc)
    call = ir.Expr.call(function, [_companion(scope, name, loc)], (), loc)
    return [ir.Assign(ir.Const(device_assert, loc), function, loc),
            ir.Assign(call, ir.Var(scope, f"${name}.checked", loc), loc)]


def _companion(scope: ir.Scope, name: str, loc: ir.Loc) -> ir.Var:
    """The companion, which errors call by the variable's name (see user_name)."""
    return ir.Var(scope, f"{name}#assigned", loc)
