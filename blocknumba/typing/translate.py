"""Statements of Numba IR, in SSA form and typed, into tile IR ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numba.core import ir, types

from blocknumba.errors import BlockAssertionError, BlockError, BlockTypeError, UnsupportedError
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Value
from blocknumba.typing.context import Context, describe
from blocknumba.typing.evaluate import UNDEFINED, evaluate, execute
from blocknumba.typing.numba_ir import idioms, renaming
from blocknumba.typing.numba_ir.graph import Graph, Label, Loop
from blocknumba.typing.numba_ir.idioms import assertion_text
from blocknumba.typing.numba_types import convert, flatten, undefined
from blocknumba.typing.ranges import is_nonnegative
from blocknumba.typing.values import Iteration, unwrapped


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop that the op `for` can count.

    over: what it runs over; counter: name of the phi that counts.
    """

    over: Iteration
    counter: str


class Translator:
    """Emits the ops of statements; knows the value of every variable.

    types: of the variables, from inference.  parameters: values of the arguments, by name.
    """

    def __init__(self, context: Context, variable_types: Mapping[str, types.Type],
                 parameters: Mapping[str, object]):
        self.context, self.types = context, variable_types
        self.env: dict[str, object] = {}
        self._parameters = parameters

    def statements(self, block: ir.Block) -> None:
        """Emit a block but for its phis and its last statement."""
        for statement in block.body[:-1]:
            if not _is_expression(statement, "phi"):
                self._statement(statement)

    def condition(self, last: ir.Branch) -> Value:
        """The condition of a branch, a scalar bool."""
        with self._at(last):
            return self.context.dialect.truth(self.context, self.env[last.cond.name],
                                              "a condition")

    def leave(self, last: ir.Stmt) -> None:
        """Check the end of a path: a kernel returns nothing."""
        with self._at(last):
            if isinstance(last, ir.Raise):
                self._raise(last)
            value = self.env[last.value.name]
            if value is not None and value is not UNDEFINED:
                raise BlockTypeError(f"return: given {describe(value)}, accepted nothing: a kernel "
                                     "returns no value", hint="store it to an array")

    def incoming(self, phis: list[ir.Assign], source: Label) -> list[Value]:
        """The run-time values that phis take when they are reached from a block."""
        values: list[Value] = []
        for phi in phis:
            of = self.types[phi.target.name]
            given = phi.value.incoming_values[phi.value.incoming_blocks.index(source)]
            if given is ir.UNDEFINED:
                values += flatten(undefined(self.context, of, _shown_name(phi.target.name)))
            else:
                values += flatten(self._converted(phi, given, of))
        return values

    def _converted(self, phi: ir.Assign, given: ir.Var, of: types.Type) -> object:
        """The value of a variable as what a phi holds.

        Errors: BlockValueError at the variable for an int literal that does not fit.
        """
        name = renaming.user_name(phi.target.name)
        what = "a value" if renaming.is_temporary(name) else f"variable {name!r}"
        try:
            return convert(self.context, self.env[given.name], of, what)
        except BlockError as error:
            raise error.at(given.loc.location) from None

    def bind(self, phi: ir.Assign, value: object) -> None:
        """Set the value of a phi."""
        self.env[phi.target.name] = value
        _name(value, phi.target.name)

    # loops ------------------------------------------------------------------------------------
    def counted(self, loop: Loop, blocks: Mapping[Label, ir.Block], graph: Graph) -> Counted | None:
        """The loop as one over a range, when its header is its only way out."""
        header = blocks[loop.header]
        valid = _assignment(header, header.body[-1])
        if valid is None or not _is_expression(valid, idioms.VALID):
            return None
        if any(t not in loop.body for b in loop.body - {loop.header} for t in graph.successors[b]):
            return None
        counter, iterator = valid.value.counter.name, valid.value.iterator.name
        is_phi = any(_is_expression(s, "phi") and s.target.name == counter for s in header.body)
        if not is_phi or iterator not in self.env or header.body[-1].truebr not in loop.body:
            return None
        over = self.env[iterator]
        step = constant_of(over.step)
        return Counted(over, counter) if step is None or step != 0 else None

    def enter_counted(self, header: ir.Block, counted: Counted, index: Value) -> None:
        """Emit the header of a counted loop, within it."""
        over = counted.over
        step = constant_of(over.step)
        if step is not None and step > 0 and is_nonnegative(over.start, self.context.nonnegative):
            self.context.nonnegative.add(index)
        self.env[counted.counter] = index
        for statement in header.body[:-1]:
            if _is_expression(statement, idioms.VALID, idioms.NEXT):
                self.env[statement.target.name] = index
            elif not _is_expression(statement, "phi"):
                self._statement(statement)

    def note_counters(self, header: ir.Block, initial: list[Value],
                      carried: tuple[Value, ...]) -> None:
        """Learn which carried values count up from at least 0."""
        for statement in header.body:
            if not _is_expression(statement, idioms.VALID):
                continue
            over = self.env.get(statement.value.iterator.name)
            start = self.env.get(statement.value.counter.name)
            if not isinstance(over, Iteration) or start not in initial:
                continue
            step = constant_of(over.step)
            if step is not None and step > 0 and is_nonnegative(start, self.context.nonnegative):
                self.context.nonnegative.add(carried[initial.index(start)])

    # statements -------------------------------------------------------------------------------
    def _statement(self, statement: ir.Stmt) -> None:
        with self._at(statement):
            if not isinstance(statement, ir.Assign):
                execute(self.context, statement, self._read)
                return
            node, name = statement.value, statement.target.name
            if isinstance(node, ir.Arg):
                self.env[name] = self.context.settled(self._parameters[node.name])
                return
            value = self.env[name] = evaluate(self.context, node, self._read)
        _name(value, name)

    def _read(self, variable: ir.Var) -> object:
        return self.env[variable.name]

    def _raise(self, last: ir.Raise) -> None:
        given = self.env.get(last.exception.name) if last.exception else None
        if given is AssertionError or isinstance(given, AssertionError):
            message = assertion_text(given) if isinstance(given, AssertionError) else ""
            raise BlockAssertionError(f"assert: {message or 'the condition does not hold'}")
        raise UnsupportedError("raise: not supported in a kernel", hint="use assert, which is "
                               "checked with debug=True")

    def _at(self, statement: ir.Stmt) -> _Place:
        return _Place(self.context, statement)


class _Place:
    """While entered, ops and errors are placed at a statement."""

    __slots__ = ("_context", "_loc")

    def __init__(self, context: Context, statement: ir.Stmt):
        self._context, self._loc = context, statement.loc

    def __enter__(self) -> None:
        self._context.enter(self._loc.location, self._loc.dialect)

    def __exit__(self, kind, error, traceback) -> None:
        if isinstance(error, BlockError):
            error.at(self._loc.location)


def _assignment(block: ir.Block, last: ir.Stmt) -> ir.Assign | None:
    """The statement of a block that assigns the condition of its branch."""
    if not isinstance(last, ir.Branch):
        return None
    return next((s for s in block.body if isinstance(s, ir.Assign)
                 and s.target.name == last.cond.name), None)


def _is_expression(statement: ir.Stmt, *operations: str) -> bool:
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            and statement.value.op in operations)


def _shown_name(name: str) -> str:
    """Name of a variable in the user's source; "" for one of ours."""
    return "" if renaming.is_temporary(name) else renaming.user_name(name)


def _name(value: object, name: str) -> None:
    """Give a value the user's name for it, for printing."""
    value = unwrapped(value)
    if isinstance(value, Value) and not value.hint and not renaming.is_temporary(name):
        value.hint = renaming.user_name(name)
