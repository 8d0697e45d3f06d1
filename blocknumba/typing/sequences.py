"""Lists that nobody changes, and generators that are consumed at once: tuples from the start.

`[m, n]` and `[f(i) for i in t]` are lists whose items are only read; `(*t, x)` builds a list and
turns it into a tuple; `tuple(f(i) for i in t)` and `sum(...)` run a generator.
"""

from __future__ import annotations

import operator
import types

from numba.core import interpreter, ir

from blocknumba.errors import UnsupportedError
from blocknumba.typing.numba_ir.graph import Graph, Label
from blocknumba.typing.numba_ir.nested import is_made
from blocknumba.typing.numba_ir.renaming import rename_expression, uses

YIELDED = ".yielded"  # the variable that holds the tuple so far begins with this
_GENERATOR = "<genexpr>"
_CONSUMERS = (tuple, sum, min, max, any, all)


class SequenceInterpreter(interpreter.Interpreter):
    """The part of Numba's bytecode interpreter that grows lists: by + , as tuples grow."""

    def op_LIST_APPEND(self, inst, target, value, appendvar, res):  # noqa: N802 - Numba's name
        """A list with one more item."""
        self.store(ir.Expr.build_tuple([self.get(value)], self.loc), appendvar)
        self._grow(target, appendvar)

    def op_LIST_EXTEND(self, inst, target, value, extendvar, res):  # noqa: N802 - Numba's name
        """A list with the items of a tuple."""
        self._grow(target, value)

    def op_LIST_TO_TUPLE(self, inst, const_list, res):  # noqa: N802 - Numba's name
        """The tuple that a list was made for."""
        self.store(ir.Expr.cast(self.get(const_list), self.loc), res)

    def _grow(self, target: str, added: str) -> None:
        self.store(ir.Expr.binop(operator.add, self.get(target), self.get(added), self.loc), target)

    def settle_lists(self) -> None:
        """Make tuples of lists: where nobody changes a list, nobody can tell it from a tuple.

        Lists that `+=` or `*=` changes stay, and are refused.
        """
        statements = [s for block in self.blocks.values() for s in block.body]
        lists = {s.target.name for s in statements if _is_list(s)}
        while more := {s.target.name for s in statements if _passes_on(s, lists)} - lists:
            lists |= more
        for statement in statements:
            _refuse_index(statement, lists)
        _refuse_sorting_in_place(statements)
        if any(_changes(statement, lists) for statement in statements):
            return
        for number, statement in enumerate(filter(_is_list, statements)):
            statement.value.op = "build_tuple"
            names = {statement.target.name}
            while more := {s.target.name for s in statements
                           if _passes_on(s, names) and s.target.is_temp} - names:
                names |= more
            if any(_grows(s, names) for s in statements):
                target = statement.target
                _share(statements, names, ir.Var(target.scope, f"{YIELDED}{number}", target.loc))


def drop_unread_dicts(blocks: dict[Label, ir.Block]) -> None:
    """Leave out the dicts that Python makes of keywords: calls have the keywords themselves."""
    is_left = any(_is_dict(s) for block in blocks.values() for s in block.body)
    while is_left:
        read = {v.name for block in blocks.values() for s in block.body for v in uses(s)}
        is_left = False
        for block in blocks.values():
            kept = [s for s in block.body if not _may_pass_on_a_dict(s) or s.target.name in read]
            is_left |= len(kept) < len(block.body)
            block.body = kept


def _may_pass_on_a_dict(statement: ir.Stmt) -> bool:
    """Whether a temporary becomes a dict, or what another variable is."""
    return isinstance(statement, ir.Assign) and statement.target.is_temp and (
        _is_dict(statement) or isinstance(statement.value, ir.Var))


def _is_dict(statement: ir.Stmt) -> bool:
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            and statement.value.op == "build_map")


def mark_unread_updates(blocks: dict[Label, ir.Block], shared: set[str]) -> None:
    """Mark each `x += y` after which x is read by nothing but such updates: `is_unread`.

    Of an array x NumPy would change the elements; here `x + y` is a pointer, as in Triton.
    shared: variables that other functions may read.
    """
    graph, known = Graph(blocks, min(blocks)), None
    live: dict[Label, set[str]] = {label: set() for label in graph.order}
    while known != live:
        known = dict(live)
        for label in reversed(graph.order):
            live[label] = _read_from(blocks[label], set().union(
                *(live[target] for target in graph.successors[label])), shared)


def _read_from(block: ir.Block, after: set[str], shared: set[str]) -> set[str]:
    """The variables that are read from the start of a block; after: from its end."""
    live, body = set(after), list(block.body)
    while body:
        statement = body.pop()
        update = body[-1].value if body and _passes_on(statement, _updated(body[-1])) else None
        if update is not None and update.lhs.name == statement.target.name:
            body.pop()
            update._kws["is_unread"] = statement.target.name not in live | shared
            live.add(update.rhs.name)
            continue
        if isinstance(statement, ir.Assign):
            live.discard(statement.target.name)
        live.update(v.name for v in uses(statement))
    return live


def _updated(statement: ir.Stmt) -> set[str]:
    return {statement.target.name} if (
        isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
        and statement.value.op == "inplace_binop") else set()


def is_generator_expression(code: types.CodeType) -> bool:
    """Whether code is that of `(... for ...)`."""
    return code.co_name == _GENERATOR


def yield_into_tuple(blocks: dict[Label, ir.Block], entry: Label) -> None:
    """Let a generator expression return all that it yields, as a tuple."""
    for label in blocks.keys() - Graph(blocks, entry).index.keys():
        del blocks[label]
    for block in blocks.values():
        body: list[ir.Stmt] = []
        for statement in block.body:
            body += _without_yield(statement, block.scope)
        block.body = body
    first = blocks[entry]
    whole = ir.Var(first.scope, YIELDED, first.loc)
    first.body.insert(0, ir.Assign(ir.Expr.build_tuple([], first.loc), whole, first.loc))


def require_consumed(blocks: dict[Label, ir.Block]) -> None:
    """Refuse generators that are not consumed at once.

    Errors: UnsupportedError.
    """
    assigned = {s.target.name: s for b in blocks.values() for s in b.body
                if isinstance(s, ir.Assign)}
    makers = {name for name, s in assigned.items()
              if is_made(s) and is_generator_expression(s.value.nested.code)}
    made = {name for name, s in assigned.items() if _calls(s, makers)}
    if not made:
        return
    for block in blocks.values():
        for statement in block.body:
            uses = [v for v in statement.list_vars() if v.name in made]
            if _calls(statement, makers) or not uses:
                continue
            if not _is_consumer(statement, assigned):
                raise UnsupportedError(
                    "a generator: accepted as the argument of tuple, sum, min, max, any or all",
                    loc=assigned[uses[0].name].loc.location,
                    hint="make a tuple: tuple(... for ...)")


def _is_consumer(statement: ir.Stmt, assigned: dict[str, ir.Assign]) -> bool:
    """Whether it is a call of one of the functions that take all that a generator yields."""
    call = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(call, ir.Expr) or call.op != "call":
        return False
    function = assigned.get(call.func.name)
    return function is not None and getattr(function.value, "value", None) in _CONSUMERS


def _without_yield(statement: ir.Stmt, scope: ir.Scope) -> list[ir.Stmt]:
    loc, whole = statement.loc, ir.Var(scope, YIELDED, statement.loc)
    if isinstance(statement, ir.Return):
        return [ir.Return(whole, loc)]
    if not (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Yield)):
        return [statement]
    one = ir.Var(scope, f"{statement.target.name}.item", loc)
    return [ir.Assign(ir.Expr.build_tuple([statement.value.value], loc), one, loc),
            ir.Assign(ir.Expr.binop(operator.add, whole, one, loc), whole, loc),
            ir.Assign(ir.Const(None, loc), statement.target, loc)]


def _is_list(statement: ir.Stmt) -> bool:
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            and statement.value.op == "build_list")


def _passes_on(statement: ir.Stmt, lists: set[str]) -> bool:
    """Whether a variable becomes one of some lists."""
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Var)
            and statement.value.name in lists)


def _grows(statement: ir.Stmt, names: set[str]) -> bool:
    """Whether a list of one of some names gets more items."""
    node = statement.value if isinstance(statement, ir.Assign) else None
    return (isinstance(node, ir.Expr) and node.op == "binop" and node.lhs.name in names
            and statement.target.name in names)


def _share(statements: list[ir.Stmt], names: set[str], variable: ir.Var) -> None:
    """Put one variable in place of temporaries of some names: they are one list, as it grows."""
    def shared(old: ir.Var) -> ir.Var:
        return variable if old.name in names else old

    for statement in statements:
        if not isinstance(statement, ir.Assign):
            continue
        statement.target = shared(statement.target)
        if isinstance(statement.value, ir.Var):
            statement.value = shared(statement.value)
        elif isinstance(statement.value, ir.Expr):
            statement.value = rename_expression(statement.value, shared)


def _changes(statement: ir.Stmt, lists: set[str]) -> bool:
    """Whether a statement may change a list in place."""
    node = statement.value if isinstance(statement, ir.Assign) else None
    return isinstance(node, ir.Expr) and node.op == "inplace_binop" and node.lhs.name in lists


def _refuse_index(statement: ir.Stmt, lists: set[str]) -> None:
    """Raise where a list is an index: of x[[i, j]] NumPy takes elements i and j of one axis."""
    node = statement.value if isinstance(statement, ir.Assign) else statement
    if (isinstance(node, ir.SetItem) or isinstance(node, ir.Expr) and node.op == "getitem"
            ) and node.index.name in lists:
        raise UnsupportedError(
            "index: given a list, accepted ints, slices, spans and tiles of ints",
            loc=statement.loc.location,
            hint="write x[i, j] for an index of several axes; a tile of ints picks elements")


def _refuse_sorting_in_place(statements: list[ir.Stmt]) -> None:
    """Raise where x.sort() is a statement: NumPy and Python sort x itself."""
    modules = {s.target.name for s in statements if isinstance(s, ir.Assign)
               and isinstance(s.value, (ir.Global, ir.FreeVar))}
    methods = {s.target.name for s in statements if isinstance(s, ir.Assign)
               and isinstance(s.value, ir.Expr) and s.value.op == "getattr"
               and s.value.attr == "sort" and s.value.value.name not in modules}
    read = {v.name for s in statements for v in uses(s)} if methods else set()
    for statement in statements:
        if (_calls(statement, methods) and statement.target.is_temp
                and statement.target.name not in read):
            raise UnsupportedError("sort: its result is not used, and nothing is sorted in place",
                                   loc=statement.loc.location,
                                   hint="a tile is a value: x = np.sort(x)")


def _calls(statement: ir.Stmt, functions: set[str]) -> bool:
    node = statement.value if isinstance(statement, ir.Assign) else None
    return isinstance(node, ir.Expr) and node.op == "call" and node.func.name in functions
