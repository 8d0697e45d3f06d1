"""Conditional constant propagation over Numba IR, and the pruning of what it proves dead."""

from __future__ import annotations

import heapq
import types
from collections.abc import Collection
from dataclasses import dataclass, field

from numba.core import ir

from blocknumba.errors import BlockError
from blocknumba.typing import folding, renaming
from blocknumba.typing.folding import UNKNOWN
from blocknumba.typing.graph import Graph

# Values of these types may stand in ir.Const; all others in ir.FreeVar.
_SIMPLE = (bool, int, float, str)


@dataclass(eq=False, frozen=True, slots=True)
class Closure(folding.Opaque):
    """A function defined inside a kernel.

    code: its code; globals: of the function it is defined in; captured: its free variables by
    name, as variables of the kernel, read when the function is called, as Python does;
    defaults: of its last parameters.
    """

    code: types.CodeType
    globals: dict[str, object]
    captured: dict[str, ir.Var]
    defaults: tuple[ir.Var, ...]


@dataclass(frozen=True, slots=True)
class Facts(folding.Opaque):
    """What is known at compile time of an argument that is not a constant."""

    attributes: tuple[tuple[str, object], ...]

    def get(self, name: str) -> object:
        """An attribute, or UNKNOWN."""
        return dict(self.attributes).get(name, UNKNOWN)


@dataclass(slots=True)
class Knowledge:
    """What the propagation found.

    values: id of an assignment that can run -> the value it always gives, or UNKNOWN.
    callees: id of a call statement -> the function it calls, where that is known.
    iterables: id of a getiter statement -> the value iterated over, where that is known.
    starred: id of a call statement -> what its * argument is made of, None if not known.
    tuples: name of a variable -> the variables that the tuple in it is made of.
    reached: labels of the blocks that can run.
    """

    values: dict[int, object] = field(default_factory=dict)
    callees: dict[int, object] = field(default_factory=dict)
    iterables: dict[int, object] = field(default_factory=dict)
    starred: dict[int, tuple | None] = field(default_factory=dict)
    tuples: dict[str, tuple[ir.Var, ...]] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    closures: dict[int, Closure] = field(default_factory=dict)


def propagate(blocks: dict[int, ir.Block], graph: Graph, facts: dict[str, Facts]) -> Knowledge:
    """Follow constants through all paths that can run.  Variables need not be in SSA form.

    facts: of arguments, by name.
    """
    knowledge = Knowledge()
    crossing = crossing_names(blocks)
    entries: dict[int, dict[str, object]] = {graph.entry: {}}
    pending = [0]
    while pending:
        label = graph.order[heapq.heappop(pending)]
        knowledge.reached.add(label)
        values = dict(entries[label])
        block = blocks[label]
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                _follow(statement, values, facts, knowledge)
        for target in _live_targets(block.body[-1], values):
            if _merge(entries, target, values, crossing):
                heapq.heappush(pending, graph.index[target])
    return knowledge


def crossing_names(blocks: dict[int, ir.Block]) -> set[str]:
    """Variables that some block reads before it assigns them."""
    crossing: set[str] = set()
    for block in blocks.values():
        assigned: set[str] = set()
        for statement in block.body:
            crossing.update(v.name for v in renaming.uses(statement) if v.name not in assigned)
            if isinstance(statement, ir.Assign):
                assigned.add(statement.target.name)
    return crossing


def prune(blocks: dict[int, ir.Block], knowledge: Knowledge) -> None:
    """Write constants into the statements, and remove branches and blocks that cannot run."""
    for label in blocks.keys() - knowledge.reached:
        del blocks[label]
    for block in blocks.values():
        known: dict[str, object] = {}
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                value = knowledge.values.get(id(statement), UNKNOWN)
                known[statement.target.name] = value
                if _is_written(statement.value, value):
                    statement.value = constant_node(value, statement.target.name, statement.loc)
        last = block.body[-1]
        if isinstance(last, ir.Branch):
            taken = known.get(last.cond.name, UNKNOWN)
            if taken is not UNKNOWN:
                block.body[-1] = ir.Jump(last.truebr if taken else last.falsebr, last.loc)


def constant_node(value: object, name: str, loc: ir.Loc) -> ir.Const | ir.FreeVar:
    """The Numba IR of a compile-time value."""
    return ir.Const(value, loc) if isinstance(value, _SIMPLE) else ir.FreeVar(0, name, value, loc)


def drop_unused_temporaries(blocks: dict[int, ir.Block]) -> None:
    """Remove constants and copies in temporaries that nothing reads."""
    counts: dict[str, int] = {}
    for block in blocks.values():
        for statement in block.body:
            for variable in renaming.uses(statement):
                counts[variable.name] = counts.get(variable.name, 0) + 1
    for block in blocks.values():
        kept = []
        for statement in reversed(block.body):
            if _is_idle(statement) and not counts.get(statement.target.name):
                for variable in renaming.uses(statement):
                    counts[variable.name] -= 1
                continue
            kept.append(statement)
        block.body = kept[::-1]


def _follow(statement: ir.Assign, values: dict[str, object], facts: dict[str, Facts],
            knowledge: Knowledge) -> None:
    node, target = statement.value, statement.target.name
    try:
        value = _value_of(node, values, facts)
    except BlockError as error:
        raise error.at(statement.loc.place) from None
    if isinstance(node, ir.Expr):
        if node.op == "call":
            knowledge.callees[id(statement)] = values.get(node.func.name, UNKNOWN)
            if node.vararg is not None:
                knowledge.starred[id(statement)] = _items(node.vararg, values, knowledge)
        elif node.op == "getiter":
            knowledge.iterables[id(statement)] = values.get(node.value.name, UNKNOWN)
        elif node.op == "build_tuple":
            knowledge.tuples[target] = tuple(node.items)
        elif node.op == "make_function":
            value = knowledge.closures.setdefault(id(node), _closure(node, knowledge))
    source = node.value if isinstance(node, ir.Expr) and node.op == "cast" else node
    if isinstance(source, ir.Var) and source.name in knowledge.tuples:
        knowledge.tuples[target] = knowledge.tuples[source.name]
    values[target] = value
    knowledge.values[id(statement)] = value


def _value_of(node: object, values: dict[str, object], facts: dict[str, Facts]) -> object:
    if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)):
        return UNKNOWN if node.value is ir.UNDEFINED else node.value
    if isinstance(node, ir.Var):
        return values.get(node.name, UNKNOWN)
    if isinstance(node, ir.Arg):
        return facts.get(node.name, UNKNOWN)
    if not isinstance(node, ir.Expr):
        return UNKNOWN
    if node.op == "getattr" and isinstance(holder := values.get(node.value.name), Facts):
        return holder.get(node.attr)
    return folding.fold_expression(node, values)


def _items(variable: ir.Var, values: dict[str, object], knowledge: Knowledge) -> tuple | None:
    """What a tuple is made of, as values or variables; None when that is not known."""
    value = values.get(variable.name, UNKNOWN)
    if isinstance(value, tuple) and not folding.is_opaque(value):
        return value
    return knowledge.tuples.get(variable.name)


def _closure(node: ir.Expr, knowledge: Knowledge) -> Closure:
    captured = knowledge.tuples.get(node.closure.name, ()) if node.closure else ()
    defaults = node.defaults or ()
    if isinstance(defaults, ir.Var):
        defaults = knowledge.tuples[defaults.name]
    variables = dict(zip(node.code.co_freevars, captured))
    return Closure(node.code, node.globals, variables, tuple(defaults))


def _live_targets(last: ir.Stmt, values: dict[str, object]) -> Collection[int]:
    if isinstance(last, ir.Jump):
        return (last.target,)
    if not isinstance(last, ir.Branch):
        return ()
    taken = values.get(last.cond.name, UNKNOWN)
    if taken is UNKNOWN or isinstance(taken, folding.Opaque):
        return (last.truebr, last.falsebr)
    return (last.truebr if taken else last.falsebr,)


def _merge(entries: dict[int, dict[str, object]], target: int, values: dict[str, object],
           crossing: set[str]) -> bool:
    """Add a way into target; whether that changed what is known there."""
    if target not in entries:
        entries[target] = {name: value for name, value in values.items() if name in crossing}
        return True
    known, changed = entries[target], False
    for name, value in values.items():
        if name not in crossing:
            continue
        if name not in known:
            known[name] = value
            changed = True
        elif known[name] is not UNKNOWN and not folding.same(known[name], value):
            known[name] = UNKNOWN
            changed = True
    return changed


def _is_written(node: object, value: object) -> bool:
    if value is UNKNOWN or folding.is_opaque(value) or isinstance(value, slice):
        return False
    if isinstance(node, ir.Expr):
        # a tuple stays one: closures and `*args` need the variables that it is made of
        return node.op not in ("getiter", "build_tuple") and not folding.is_opaque(value)
    return isinstance(node, ir.Var) and not folding.is_opaque(value)


def _is_idle(statement: ir.Stmt) -> bool:
    if not isinstance(statement, ir.Assign) or not renaming.is_temporary(statement.target.name):
        return False
    value = statement.value
    return (isinstance(value, (ir.Const, ir.Global, ir.FreeVar, ir.Var))
            or isinstance(value, ir.Expr) and value.op in ("build_tuple", "make_function"))
