"""Types of the variables of a kernel, by Numba's type inferer, and the paths that can run.

Evaluation of a statement on stand-ins says what it gives; a condition whose type is a constant
closes the other path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence, Set

from numba.core import ir, types
from numba.core.typeinfer import ConstraintNetwork, TypeInferer
from numba.core.typing.context import BaseContext

from blocknumba.errors import BlockError, BlockNameError, BlockTypeError, Loc
from blocknumba.typing.context import Context, describe
from blocknumba.typing.dialect import Dialect
from blocknumba.typing.evaluate import UNDEFINED, evaluate, execute
from blocknumba.typing.numba_ir import renaming
from blocknumba.typing.numba_ir.graph import Graph, Label, successors
from blocknumba.typing.numba_ir.ssa import is_phi, phis
from blocknumba.typing.numba_ir.unrolling import OPEN
from blocknumba.typing.numba_types import (
    ConstantType, RuntimeType, StructureType, joined, named, stand_in, type_of, widened,
)
from blocknumba.typing.sequences import YIELDED
from blocknumba.typing.values import Number


def keep_live_edges(blocks: dict[Label, ir.Block], graph: Graph,
                    live: Set[tuple[Label, Label]]) -> Graph:
    """Make jumps of branches that go one way only, and drop what is not reached any more."""
    for label in graph.order:
        block = blocks[label]
        last = block.body[-1]
        taken = [t for t in successors(block) if (label, t) in live]
        if isinstance(last, ir.Branch) and len(taken) == 1:
            block.body[-1] = ir.Jump(taken[0], last.loc)
    pruned = Graph(blocks, graph.entry)
    for label in blocks.keys() - pruned.index.keys():
        del blocks[label]
    for label in pruned.order:
        known = set(pruned.predecessors[label])
        for phi in phis(blocks[label]):
            ways = zip(phi.value.incoming_blocks, phi.value.incoming_values)
            kept = [way for way in ways if way[0] in known]
            phi.value._kws["incoming_blocks"] = [source for source, _ in kept]
            phi.value._kws["incoming_values"] = [value for _, value in kept]
    return pruned


Edge = tuple[Label, Label]


class BlockTypingContext(BaseContext):
    """Numba's typing context for kernels: it knows our types only, and nothing is registered."""

    def _load_builtins(self):
        """Numba's own types and functions mean nothing here."""

    def load_additional_registries(self):
        """None: what calls and operators mean is in evaluate."""

    def resolve_value_type(self, value):
        """The type of a compile-time value."""
        return type_of(value)

    def unify_pairs(self, first, second):
        """The type of a variable that has either."""
        return joined(first, second)


class Inferer(TypeInferer):
    """Numba's type inferer on SSA form, with one kind of constraint: evaluate the statement.

    A block is looked at only once some path that can run reaches it; a condition that is known
    from types (`if x.dtype == bn.float16`) closes the other path.
    emission: where rules emit ops of stand-ins, which nobody keeps.
    open_calls: number of an open call that is reached -> the types of what it is given.
    """

    def __init__(self, context: BlockTypingContext, function_ir: ir.FunctionIR, graph: Graph,
                 parameters: Mapping[str, object], emission: Context):
        super().__init__(context, function_ir, _NoWarnings())
        self.graph, self.parameters, self.emission = graph, parameters, emission
        self.live_edges: set[Edge] = set()
        self.open_calls: dict[int, tuple] = {}
        self.constraints = _LiveNetwork()
        self._stand_ins: dict[str, tuple[types.Type, object]] = {}

    def infer(self) -> None:
        """Find the type of each variable that is assigned on some path that can run.

        Errors: the first mistake, in the order of the program, that remains at the fixed point.
        """
        self.propagate()
        if not self.open_calls:
            self._settle_unassigned()

    @property
    def types(self) -> dict[str, types.Type]:
        """The types of the variables, as far as they are known."""
        return {name: variable.type for name, variable in self.typevars.items()
                if variable.type is not None}

    def _settle_unassigned(self) -> None:
        """Type the phis that no path that can run assigns.

        Errors: BlockNameError where such a variable is read, or one that a path leaves out though
        its dialect asks for it.
        """
        reached = {self.graph.entry} | {target for _, target in self.live_edges}
        statements = [(label, s) for label in self.graph.order if label in reached
                      for s in self.blocks[label].body]
        untyped = [s for _, s in statements if isinstance(s, ir.Assign)
                   and self.typevars[s.target.name].type is None]
        left_out = self._left_out([(label, s) for label, s in statements if is_phi(s)])
        if not untyped and not left_out:
            return
        for _, statement in statements:
            if not is_phi(statement):
                self._require_assigned(statement, left_out)
        for statement in filter(is_phi, untyped):
            self.assign(statement.target.name, type_of(UNDEFINED), statement.loc)

    def _left_out(self, joins: Sequence[tuple[Label, ir.Assign]]) -> dict[str, BlockNameError]:
        """Variables that have to be assigned on all paths and are not, with the error for who
        reads them.

        joins: phis, each with the block that it is in.
        """
        found: dict[str, BlockNameError] = {}
        known = -1
        while known < len(found):
            known = len(found)
            for label, phi in joins:
                name, ways = phi.target.name, zip(phi.value.incoming_blocks,
                                                  phi.value.incoming_values)
                taken = [value for source, value in ways if (source, label) in self.live_edges]
                assigned = [value for value in taken if value is not ir.UNDEFINED]
                found.update((name, found[v.name]) for v in assigned if v.name in found)
                if (len(assigned) < len(taken) and self.typevars[name].type is not None
                        and _must_be_assigned(phi, self)):
                    found[name] = _left_out(phi, self)
        return found

    def _require_assigned(self, statement: ir.Stmt, left_out: Mapping[str, BlockNameError]) -> None:
        for variable in renaming.uses(statement):
            if variable.name in left_out:
                raise left_out[variable.name]
            if self.typevars[variable.name].type is None:
                name = renaming.user_name(variable.name)
                raise BlockNameError(f"name {name!r} is used before it is assigned",
                                     loc=renaming.read_location(statement, variable))

    def get_state_token(self):
        """Numba stops at the iteration that leaves this as it was."""
        return self.constraints.changes

    def read(self, variable: ir.Var) -> object:
        """A stand-in for the value of a variable."""
        of = self.typevars[variable.name].type
        if of is None:
            raise _Unknown
        known = self._stand_ins.get(variable.name)
        if known is None or known[0] is not of:
            known = self._stand_ins[variable.name] = (of, stand_in(of))
        return known[1]

    def assign(self, name: str, of: types.Type, loc: ir.Loc) -> None:
        """Set the type of a variable."""
        variable = self.typevars[name]
        if variable.type is not of and variable.type != of:
            variable.type, variable.define_loc = of, loc
            self.constraints.changes += 1


class _Unknown(Exception):
    """An operand has no type yet: it comes from a path that was not followed so far."""


class _NoWarnings:
    """Numba asks for a context that collects warnings; inference has none."""

    def catch_warnings(self, filename=None, lineno=None):
        return contextlib.nullcontext()


class _LiveNetwork(ConstraintNetwork):
    """The constraints of each block, run over the blocks that are reached."""

    def __init__(self):
        super().__init__()
        self.changes = 0
        self._operands: dict[int, tuple] = {}

    def propagate(self, typeinfer: Inferer) -> list[BlockError]:
        """One iteration over the blocks that are reached; the errors that it met."""
        errors: list[BlockError] = []
        graph = typeinfer.graph
        reached = {graph.entry} | {target for _, target in typeinfer.live_edges}
        for label in graph.order:
            if label in reached:
                targets = self._run_block(label, typeinfer, errors)
                reached.update(targets)
                for target in targets:
                    if (label, target) not in typeinfer.live_edges:
                        typeinfer.live_edges.add((label, target))
                        self.changes += 1
        return errors

    def _run_block(self, label: Label, inferer: Inferer,
                   errors: list[BlockError]) -> tuple[Label, ...]:
        block = inferer.blocks[label]
        try:
            for statement in block.body[:-1]:
                self._run(label, statement, inferer)
            return self._targets(block, inferer)
        except _Unknown:
            return ()
        except BlockError as error:
            errors.append(error)
            return ()

    def _run(self, label: Label, statement: ir.Stmt, inferer: Inferer) -> None:
        node = statement.value if isinstance(statement, ir.Assign) else None
        if is_phi(statement):
            self._run_phi(label, statement, inferer)
            return
        operands = tuple([inferer.typevars[v.name].type for v in renaming.uses(statement)])
        if isinstance(node, ir.Expr) and OPEN in node._kws and None not in operands:
            inferer.open_calls[node._kws[OPEN]] = operands
            raise _Unknown
        if self._operands.get(id(statement)) == operands:
            return
        inferer.emission.enter(statement.loc.location, statement.loc.dialect)
        try:
            if node is None:
                execute(inferer.emission, statement, inferer.read)
            elif isinstance(node, ir.Arg):
                value = inferer.emission.settled(inferer.parameters[node.name])
                inferer.assign(statement.target.name, type_of(value), statement.loc)
            else:
                value = evaluate(inferer.emission, node, inferer.read)
                inferer.assign(statement.target.name, type_of(value), statement.loc)
        except BlockError as error:
            _dialect(statement, inferer).reword(error)
            raise error.at(statement.loc.location) from None
        self._operands[id(statement)] = operands

    def _run_phi(self, label: Label, statement: ir.Assign, inferer: Inferer) -> None:
        name, phi = statement.target.name, statement.value
        whole, is_assigned = inferer.typevars[name].type, True
        for source, value in zip(phi.incoming_blocks, phi.incoming_values):
            if (source, label) not in inferer.live_edges:
                continue
            if value is ir.UNDEFINED:
                is_assigned = False
                continue
            part = inferer.typevars[value.name].type
            if part is None:
                continue
            together = part if whole is None else _joined(statement, inferer, whole, part, value)
            if together is None:
                raise _type_change(statement, inferer, whole, part, value)
            whole = together
        if whole is not None:
            # a number that a loop starts with is hardly ever the one that it goes on with
            in_loop = label in inferer.graph.loops
            # a number that not all paths assign must not be there on the others
            is_watched = not is_assigned and inferer.emission.options.watched
            if in_loop or is_watched:
                named_dtype = _dialect(statement, inferer).named_dtype
                whole = widened(whole) if named_dtype is None else named(whole, named_dtype)
            inferer.assign(name, whole, statement.loc)

    def _targets(self, block: ir.Block, inferer: Inferer) -> tuple[Label, ...]:
        last = block.body[-1]
        if isinstance(last, ir.Branch):
            of = inferer.typevars[last.cond.name].type
            if of is None:
                return ()
            if isinstance(of, ConstantType):
                return (last.truebr if of.value else last.falsebr,)
        return successors(block)


def _dialect(statement: ir.Stmt, inferer: Inferer) -> Dialect:
    return statement.loc.dialect or inferer.emission.root


def _joined(phi: ir.Assign, inferer: Inferer, whole: types.Type,
            part: types.Type, value: ir.Var) -> types.Type | None:
    """The type of a variable that has either, as its dialect has it; None if there is none.

    value: what has the type `part`.
    """
    named_dtype = _dialect(phi, inferer).named_dtype
    if named_dtype is None or whole == part:
        return joined(whole, part)
    if _is_result(phi.target.name, _location(phi, value, inferer)):
        returned = [of for of in (whole, part)
                    if not (isinstance(of, ConstantType) and of.value is None)]
        if len(returned) == 1:  # what a path without a return gives is undefined
            return named(returned[0], named_dtype)
    together = joined(*(named(of, named_dtype) for of in (whole, part)))
    if isinstance(together, RuntimeType) and any(
            isinstance(of, RuntimeType) and of != together for of in (whole, part)):
        return None  # a variable keeps its dtype
    return together


def _must_be_assigned(phi: ir.Assign, inferer: Inferer) -> bool:
    """Whether a variable has to be assigned on all paths: where variables keep their dtype."""
    return _dialect(phi, inferer).named_dtype is not None and not renaming.is_temporary(
        renaming.user_name(phi.target.name))


def _left_out(phi: ir.Assign, inferer: Inferer) -> BlockNameError:
    """The error for who reads a variable that a path leaves out."""
    value = next(value for value in phi.value.incoming_values if value is not ir.UNDEFINED)
    name = renaming.user_name(phi.target.name)
    return BlockNameError(f"variable {name!r}: assigned on one path and not on another",
                          loc=_location(phi, value, inferer),
                          hint="assign it before the branch or loop")


def _type_change(phi: ir.Assign, inferer: Inferer, first: types.Type, second: types.Type,
                 value: ir.Var) -> BlockTypeError:
    """The error for a variable whose types on two paths have nothing in common."""
    name, location = renaming.user_name(phi.target.name), _location(phi, value, inferer)
    now = _assignment_line(value, inferer)
    lines = [_assignment_line(v, inferer) for v in phi.value.incoming_values
             if v is not ir.UNDEFINED and v.name != value.name]
    before = next((line for line in lines if line is not None and line != now), None)
    if name.startswith(YIELDED):
        return BlockTypeError(
            "a generator or list: the number of its items is not known at compile time",
            loc=location, hint="loop over a tuple or a range of compile-time constants, without a "
                               "run-time `if`; or add up in a for loop")
    earlier = "" if before is None else f" (line {before.location.line})"
    later = "" if now is None else f" (line {now.location.line})"
    if not renaming.is_temporary(name):
        what = f"variable {name!r}"
    elif _is_result(name, location):
        what = f"the value that {location.function} returns"
    else:
        what = "a conditional expression"
    return BlockTypeError(
        f"{what}: given {_show(first)}{earlier} on one path and {_show(second)}{later} on another, "
        "accepted one type", loc=location, hint=_join_hint(first, second))


def _is_result(name: str, location: Loc) -> bool:
    """Whether a variable, assigned at a location, is the result of a call that was inlined."""
    return renaming.is_temporary(name) and "call" in name and location.caller is not None


def _location(phi: ir.Assign, value: ir.Var, inferer: Inferer) -> Loc:
    """Location of the assignment of a phi's value; of the phi where nothing tells."""
    line = _assignment_line(value, inferer)
    return phi.loc.location if line is None else line.location


def _assignment_line(value: ir.Var, inferer: Inferer) -> ir.Loc | None:
    return inferer.typevars[value.name].define_loc


def _join_hint(first: types.Type, second: types.Type) -> str:
    tiles = [t.tile for t in (first, second) if isinstance(t, RuntimeType)]
    shaped = [tile for tile in tiles if tile.shape]
    if len(shaped) == 1 and not shaped[0].is_pointer:
        return f"start with a tile: bn.zeros({shaped[0].shape}, bn.{shaped[0].dtype})"
    return ""


def _show(of: types.Type) -> str:
    if isinstance(of, StructureType) and of.kind is Number:
        return describe(stand_in(of))
    if isinstance(of, StructureType):
        inner = ", ".join(map(_show, of.parts))
        if issubclass(of.kind, tuple):
            return f"a {'tuple' if of.kind is tuple else of.kind.__name__} ({inner})"
        return getattr(of.kind, "noun", "a slice")
    return str(of).removeprefix("constant ")
