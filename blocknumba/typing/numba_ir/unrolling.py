"""Unrolling of static_range loops, and of loops over tuples, in Numba IR."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numba.core import ir

from blocknumba.errors import BlockError, BlockTypeError, Loc, UnsupportedError
from blocknumba.settings import SETTINGS, raises
from blocknumba.typing.numba_ir import folding, renaming
from blocknumba.typing.numba_ir.bytecode import activation_numbers
from blocknumba.typing.numba_ir.constants import Knowledge, constant_node, tuple_item
from blocknumba.typing.numba_ir.folding import UNKNOWN, Items, Range
from blocknumba.typing.numba_ir.graph import Graph, Label
from blocknumba.typing.numba_types import ConstantType
from blocknumba.typing.sequences import YIELDED
from blocknumba.typing.static_values import static_range
from blocknumba.wording import shown

OPEN = "open"  # a keyword of call expressions: the number of a call that is left for later


@dataclass(frozen=True, slots=True)
class _At:
    """An item that is not known at compile time, by its index in the tuple."""

    index: int


@dataclass(frozen=True, slots=True)
class _Iterated:
    """The iterable of a loop, and the statement that makes the iterator.

    is_range: by range, whose loops are only unrolled where they must be.
    """

    items: Sequence[object]
    getiter: ir.Assign
    is_range: bool = False

    def limited_items(self) -> Sequence[object]:
        """The items.   Errors: UnsupportedError for more than can be unrolled."""
        _require_few(_length(self.items), self.getiter.loc.location)
        return tuple(self.items)


@dataclass(frozen=True, slots=True)
class _StaticLoop:
    """A loop whose iterations are known.

    items: the loop variable in each iteration: a value, or its index in the tuple.
    """

    header: Label
    body: frozenset[Label]
    items: Sequence[object]


class Unroller:
    """Replaces loops over known items by one copy of their body per item."""

    def __init__(self, blocks: dict[int, ir.Block]):
        self._blocks = blocks
        self._copies = 0
        self._statements = 0
        self._readers: dict[str, set[Label]] = {}
        self._numbers = itertools.count(-1, -1)  # those of open calls of functions are positive
        self.open_loops: dict[int, ir.Assign] = {}

    def leave_open(self, knowledge: Knowledge) -> None:
        """Number the calls of static_range that are left: types may tell their bounds."""
        self.open_loops = {}
        for block in self._blocks.values():
            for statement in block.body:
                if knowledge.callees.get(id(statement)) is static_range:
                    number = statement.value._kws.setdefault(OPEN, next(self._numbers))
                    self.open_loops[number] = statement

    def bound_loops(self, typed: Mapping[int, tuple]) -> None:
        """Write the bounds of open loops into the statements.

        typed: number of the call -> types of its operands.
        Errors: BlockTypeError for bounds of run time.
        """
        for number in typed.keys() & self.open_loops.keys():
            statement = self.open_loops.pop(number)
            call, loc = statement.value, statement.loc
            of = dict(zip([v.name for v in renaming.uses(statement)], typed[number]))
            if not all(isinstance(each, ConstantType) for each in of.values()):
                raise BlockTypeError("static_range: its bounds must be compile-time constants",
                                     loc=loc.location, hint="use range for a run-time loop")
            bounds = [of[item.name].value for item in call.args]
            named = {name: of[item.name].value for name, item in call.kws}
            try:
                made = folding.fold_call(static_range, bounds, named)
            except BlockError as error:
                raise error.at(loc.location) from None
            statement.value = constant_node(made, statement.target.name, loc)

    def unroll_loops(self, graph: Graph, knowledge: Knowledge) -> bool:
        """Unroll the outermost of the loops over known items; whether there was one."""
        iterators = self._known_iterators(knowledge)
        if not iterators:
            return False
        self._readers = self._find_readers()
        self._statements = statement_count(self._blocks)
        done: set[Label] = set()
        forgotten: list[tuple[ir.Assign, Sequence]] = []
        for header in self._headers(graph, iterators):
            if header in done:
                continue
            iterated = iterators[self._iterated(header)]
            body = graph.loops[header].body if header in graph.loops else frozenset()
            if iterated.is_range and not self._yields(body):
                continue
            items = iterated.limited_items()
            forgotten.append((iterated.getiter, items))
            if body and not self._assigns(body, iterated.getiter.target.name):
                self._unroll(_StaticLoop(header, body, items))
                done |= body
            else:
                # every path through the body leaves it: there is one iteration at most
                self._blocks[header].body = _enter(self._blocks[header].body, items)
                done.add(header)
        for getiter, items in forgotten:
            _forget(self._blocks, getiter, items)
        return bool(done)

    def _assigns(self, body: frozenset[Label], name: str) -> bool:
        """Whether a loop makes an iterator, and so is one around the loop over it."""
        return any(isinstance(s, ir.Assign) and s.target.name == name
                   for label in body for s in self._blocks[label].body)

    def _yields(self, body: frozenset[Label]) -> bool:
        """Whether a loop is one of a generator, which yields in it but starts outside."""
        values: dict[str, list[object]] = {}
        for label in body:
            for s in self._blocks[label].body:
                if isinstance(s, ir.Assign) and s.target.name.startswith(YIELDED):
                    values.setdefault(s.target.name, []).append(s.value)
        return any(all(isinstance(v, ir.Expr) and v.op == "binop" for v in of_one)
                   for of_one in values.values())

    def _known_iterators(self, knowledge: Knowledge) -> dict[str, _Iterated]:
        """Name of a variable that holds an iterator -> what it runs over."""
        found: dict[str, _Iterated] = {}
        for block in self._blocks.values():
            for statement in block.body:
                if not isinstance(statement, ir.Assign):
                    continue
                node, target = statement.value, statement.target.name
                if isinstance(node, ir.Expr) and node.op == "getiter":
                    items = _items(statement, knowledge)
                    if items is not None:
                        is_range = isinstance(knowledge.iterables[id(statement)], Range)
                        found[target] = _Iterated(items, statement, is_range)
                elif isinstance(node, ir.Var) and node.name in found:
                    found[target] = found[node.name]
        return found

    def _find_readers(self) -> dict[str, set[Label]]:
        readers: dict[str, set[Label]] = {}
        for label, block in self._blocks.items():
            for statement in block.body:
                for variable in renaming.uses(statement):
                    readers.setdefault(variable.name, set()).add(label)
        return readers

    def _headers(self, graph: Graph, iterators: dict) -> list[Label]:
        return [label for label in graph.order if self._iterated(label) in iterators]

    def _iterated(self, label: Label) -> str | None:
        for statement in self._blocks[label].body:
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                if statement.value.op == "iternext":
                    return statement.value.value.name
        return None

    def _unroll(self, loop: _StaticLoop) -> None:
        header = self._blocks[loop.header]
        branch = header.body[-1]
        first = max(self._blocks) + 1
        stride = len(loop.body)
        order = sorted(loop.body)
        size = sum(len(self._blocks[label].body) for label in order)
        self._statements += size * len(loop.items)
        require_few_statements(self._statements, branch.loc.location)
        for index, item in enumerate(loop.items):
            labels = {label: first + index * stride + i for i, label in enumerate(order)}
            following = first + (index + 1) * stride + order.index(loop.header)
            if index + 1 == len(loop.items):
                following = branch.falsebr
            self._copy_round(loop, item, labels, following)
        entry = first + order.index(loop.header) if loop.items else branch.falsebr
        for label in self._blocks.keys() - loop.body:
            _redirect(self._blocks[label], loop.header, entry)
        for label in loop.body:
            del self._blocks[label]

    def _variables_of_calls(self, loop: _StaticLoop) -> set[str]:
        """The variables of calls in a loop: each call has its own, which a function may keep.

        Not those that other code shares already, which runs in the order of the iterations.
        """
        around = activation_numbers(self._blocks[loop.header].body[0])
        inside: dict[str, set[int]] = {}
        for label in loop.body:
            for statement in self._blocks[label].body:
                numbers = activation_numbers(statement) - around
                for variable in _mentioned(statement):
                    known = inside.setdefault(variable.name, numbers)
                    inside[variable.name] = known & numbers
        return {name for name, numbers in inside.items() if renaming.owner(name) in numbers}

    def _copy_round(self, loop: _StaticLoop, item: object, labels: dict[Label, Label],
                    following: Label) -> None:
        self._copies += 1
        renamed: dict[str, ir.Var] = {}
        own = self._variables_of_calls(loop)
        local = {s.target.name for label in loop.body for s in self._blocks[label].body
                 if isinstance(s, ir.Assign)
                 and (renaming.is_temporary(s.target.name) or s.target.name in own)
                 and self._readers.get(s.target.name, set()) <= loop.body}

        def rename(variable: ir.Var) -> ir.Var:
            if variable.name not in local:
                return variable
            if variable.name not in renamed:
                name = f"{variable.name}@u{self._copies}"
                renamed[variable.name] = ir.Var(variable.scope, name, variable.loc)
            return renamed[variable.name]

        def jump(label: Label) -> Label:
            return following if label == loop.header else labels.get(label, label)

        for label in loop.body:
            block = self._blocks[label]
            copy = self._blocks[labels[label]] = ir.Block(block.scope, block.loc)
            statements = _enter(block.body, (item,)) if label == loop.header else block.body
            copy.body = [renaming.rename_statement(s, rename, rename, jump) for s in statements]


def _items(statement: ir.Assign, knowledge: Knowledge) -> Sequence | None:
    """Items of a loop, when they are known: values, or their indices in a tuple."""
    iterable = knowledge.iterables.get(id(statement), UNKNOWN)
    if isinstance(iterable, (list, set, dict)):
        raise UnsupportedError(f"for: given {shown(iterable)}, accepted range, static_range, "
                               "spans or a tuple", loc=statement.loc.location, hint="use a tuple")
    if isinstance(iterable, (static_range, Range)):
        return iterable.over
    if isinstance(iterable, (tuple, str)):
        return tuple(iterable)
    if isinstance(iterable, Items):
        return tuple(_At(i) if item is UNKNOWN or folding.is_opaque(item) else item
                     for i, item in enumerate(iterable.items))
    return None


def _length(items: Sequence[object]) -> int:
    """Number of items; `len` of a range has a limit of its own."""
    if not isinstance(items, range):
        return len(items)
    return max(-(-(items.stop - items.start) // items.step), 0)


def _require_few(count: int, location: Loc) -> None:
    """Check the number of iterations of a loop before a copy of its body is made for each."""
    most = SETTINGS.limits.unrolled
    if count > most:
        raise UnsupportedError(
            f"a loop of {shown(count)} iterations cannot be unrolled, accepted at most {most}",
            loc=location, hint=f"use range, whose loop is not unrolled; {raises('unrolled')}")


def statement_count(blocks: dict[int, ir.Block]) -> int:
    """Number of statements of a function."""
    return sum(len(block.body) for block in blocks.values())


def require_few_statements(count: int, location: Loc) -> None:
    """Check how many statements there will be before they are made."""
    most = SETTINGS.limits.statements
    if count > most:
        raise UnsupportedError(
            f"inlining and unrolling make more than {most} statements", loc=location,
            hint=f"use range, whose loop is not unrolled; {raises('statements')}")


def _enter(body: list[ir.Stmt], items: Sequence[object]) -> list[ir.Stmt]:
    """The statements of a header for the first of items: no iteration, but on into the body."""
    statements, iterator = [], None
    for statement in body:
        node = statement.value if isinstance(statement, ir.Assign) else None
        operation = node.op if isinstance(node, ir.Expr) else None
        if operation == "iternext":
            iterator = node.value
        if operation in ("iternext", "pair_second"):
            continue
        if operation == "pair_first":
            item, loc = items[0] if items else None, statement.loc
            value = (tuple_item(iterator, item.index, loc) if isinstance(item, _At)
                     else constant_node(item, "item", loc))
            statement = ir.Assign(value, statement.target, loc)
        elif isinstance(statement, ir.Branch):
            statement = ir.Jump(statement.truebr if items else statement.falsebr, statement.loc)
        statements.append(statement)
    return statements


def _mentioned(statement: ir.Stmt) -> list[ir.Var]:
    """The variables that a statement reads or assigns."""
    target = [statement.target] if isinstance(statement, ir.Assign) else []
    return target + renaming.uses(statement)


def _redirect(block: ir.Block, old: Label, new: Label) -> None:
    last = block.body[-1]
    if isinstance(last, ir.Jump) and last.target == old:
        block.body[-1] = ir.Jump(new, last.loc)
    elif isinstance(last, ir.Branch) and old in (last.truebr, last.falsebr):
        block.body[-1] = ir.Branch(last.cond, new if last.truebr == old else last.truebr,
                                   new if last.falsebr == old else last.falsebr, last.loc)


def _forget(blocks: dict[int, ir.Block], getiter: ir.Assign, items: Sequence[object]) -> None:
    """Remove an iterator that nothing iterates over any more, and its copies.

    Where an item is read from the tuple, the iterator is the tuple.
    """
    if any(isinstance(item, _At) for item in items):
        getiter.value = getiter.value.value if isinstance(getiter.value, ir.Expr) else getiter.value
        return
    gone = {getiter.target.name}
    for block in blocks.values():
        kept = []
        for statement in block.body:
            node = statement.value if isinstance(statement, ir.Assign) else None
            if statement is getiter or isinstance(node, ir.Var) and node.name in gone:
                gone.add(statement.target.name)
                continue
            kept.append(statement)
        block.body = kept
