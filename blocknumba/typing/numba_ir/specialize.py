"""Specialisation of a kernel's Numba IR: constants in, calls inlined, static loops unrolled."""

from __future__ import annotations

from collections.abc import Mapping

from numba.core import ir

from blocknumba.errors import BlockTypeError, Loc
from blocknumba.tile_ir.ir.types import Argument
from blocknumba.typing.dialect import Dialect
from blocknumba.typing.function import signature_text
from blocknumba.typing.numba_ir import constants, renaming
from blocknumba.typing.numba_ir.assigned import checked
from blocknumba.typing.numba_ir.bytecode import Source
from blocknumba.typing.numba_ir.constants import KnownAttributes, Knowledge
from blocknumba.typing.numba_ir.graph import Graph, merge_straight_lines
from blocknumba.typing.numba_ir.inlining import Inliner, refuse_assigned_cells
from blocknumba.typing.numba_ir.nested import forget_cells
from blocknumba.typing.numba_ir.unrolling import Unroller
from blocknumba.wording import did_you_mean


class Specializer:
    """Makes blocks that mean what the source means for these constants, and call no function.

    blocks: label -> block.
    Every parameter is in arguments or in constant_values.
    dialect: of the source.   watched: as of Options.
    """

    def __init__(self, source: Source, arguments: Mapping[str, Argument],
                 constant_values: Mapping[str, object], dialect: Dialect, watched: bool = False):
        refuse_assigned_cells(source, ())
        self._source, self._watched = checked(source) if watched else source, watched
        self.blocks = _copy(self._source, constant_values)
        self._known = {name: KnownAttributes(given, dialect) for name, given in arguments.items()}
        self._inliner = Inliner(self.blocks, dialect, watched)
        self._unroller = Unroller(self.blocks)
        self._knowledge = Knowledge()

    def run(self) -> None:
        """Inline calls and unroll loops until nothing changes.

        Errors: recursion that does not end.
        """
        blocks, entry = self.blocks, self._source.entry
        while True:
            knowledge = self._knowledge = _propagate_and_prune(blocks, entry, self._known,
                                                               self._watched)
            if self._inliner.inline_calls(knowledge):
                continue
            if not self._unroller.unroll_loops(Graph(blocks, entry), knowledge):
                break
        self._unroller.leave_open(knowledge)
        self._inliner.refuse_open_calls(knowledge)

    @property
    def has_open_calls(self) -> bool:
        """Whether calls are left that wait for types: recursive ones, and of static_range."""
        return bool(self._inliner.open_calls or self._unroller.open_loops)

    def make_calls(self, typed: Mapping[int, tuple]) -> None:
        """Inline open calls after all, and make static loops whose bounds are known now.

        typed: number of the call -> types of its arguments.
        Errors: recursion that does not end; bounds of run time.
        """
        self._unroller.bound_loops(typed)
        self._inliner.inline_calls(self._knowledge, typed)
        self.run()

    def result(self) -> dict[int, ir.Block]:
        """The blocks, as a copy while calls are open."""
        blocks = self.blocks
        if self.has_open_calls:
            blocks = {label: _copied_block(block) for label, block in blocks.items()}
        forget_cells(blocks)
        constants.drop_unused_temporaries(blocks)
        return blocks


def _copied_block(block: ir.Block) -> ir.Block:
    copy = ir.Block(block.scope, block.loc)
    copy.body = [renaming.rename_statement(s, _same, _same) for s in block.body]
    return copy


def bind_constants(source: Source, arguments: Mapping[str, Argument],
                   constant_values: Mapping[str, object]) -> dict[str, object]:
    """The constants, completed by the defaults of the parameters that were given nothing.

    Errors: BlockTypeError for a parameter without a value, and for a value without a parameter.
    """
    bound = dict(constant_values)
    name, location = source.function.__name__, Loc.of(source.function)
    parameters = source.signature.parameters
    for extra in (arguments.keys() | bound.keys()) - parameters.keys():
        raise BlockTypeError(f"{name}: no parameter is called {extra!r}, accepted "
                             f"{name}{signature_text(source.signature)}", loc=location,
                             hint=did_you_mean(extra, parameters))
    for parameter in parameters.values():
        if parameter.name in arguments or parameter.name in bound:
            continue
        if parameter.default is parameter.empty:
            raise BlockTypeError(f"{name}: no value was given for {parameter.name!r}", loc=location)
        bound[parameter.name] = parameter.default
    return bound


def _propagate_and_prune(blocks: dict[int, ir.Block], entry: int,
                         known: dict[str, KnownAttributes], watched: bool) -> Knowledge:
    merge_straight_lines(blocks, entry)
    knowledge = constants.propagate(blocks, Graph(blocks, entry), known, watched)
    constants.prune(blocks, knowledge)
    merge_straight_lines(blocks, entry)
    return knowledge


def _copy(source: Source, constant_values: Mapping[str, object]) -> dict[int, ir.Block]:
    blocks = {}
    for label, block in source.blocks.items():
        copy = blocks[label] = ir.Block(block.scope, block.loc)
        copy.body = [_copy_statement(s, source, constant_values) for s in block.body
                     if not isinstance(s, ir.Del)]
    entry = blocks[source.entry]
    entry.body[:0] = [ir.Assign(value, ir.Var(entry.scope, value.name, value.loc), value.loc)
                      for value in source.closure_values()]
    return blocks


def _copy_statement(statement: ir.Stmt, source: Source,
                    constant_values: Mapping[str, object]) -> ir.Stmt:
    if isinstance(statement, ir.Assign):
        node, loc = statement.value, statement.loc
        if isinstance(node, ir.Arg):
            if node.name in constant_values:
                node = constants.constant_node(constant_values[node.name], node.name, loc)
            if isinstance(node, ir.FreeVar):  # it may be refused, where it is read
                loc = source.first_read(node.name)
            return ir.Assign(node, statement.target, loc)
        if isinstance(node, ir.Global):
            return ir.Assign(source.global_node(node.name, loc), statement.target, loc)
    return renaming.rename_statement(statement, _same, _same)


def _same(variable: ir.Var) -> ir.Var:
    return variable
