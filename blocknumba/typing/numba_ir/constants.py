"""Conditional constant propagation over Numba IR, and the pruning of what it proves dead."""

from __future__ import annotations

import heapq
import types
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numba.core import ir

from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument
from blocknumba.typing.dialect import Dialect
from blocknumba.typing.function import BlockFunction
from blocknumba.typing.numba_ir import folding, renaming
from blocknumba.typing.numba_ir.bytecode import activation_numbers
from blocknumba.typing.numba_ir.constant_size import require_small
from blocknumba.typing.numba_ir.folding import UNKNOWN
from blocknumba.typing.numba_ir.graph import Graph
from blocknumba.typing.numba_ir.nested import MAKE, is_made, written_cells

# What can be called without running code of the user's.
_WITHOUT_CODE = (type, types.BuiltinFunctionType, np.ufunc, BlockFunction)
# Values of these types may stand in ir.Const; all others in ir.FreeVar.
_SIMPLE = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class KnownAttributes(folding.Opaque):
    """Attributes of an argument that is not a constant, as far as compilation knows them.

    dialect: of the kernel.
    """

    argument: Argument
    dialect: Dialect

    def get(self, name: str, dialect: Dialect | None) -> object:
        """An attribute, or UNKNOWN.   dialect: of who asks; None for the kernel's."""
        is_array = isinstance(self.argument, ArrayArgument) and self.argument.box is None
        if name == "dtype":
            dtype = self.argument.dtype
            return (dialect or self.dialect).pointer_dtype(dtype) if is_array else dtype
        return self.argument.rank if name == "ndim" and is_array else UNKNOWN


@dataclass(slots=True)
class Knowledge:
    """Results of the propagation.

    values: id of an assignment that can run -> the value it always has, or UNKNOWN.
    callees: id of a call statement -> the function it calls, where that is known.
    iterables: id of a getiter statement -> the value iterated over, where that is known.
    starred: id of a call statement -> the value of its * argument.
    given: id of a call statement whose callee is known -> the values of its arguments.
    reached: labels of the blocks that can run.
    """

    values: dict[int, object] = field(default_factory=dict)
    callees: dict[int, object] = field(default_factory=dict)
    iterables: dict[int, object] = field(default_factory=dict)
    starred: dict[int, object] = field(default_factory=dict)
    given: dict[int, tuple] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)


def propagate(blocks: dict[int, ir.Block], graph: Graph, known: dict[str, KnownAttributes],
              watched: bool = False) -> Knowledge:
    """Follow constants through all paths that can run.  Variables need not be in SSA form.

    known: of arguments, by name.
    watched: as of Options.
    """
    knowledge = Knowledge()
    crossing, shared = crossing_names(blocks), _shared_names(blocks)
    entries: dict[int, dict[str, object]] = {graph.entry: {}}
    pending = [0]
    while pending:
        label = graph.order[heapq.heappop(pending)]
        knowledge.reached.add(label)
        values = dict(entries[label])
        block = blocks[label]
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                _follow(statement, values, known, knowledge)
                if shared and _may_run_code(statement, values):
                    values.update(dict.fromkeys(shared, UNKNOWN))
        for target in _live_targets(block.body[-1], values):
            passed = values
            if graph.is_back_edge(label, target):
                passed = values | dict.fromkeys(_lapsed(values, blocks, graph, target), UNKNOWN)
            if _merge(entries, target, passed, crossing, watched):
                heapq.heappush(pending, graph.index[target])
    return knowledge


def _lapsed(values: dict[str, object], blocks: dict[int, ir.Block], graph: Graph,
            header: int) -> list[str]:
    """The functions that share a variable with a call in a loop, at the end of an iteration.

    The call of the next iteration has a variable of its own, of the same name.
    """
    sharing = {name: value.cells for name, value in values.items()
               if isinstance(value, folding.Closure) and any("@" in c.name for c in value.cells)}
    if not sharing:
        return []
    inside = {number for label in graph.loops[header].body for s in blocks[label].body
              for number in activation_numbers(s)}
    inside -= activation_numbers(blocks[header].body[0])
    return [name for name, cells in sharing.items()
            if any(renaming.owner(cell.name) in inside for cell in cells)]


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


def tuple_item(of: ir.Var, index: int, loc: ir.Loc) -> ir.Expr:
    """The Numba IR of an item of a tuple."""
    return ir.Expr.static_getitem(of, index, None, loc)


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


def _follow(statement: ir.Assign, values: dict[str, object], known: dict[str, KnownAttributes],
            knowledge: Knowledge) -> None:
    node, target = statement.value, statement.target.name
    try:
        value = _value_of(node, values, known)
    except BlockError as error:
        raise error.at(statement.loc.location) from None
    if isinstance(node, ir.Expr):
        if node.op == "call":
            callee = knowledge.callees[id(statement)] = values.get(node.func.name, UNKNOWN)
            if callee is not UNKNOWN and value is UNKNOWN:
                knowledge.given[id(statement)] = _given(node, callee, values)
            if node.vararg is not None:
                knowledge.starred[id(statement)] = values.get(node.vararg.name, UNKNOWN)
        elif node.op == "getiter":
            knowledge.iterables[id(statement)] = values.get(node.value.name, UNKNOWN)
    values[target] = value
    knowledge.values[id(statement)] = value


def _given(node: ir.Expr, callee: object, values: dict[str, object]) -> tuple:
    """The values of what a call depends on: arguments, and variables that the callee shares."""
    cells = callee.cells if isinstance(callee, folding.Closure) else ()
    return tuple(values.get(variable.name, UNKNOWN)
                 for variable in (*node.args, *dict(node.kws).values(), *cells))


def _shared_names(blocks: dict[int, ir.Block]) -> set[str]:
    """Variables that some nested function assigns."""
    shared: set[str] = set()
    for block in blocks.values():
        for statement in block.body:
            if is_made(statement):
                made = statement.value
                written = written_cells(made.nested.code)
                shared.update(cell.name for name, cell in zip(made.nested.cells, made.cells)
                              if name in written)
    return shared


def _may_run_code(statement: ir.Assign, values: dict[str, object]) -> bool:
    """Whether a statement calls what may assign variables of its own."""
    node = statement.value
    if not (isinstance(node, ir.Expr) and node.op == "call"
            and values[statement.target.name] is UNKNOWN):
        return False
    return not isinstance(values.get(node.func.name, UNKNOWN), _WITHOUT_CODE)


def _value_of(node: object, values: dict[str, object], known: dict[str, KnownAttributes]) -> object:
    if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)):
        if isinstance(node.value, int):
            require_small(node.value)
        return UNKNOWN if node.value is ir.UNDEFINED else node.value
    if isinstance(node, ir.Var):
        return values.get(node.name, UNKNOWN)
    if isinstance(node, ir.Arg):
        return known.get(node.name, UNKNOWN)
    if not isinstance(node, ir.Expr):
        return UNKNOWN
    if node.op == "getattr" and isinstance(holder := values.get(node.value.name), KnownAttributes):
        return holder.get(node.attr, node.loc.dialect)
    return folding.fold_expression(node, values)


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
           crossing: set[str], watched: bool) -> bool:
    """Add a path into target; whether that changed what is known there."""
    if target not in entries:
        entries[target] = {name: value for name, value in values.items() if name in crossing}
        return True
    known, changed = entries[target], False
    for name, value in values.items():
        if name not in crossing:
            continue
        if name not in known:
            known[name] = UNKNOWN if watched and _is_number(value) else value
            changed = True
        elif known[name] is not UNKNOWN:
            met = folding.meet(known[name], value)
            changed = changed or met is not known[name]
            known[name] = met
    lost = [name for name, value in known.items()
            if watched and name not in values and _is_number(value)]
    known.update(dict.fromkeys(lost, UNKNOWN))
    return changed or bool(lost)


def _is_number(value: object) -> bool:
    """Whether a value is a number or a tuple of which an item is."""
    items = folding.items_of(value)
    return any(map(_is_number, items)) if items else isinstance(value, (int, float, np.generic))


def _is_written(node: object, value: object) -> bool:
    if value is UNKNOWN or folding.is_opaque(value) or isinstance(value, slice):
        return False
    if isinstance(node, ir.Expr):
        return node.op != "getiter"
    return isinstance(node, ir.Var)


def _is_idle(statement: ir.Stmt) -> bool:
    if not isinstance(statement, ir.Assign) or not renaming.is_temporary(statement.target.name):
        return False
    value = statement.value
    if isinstance(value, (ir.Global, ir.FreeVar)) and value.value is ir.UNDEFINED:
        return False
    return (isinstance(value, (ir.Const, ir.Global, ir.FreeVar, ir.Var))
            or isinstance(value, ir.Expr) and value.op in ("build_tuple", "build_map", MAKE))
