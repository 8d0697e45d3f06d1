"""Inlining of the Python functions that a kernel calls, in Numba IR."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace

from numba.core import ir

from blocknumba.errors import BlockTypeError, Loc, UnsupportedError
from blocknumba.typing import renaming
from blocknumba.typing.bytecode import Source, SourceLoc, source_of
from blocknumba.typing.constants import Closure, Knowledge, constant_node

MAX_DEPTH = 64  # of calls within calls; Python's own limit is of the same order
_LIBRARY = "blocknumba.library"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that can be inlined.

    captured: free variables of the callee that are variables of the caller.
    receiver: for a bound method, the object it is bound to, else None.
    """

    function: types.FunctionType
    captured: dict[str, ir.Var]
    defaults: tuple[ir.Var, ...]
    receiver: object = None


class Inliner:
    """Replaces calls by the bodies of their callees, each with variables of its own."""

    def __init__(self, blocks: dict[int, ir.Block]):
        self._blocks = blocks
        self._numbers = itertools.count(1)
        self._closures: dict[types.CodeType, types.FunctionType] = {}

    def inline_calls(self, knowledge: Knowledge) -> bool:
        """Inline every call whose callee is known, one level deep; whether there was one."""
        found = False
        for label in list(self._blocks):
            block = self._blocks[label]
            body, block.body = block.body, []
            for statement in body:
                call = self._call_of(statement, knowledge)
                is_open = knowledge.starred.get(id(statement), ()) is None
                if call is None or is_open:
                    block.append(statement)
                    continue
                found = True
                block = self._inline(block, statement, call, knowledge)
        return found

    def refuse_open_calls(self, knowledge: Knowledge) -> None:
        """Raise when a call is left because what its * argument is made of is not known."""
        for block in self._blocks.values():
            for statement in block.body:
                if self._call_of(statement, knowledge) is not None:
                    raise UnsupportedError("a call with *: accepted a tuple whose length is known",
                                           loc=statement.loc.place)

    def _call_of(self, statement: ir.Stmt, knowledge: Knowledge) -> Call | None:
        callee = knowledge.callees.get(id(statement))
        if callee is None:
            return None
        if isinstance(callee, Closure):
            return Call(self._closure_function(callee), callee.captured, callee.defaults)
        if isinstance(callee, types.MethodType) and isinstance(callee.__func__, types.FunctionType):
            return Call(callee.__func__, {}, (), callee.__self__)
        function = python_function(callee)
        return None if function is None else Call(function, {}, ())

    def _closure_function(self, closure: Closure) -> types.FunctionType:
        code = closure.code
        if code not in self._closures:
            cells = tuple(types.CellType() for _ in code.co_freevars)
            self._closures[code] = types.FunctionType(code, closure.globals, code.co_name, None,
                                                      cells)
        return self._closures[code]

    def _inline(self, block: ir.Block, statement: ir.Assign, call: Call,
                knowledge: Knowledge) -> ir.Block:
        """Append the callee's body to block; give the block in which the caller goes on."""
        site = statement.loc.place
        if _depth(site) >= MAX_DEPTH:
            raise UnsupportedError(f"{call.function.__name__}: recursion that does not end at "
                                   f"compile time", loc=_outermost(site))
        source = source_of(call.function)
        body = _Body(source, call, next(self._numbers), block.scope, site)
        starred = [self._as_variable(block, item, statement.loc)
                   for item in knowledge.starred.get(id(statement), ())]
        arguments = _bind(source, call, statement.value, starred, site)
        if len(source.blocks) == 1 and isinstance(source.blocks[source.entry].body[-1], ir.Return):
            block.body += body.statements(source.entry, arguments)
            value = block.body.pop().value
            block.append(ir.Assign(value, statement.target, statement.loc))
            return block
        first = max(self._blocks) + 1
        labels = {label: first + i for i, label in enumerate(sorted(source.blocks))}
        after = first + len(labels)
        body.label = labels.__getitem__
        block.append(ir.Jump(labels[source.entry], statement.loc))
        for label, new in labels.items():
            place = body.place(source.blocks[label].loc)
            inlined = self._blocks[new] = ir.Block(block.scope, place)
            inlined.body = body.statements(label, arguments)
            if isinstance(last := inlined.body[-1], ir.Return):
                inlined.body[-1:] = [ir.Assign(last.value, statement.target, last.loc),
                                     ir.Jump(after, last.loc)]
        rest = self._blocks[after] = ir.Block(block.scope, statement.loc)
        return rest

    def _as_variable(self, block: ir.Block, item: object, loc: SourceLoc) -> ir.Var:
        """A variable that holds an item of a * argument."""
        if isinstance(item, ir.Var):
            return item
        variable = ir.Var(block.scope, f"$starred@{next(self._numbers)}", loc)
        block.append(ir.Assign(constant_node(item, variable.name, loc), variable, loc))
        return variable


class _Body:
    """Copies of a callee's statements in terms of the caller."""

    def __init__(self, source: Source, call: Call, number: int, scope: ir.Scope, site: Loc):
        self._source, self._call = source, call
        self._suffix, self._scope, self._site = f"@{number}", scope, site
        self._variables: dict[str, ir.Var] = {}
        self._places: dict[SourceLoc, SourceLoc] = {}
        self.label = lambda label: label

    def statements(self, label: int, arguments: dict[str, ir.Var | object]) -> list[ir.Stmt]:
        """The statements of a block, parameters being assigned from arguments."""
        return [self._statement(s, arguments) for s in self._source.blocks[label].body]

    def place(self, loc: SourceLoc) -> SourceLoc:
        """A location in the callee, with the call it was reached by."""
        if id(loc) not in self._places:
            hidden = self._source.function.__module__ == _LIBRARY
            place = self._site if hidden else _called_from(loc.place, self._site)
            self._places[id(loc)] = SourceLoc(place)
        return self._places[id(loc)]

    def _statement(self, statement: ir.Stmt, arguments: dict[str, object]) -> ir.Stmt:
        if isinstance(statement, ir.Assign):
            node, loc = statement.value, self.place(statement.loc)
            target = self._variable(statement.target)
            if isinstance(node, ir.Arg):
                given = arguments[node.name]
                if not isinstance(given, (ir.Var, ir.Expr)):
                    given = constant_node(given, node.name, loc)
                return ir.Assign(given, target, loc)
            if isinstance(node, ir.Global):
                value = self._source.global_value(node.name)
                return ir.Assign(ir.Global(node.name, value, loc), target, loc)
            if isinstance(node, ir.FreeVar):
                return ir.Assign(self._free(node, loc), target, loc)
        return renaming.rename_statement(statement, self._variable, self._variable, self.label,
                                         self.place)

    def _free(self, node: ir.FreeVar, loc: SourceLoc) -> ir.Var | ir.FreeVar:
        if node.name in self._call.captured:
            return self._call.captured[node.name]
        return ir.FreeVar(node.index, node.name, self._source.closure_value(node.name), loc)

    def _variable(self, variable: ir.Var) -> ir.Var:
        name = variable.name
        if name not in self._variables:
            self._variables[name] = ir.Var(self._scope, name + self._suffix, variable.loc)
        return self._variables[name]


def python_function(value: object) -> types.FunctionType | None:
    """The Python function that a value stands for: itself, or what a decorator made of it."""
    if isinstance(value, types.FunctionType):
        return value
    if isinstance(value, type):
        return None
    for name in ("python_function", "py_func"):
        function = getattr(value, name, None)
        if isinstance(function, types.FunctionType):
            return function
    return None


def _bind(source: Source, call: Call, expression: ir.Expr, starred: Sequence[ir.Var],
          site: Loc) -> dict[str, object]:
    """Parameter name -> variable, or value, or the expression that makes the tuple of *args."""
    positional = [*expression.args, *starred]
    if call.receiver is not None:
        positional.insert(0, call.receiver)
    signature = source.signature
    if call.defaults:
        parameters = list(signature.parameters.values())
        start = len(parameters) - len(call.defaults)
        last = zip(parameters[start:], call.defaults)
        parameters[start:] = [p.replace(default=default) for p, default in last]
        signature = signature.replace(parameters=parameters)
    try:
        bound = signature.bind(*positional, **dict(expression.kws))
    except TypeError as error:
        raise BlockTypeError(f"{call.function.__name__}: {error}, accepted "
                             f"{call.function.__name__}{source.signature}", loc=site) from None
    bound.apply_defaults()
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            items = bound.arguments[parameter.name]
            bound.arguments[parameter.name] = ir.Expr.build_tuple(list(items), SourceLoc(site))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise UnsupportedError(f"{call.function.__name__}: ** parameters are not supported",
                                   loc=site)
    return bound.arguments


def _called_from(place: Loc, site: Loc) -> Loc:
    """place, its outermost caller being site."""
    caller = site if place.caller is None else _called_from(place.caller, site)
    return replace(place, caller=caller)


def _depth(place: Loc) -> int:
    depth = 0
    while place.caller is not None:
        place, depth = place.caller, depth + 1
    return depth


def _outermost(place: Loc) -> Loc:
    while place.caller is not None:
        place = place.caller
    return place
