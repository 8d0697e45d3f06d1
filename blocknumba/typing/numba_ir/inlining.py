"""Inlining of the Python functions that a kernel calls, in Numba IR."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from numba.core import ir

from blocknumba.errors import BlockTypeError, Loc, UnsupportedError
from blocknumba.typing.dialect import Dialect, declared_dialect, dialect
from blocknumba.typing.function import (
    MustUse, is_of_numba, keyword_hint, python_function, signature_text,
)
from blocknumba.typing.numba_ir import folding, renaming
from blocknumba.typing.numba_ir.assigned import checked
from blocknumba.typing.numba_ir.bytecode import Activation, Source, SourceLoc, source_of
from blocknumba.typing.numba_ir.constants import Knowledge, constant_node, tuple_item
from blocknumba.typing.numba_ir.folding import Closure
from blocknumba.typing.numba_ir.nested import (
    Nested, is_made, keep_values, kept_value, written_cells,
)
from blocknumba.typing.numba_types import are_elements, method_among
from blocknumba.typing.numba_ir.unrolling import OPEN, require_few_statements, statement_count
from blocknumba.typing.records import METHOD_NAMES
from blocknumba.typing.spellings import spelled

MAX_DEPTH = 900  # of calls within calls; Python's own limit is of the same order
MAX_RECURSION = 64  # of calls of a function within itself
MAX_RECURSIVE_CALLS = 2048
# a keyword as OPEN: the call of a scalar function on tiles, or of no user's method; not inlined
MAPPED = "mapped"
_LIBRARY = ("blocknumba.library", "blocknumba.libdevice", "blocknumba.typing.numpy_functions",
            "blocknumba.random")
_NEVER_IN_KERNELS = ("blocknumba.dispatch.", "blocknumba.testing")  # bn.jit, bn.compile ...


@dataclass(frozen=True, slots=True)
class Call:
    """A call that can be inlined.

    receiver: for a bound method, the object it is bound to or the variable that has it, else None.
    nested: for a function that is defined in a kernel, what it is; else None.
    cells: free variables of the callee that are variables of the caller.
    is_scalar: Numba compiled it, for scalars.
    dialect: name of the one that it is written in; None for its caller's.
    """

    function: types.FunctionType
    receiver: object = None
    nested: Nested | None = None
    cells: Mapping[str, ir.Var] = field(default_factory=dict)
    is_scalar: bool = False
    dialect: str | None = None


class Inliner:
    """Replaces calls by the bodies of their callees, each with variables of its own.

    A call of a function in itself is left open when it is given the same constants as a call around
    it: what ends such a recursion, if anything does, is a type.  So is a call of a function that
    Numba compiled, which is called for each element of tiles and inlined for anything else.
    dialect: of the kernel.   watched: as of Options.
    """

    def __init__(self, blocks: dict[int, ir.Block], dialect: Dialect, watched: bool = False):
        self._blocks, self._dialect, self._watched = blocks, dialect, watched
        self._numbers = itertools.count(1)
        self._recursive_calls = 0
        self.open_calls: dict[int, Loc] = {}
        self._functions: dict[types.CodeType, types.FunctionType] = {}
        self._statements = 0
        self._used: set[str] = set()  # names of variables that are read

    def inline_calls(self, knowledge: Knowledge,
                     typed: Mapping[int, tuple] = MappingProxyType({})) -> bool:
        """Inline every call whose callee is known, one level deep; whether there was one.

        typed: numbers of open calls that are made after all -> the types of their arguments.
        Errors: recursion that does not end.
        """
        found, self.open_calls = False, {}
        self._statements = statement_count(self._blocks)
        self._used = {variable.name for block in self._blocks.values()
                      for statement in block.body for variable in renaming.uses(statement)}
        for label in list(self._blocks):
            block = self._blocks[label]
            body, block.body = block.body, []
            for statement in body:
                call = self._call_of(statement, knowledge)
                if call is None and self._is_open_method(statement, knowledge):
                    call = self._method_of(statement, typed)
                    if call is None:
                        block.append(statement)
                        continue
                if call is None or _starred(statement, knowledge) is None:
                    block.append(statement)
                    continue
                of_types = typed.get(statement.value._kws.get(OPEN))
                if call.is_scalar and of_types is not None and are_elements(of_types):
                    del statement.value._kws[OPEN]
                    statement.value._kws[MAPPED] = found = True
                    block.append(statement)
                    continue
                activation = self._activation(statement, call, knowledge, of_types)
                if activation is None:
                    self._leave_open(statement)
                    block.append(statement)
                    continue
                found = True
                block = self._inline(block, statement, call, knowledge, activation)
        return found

    def _activation(self, statement: ir.Assign, call: Call, knowledge: Knowledge,
                    of_types: tuple | None) -> Activation | None:
        """The activation of a call; None when it is left open (see the class)."""
        caller, code = statement.loc.activation, call.function.__code__
        given = knowledge.given.get(id(statement), ())
        if call.is_scalar and of_types is None and any(x is folding.UNKNOWN for x in given):
            return None
        depth = 1 if caller is None else caller.depth + 1
        same = [a for a in caller.around() if a.code is code] if caller is not None else []
        self._recursive_calls += bool(same)
        name, loc = call.function.__name__, _outermost(statement.loc.location)
        if depth > MAX_DEPTH:
            raise UnsupportedError(f"{name}: more than {MAX_DEPTH} calls within calls", loc=loc)
        if len(same) > MAX_RECURSION or self._recursive_calls > MAX_RECURSIVE_CALLS:
            raise _endless(name, loc)
        if of_types is not None:
            if any(a.types == of_types for a in same):
                raise _endless(name, loc)
        elif any(folding.same(a.given, given) for a in same):
            return None
        own = self._dialect if caller is None else caller.dialect
        if call.dialect not in (None, own.name):
            own = dialect(call.dialect)
        return Activation(next(self._numbers), code, own, given, of_types, caller, depth)

    def _leave_open(self, statement: ir.Assign) -> None:
        number = statement.value._kws.setdefault(OPEN, next(self._numbers))
        self.open_calls[number] = statement.loc.location

    def refuse_open_calls(self, knowledge: Knowledge) -> None:
        """Raise when a call is left because what its * argument is made of is not known."""
        for block in self._blocks.values():
            for statement in block.body:
                if (_starred(statement, knowledge) is None
                        and self._call_of(statement, knowledge) is not None):
                    raise UnsupportedError("a call with *: accepted a tuple whose length is known",
                                           loc=statement.loc.location)

    def _call_of(self, statement: ir.Stmt, knowledge: Knowledge) -> Call | None:
        callee = knowledge.callees.get(id(statement))
        if callee is None:
            return None
        if (named := spelled(callee)) is not None:
            return self._call_of_spelled(statement, callee, named, knowledge)
        self._require_used(statement,
                           callee.function if isinstance(callee, folding.Method) else callee)
        if getattr(callee, "__compile_time__", False):
            return None
        if isinstance(callee, folding.Method):
            if getattr(callee.function, "__compile_time__", False):
                return None
            return Call(python_function(callee.function), callee.receiver,
                        dialect=declared_dialect(callee.function))
        if isinstance(callee, Closure):
            cells = dict(zip(callee.nested.cells, callee.cells))
            return Call(self._function_of(callee.nested), None, callee.nested, cells)
        if isinstance(callee, types.MethodType) and isinstance(callee.__func__, types.FunctionType):
            return Call(callee.__func__, callee.__self__,
                        dialect=declared_dialect(callee.__func__))
        function = python_function(callee)
        if function is None or (function.__module__ or "").startswith(_NEVER_IN_KERNELS):
            return None
        if MAPPED in statement.value._kws:
            return None
        return Call(function, is_scalar=is_of_numba(callee), dialect=declared_dialect(callee))

    def _call_of_spelled(self, statement: ir.Assign, callee: object, function: object,
                         knowledge: Knowledge) -> Call | None:
        """The call of a function that is written in the language under a name of others.

        None where it is a function of the language, and where Python can answer the call.
        """
        given = knowledge.given.get(id(statement), ())
        is_known = all(value is not folding.UNKNOWN for value in given)
        if not isinstance(function, types.FunctionType) or is_known and folding.is_folded(callee):
            return None
        return Call(function, dialect=declared_dialect(function))

    def _require_used(self, statement: ir.Assign, function: object) -> None:
        """Raise where nothing reads the result of a function that is marked with MustUse."""
        mark = getattr(function, "__must_use__", None)
        if isinstance(mark, MustUse) and statement.target.name not in self._used:
            raise BlockTypeError(
                f"{function.__name__}: its result is not used, accepted a call whose result is",
                loc=statement.loc.location, hint=mark.hint)

    def _is_open_method(self, statement: ir.Stmt, knowledge: Knowledge) -> bool:
        """Whether a call may be one of an aggregate's method, as only types can tell."""
        node = statement.value if isinstance(statement, ir.Assign) else None
        if not METHOD_NAMES or not isinstance(node, ir.Expr) or node.op != "call":
            return False
        is_known = knowledge.callees.get(id(statement), folding.UNKNOWN) is not folding.UNKNOWN
        return not is_known and MAPPED not in node._kws and self._lookup(node.func) is not None

    def _lookup(self, method: ir.Var) -> ir.Expr | None:
        """The expression `record.name` that a method is, if aggregates have one of the name."""
        for block in self._blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign) and statement.target.name == method.name:
                    node = statement.value
                    is_lookup = isinstance(node, ir.Expr) and node.op == "getattr"
                    return node if is_lookup and node.attr in METHOD_NAMES else None
        return None

    def _method_of(self, statement: ir.Assign, typed: Mapping[int, tuple]) -> Call | None:
        """The call of an aggregate's method; None if it is left open, or is of something else."""
        node = statement.value
        if OPEN not in node._kws or node._kws[OPEN] not in typed:
            self._leave_open(statement)
            return None
        function = method_among(typed[node._kws[OPEN]])
        self._require_used(statement, function)
        if function is None or getattr(function, "__compile_time__", False):
            del node._kws[OPEN]
            node._kws[MAPPED] = True
            return None
        return Call(python_function(function), self._lookup(node.func).value,
                    dialect=declared_dialect(function))

    def _function_of(self, nested: Nested) -> types.FunctionType:
        code = nested.code
        if code not in self._functions:
            cells = tuple(types.CellType() for _ in code.co_freevars)
            self._functions[code] = types.FunctionType(code, nested.globals, code.co_name, None,
                                                       cells)
        return self._functions[code]

    def _inline(self, block: ir.Block, statement: ir.Assign, call: Call, knowledge: Knowledge,
                activation: Activation) -> ir.Block:
        """Append the callee's body to block; give the block in which the caller goes on."""
        site = statement.loc.location
        source = source_of(call.function, activation.dialect)
        if self._watched:
            source = checked(source)
        refuse_assigned_cells(source, call.cells)
        self._statements += statement_count(source.blocks)
        require_few_statements(self._statements, _outermost(site))
        body = _Body(source, call, block.scope, site, activation)
        starred = [self._item(block, statement, index)
                   for index in range(_starred(statement, knowledge))]
        block.body += body.variables(statement.value.func)
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
            location = body.location(source.blocks[label].loc)
            inlined = self._blocks[new] = ir.Block(block.scope, location)
            inlined.body = body.statements(label, arguments)
            if isinstance(last := inlined.body[-1], ir.Return):
                inlined.body[-1:] = [ir.Assign(last.value, statement.target, last.loc),
                                     ir.Jump(after, last.loc)]
        rest = self._blocks[after] = ir.Block(block.scope, statement.loc)
        if activation.dialect.named_dtype is not None:
            # a variable keeps its dtype, and so does a result, though nobody reads it
            read = ir.Var(block.scope, f"result of call@{activation.number}", statement.loc)
            rest.append(ir.Assign(statement.target, read, statement.loc))
        return rest

    def _item(self, block: ir.Block, statement: ir.Assign, index: int) -> ir.Var:
        """A variable that holds an item of the * argument of a call."""
        loc, variable = statement.loc, ir.Var(block.scope, f"$starred@{next(self._numbers)}",
                                              statement.loc)
        block.append(ir.Assign(tuple_item(statement.value.vararg, index, loc), variable, loc))
        return variable


class _Body:
    """Copies of a callee's statements in terms of the caller."""

    def __init__(self, source: Source, call: Call, scope: ir.Scope, site: Loc,
                 activation: Activation):
        self._source, self._call, self._activation = source, call, activation
        self._suffix, self._scope, self._site = f"@{activation.number}", scope, site
        self._variables: dict[str, ir.Var] = {}
        self._locations: dict[SourceLoc, SourceLoc] = {}
        self.label = lambda label: label

    def statements(self, label: int, arguments: dict[str, ir.Var | object]) -> list[ir.Stmt]:
        """The statements of a block, parameters being assigned from arguments."""
        return [self._statement(s, arguments) for s in self._source.blocks[label].body]

    def location(self, loc: SourceLoc) -> SourceLoc:
        """A location in the callee, with the call it was reached by."""
        if id(loc) not in self._locations:
            hidden = (self._source.function.__module__ or "").startswith(_LIBRARY)
            location = self._site if hidden else _called_from(loc.location, self._site)
            self._locations[id(loc)] = SourceLoc(location, self._activation)
        return self._locations[id(loc)]

    def _statement(self, statement: ir.Stmt, arguments: dict[str, object]) -> ir.Stmt:
        if isinstance(statement, ir.Assign):
            node, loc = statement.value, self.location(statement.loc)
            target = self._variable(statement.target)
            if isinstance(node, ir.Arg):
                given = arguments[node.name]
                if not isinstance(given, (ir.Var, ir.Expr)):
                    given = constant_node(given, node.name, loc)
                return ir.Assign(given, target, loc)
            if isinstance(node, ir.Global):
                return ir.Assign(self._source.global_node(node.name, loc), target, loc)
        copy = renaming.rename_statement(statement, self._variable, self._variable, self.label,
                                         self.location)
        if self._call.nested is not None and is_made(copy):
            # what this function keeps never changes: the inner one can keep it as well
            keep_values(copy.value, frozenset(self._call.nested.values))
        return copy

    def variables(self, callee: ir.Var) -> list[ir.Stmt]:
        """Assignments of the callee's free variables that are no variables of the caller."""
        loc, nested = self.location(self._source.first_loc), self._call.nested
        if nested is None:
            return [ir.Assign(value, self._named(value.name, loc), self.location(value.loc))
                    for value in self._source.closure_values()]
        first = nested.defaults + len(nested.keywords)
        return [ir.Assign(kept_value(callee, first + i, loc), self._named(name, loc), loc)
                for i, name in enumerate(nested.values)]

    def _named(self, name: str, loc: SourceLoc) -> ir.Var:
        return self._variable(ir.Var(self._scope, name, loc))

    def _variable(self, variable: ir.Var) -> ir.Var:
        name = variable.name
        if name in self._call.cells:
            return self._call.cells[name]
        if name not in self._variables:
            self._variables[name] = ir.Var(self._scope, name + self._suffix, variable.loc)
        return self._variables[name]


def _bind(source: Source, call: Call, expression: ir.Expr, starred: Sequence[ir.Var],
          site: Loc) -> dict[str, object]:
    """Parameter name -> variable, or value, or the expression that makes the tuple of *args."""
    positional = [*expression.args, *starred]
    if call.receiver is not None:
        positional.insert(0, call.receiver)
    signature = source.signature
    if call.nested is not None:
        signature = _with_defaults(signature, call.nested, expression.func, SourceLoc(site))
    try:
        bound = signature.bind(*positional, **dict(expression.kws))
    except TypeError as error:
        raise BlockTypeError(f"{call.function.__name__}: {error}, accepted "
                             f"{call.function.__name__}{signature_text(source.signature)}",
                             loc=site,
                             hint=keyword_hint(dict(expression.kws), signature)) from None
    bound.apply_defaults()
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            items = bound.arguments[parameter.name]
            bound.arguments[parameter.name] = ir.Expr.build_tuple(list(items), SourceLoc(site))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise UnsupportedError(f"{call.function.__name__}: ** parameters are not supported",
                                   loc=site)
    return bound.arguments


def _with_defaults(signature: inspect.Signature, nested: Nested, callee: ir.Var,
                   loc: SourceLoc) -> inspect.Signature:
    """The signature of a nested function, each default being what the function keeps of it."""
    by_position = [p.name for p in signature.parameters.values()
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = (*by_position[len(by_position) - nested.defaults:], *nested.keywords)
    defaults = {name: kept_value(callee, i, loc) for i, name in enumerate(named)}
    parameters = [p.replace(default=defaults[p.name]) if p.name in defaults else p
                  for p in signature.parameters.values()]
    return signature.replace(parameters=parameters)


def _starred(statement: ir.Stmt, knowledge: Knowledge) -> int | None:
    """Number of items of the * argument of a call; None when it is not known."""
    if id(statement) not in knowledge.starred:
        return 0
    value = knowledge.starred[id(statement)]
    items = value if isinstance(value, tuple) else folding.items_of(value)
    return None if items is None else len(items)


def refuse_assigned_cells(source: Source, cells: Container[str]) -> None:
    """Raise when a function assigns a variable of a function that runs outside of the kernel."""
    outside = [name for name in sorted(written_cells(source.function.__code__))
               if name not in cells]
    if outside:
        raise UnsupportedError(
            f"nonlocal: given {outside[0]!r}, a variable of a function around the kernel, accepted "
            "a variable of the kernel", loc=_assignment_location(source, outside[0]),
            hint="return the value, or store it to an array")


def _called_from(location: Loc, site: Loc) -> Loc:
    """location, its outermost caller being site, unless that is none of the user's."""
    if site.file.startswith("<arguments of "):
        return location
    caller = site if location.caller is None else _called_from(location.caller, site)
    return replace(location, caller=caller)


def _endless(name: str, loc: Loc) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: recursion that does not end at compile time", loc=loc,
        hint="let a compile-time constant or the shape of a tile end it, or write a loop")


def _outermost(location: Loc) -> Loc:
    while location.caller is not None:
        location = location.caller
    return location


def _assignment_location(source: Source, name: str) -> Loc:
    """Location where a function, or one inside it, assigns a variable of an enclosing function."""
    for block in source.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.Assign) and statement.target.name == name:
                return statement.loc.location
    return Loc.of(source.function)
