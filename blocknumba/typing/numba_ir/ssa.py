"""Static single assignment form of Numba IR, closed at loop exits."""

from __future__ import annotations

import itertools
from collections import defaultdict

from numba.core import ir

from blocknumba.errors import BlockNameError
from blocknumba.typing.numba_ir import renaming
from blocknumba.typing.numba_ir.bytecode import DELETED, SAVED
from blocknumba.typing.numba_ir.graph import Graph, Label


def construct_ssa(blocks: dict[int, ir.Block], graph: Graph) -> None:
    """Give every variable one assignment, adding phis where paths meet.

    A variable that is assigned in a loop and read after it gets a phi at each exit of the loop
    too, so that no value leaves a loop but through phis.  Numba's own pass takes time quadratic
    in the number of statements; this one is linear in practice.
    Errors: BlockNameError for a variable that is read where no path has assigned it.
    Source: Cytron et al., "Efficiently Computing Static Single Assignment Form".
    """
    sites, unassigned = _phi_sites(blocks, graph)
    _Renamer(blocks, graph, sites, unassigned).run()


def phis(block: ir.Block) -> list[ir.Assign]:
    """The phis at the start of a block."""
    return list(itertools.takewhile(is_phi, block.body))


def is_phi(statement: ir.Stmt) -> bool:
    """Whether a statement is a phi."""
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            and statement.value.op == "phi")


def _phi_sites(blocks: dict[int, ir.Block],
               graph: Graph) -> tuple[dict[Label, list[str]], set[str]]:
    """Variables that need phis, by block; and those that some path reads before it assigns them."""
    exposed, assigned = {}, {}
    for label in graph.order:
        exposed[label], assigned[label] = _exposed_and_assigned(blocks[label])
    live = _live_in(graph, exposed, assigned)
    crossing = set().union(*live.values())
    assigners: dict[str, set[Label]] = defaultdict(set)
    for label in graph.order:
        for name in assigned[label] & crossing:
            assigners[name].add(label)
    wanted: dict[str, set[Label]] = defaultdict(set)
    for loop in graph.loops.values():
        inside = set().union(*(assigned[label] for label in loop.body))
        for label in loop.exits:
            for name in inside & live[label]:
                wanted[name].add(label)
    sites: dict[Label, list[str]] = {label: [] for label in graph.order}
    for name, labels in assigners.items():
        for label in _iterated_frontier(graph, labels, wanted[name]):
            if name in live[label]:
                sites[label].append(name)
    return sites, live[graph.entry]


def _iterated_frontier(graph: Graph, assigners: set[Label], wanted: set[Label]) -> set[Label]:
    placed = set(wanted)
    pending = [*assigners, *wanted]
    while pending:
        for label in graph.frontier[pending.pop()]:
            if label not in placed:
                placed.add(label)
                pending.append(label)
    return placed


def _exposed_and_assigned(block: ir.Block) -> tuple[set[str], set[str]]:
    exposed, assigned = set(), set()
    for statement in block.body:
        exposed.update(v.name for v in renaming.uses(statement) if v.name not in assigned)
        if isinstance(statement, ir.Assign):
            assigned.add(statement.target.name)
    return exposed, assigned


def _live_in(graph: Graph, exposed: dict[Label, set[str]],
             assigned: dict[Label, set[str]]) -> dict[Label, set[str]]:
    live = {label: set(exposed[label]) for label in graph.order}
    changed = True
    while changed:
        changed = False
        for label in reversed(graph.order):
            before = len(live[label])
            for target in graph.successors[label]:
                live[label] |= live[target] - assigned[label]
            changed = changed or len(live[label]) != before
    return live


class _Renamer:
    """Walks the dominator tree and renames each assignment of what is assigned repeatedly."""

    def __init__(self, blocks: dict[int, ir.Block], graph: Graph, sites: dict[Label, list[str]],
                 unassigned: set[str]):
        self._blocks, self._graph, self._sites = blocks, graph, sites
        self._versions: dict[str, int] = {}
        self._current: dict[str, ir.Var] = {}
        self._phis: dict[Label, list[tuple[str, ir.Expr]]] = {}
        counts: dict[str, int] = defaultdict(int)
        for label in graph.order:
            for name in sites[label]:
                counts[name] += 1
            for statement in blocks[label].body:
                if isinstance(statement, ir.Assign):
                    counts[statement.target.name] += 1
        self._repeated = {name for name, count in counts.items() if count > 1} | unassigned

    def run(self) -> None:
        """Rename everything that the entry leads to."""
        self._place_phis()
        pending: list[tuple[Label, dict[str, ir.Var]]] = [(self._graph.entry, {})]
        while pending:
            label, current = pending.pop()
            self._current = dict(current)
            self._rename_block(label)
            for target in self._graph.successors[label]:
                self._fill_phis(label, target)
            pending += [(child, self._current) for child in reversed(self._graph.children[label])]

    def _place_phis(self) -> None:
        for label, names in self._sites.items():
            block = self._blocks[label]
            self._phis[label] = []
            placed = []
            for name in sorted(names):
                phi = ir.Expr.phi(block.loc)
                self._phis[label].append((name, phi))
                placed.append(ir.Assign(phi, ir.Var(block.scope, name, block.loc), block.loc))
            block.body = placed + block.body

    def _rename_block(self, label: Label) -> None:
        block = self._blocks[label]
        body = []
        for statement in block.body:
            if _is(statement, DELETED):
                self._current.pop(statement.target.name, None)
                continue
            if is_phi(statement):
                statement = ir.Assign(statement.value, self._write(statement.target), statement.loc)
            elif self._is_touched(statement):
                self._require_assigned(statement)
                statement = renaming.rename_statement(statement, self._read, self._write)
            body.append(statement)
        block.body = body

    def _is_touched(self, statement: ir.Stmt) -> bool:
        if isinstance(statement, ir.Assign) and statement.target.name in self._repeated:
            return True
        return any(v.name in self._repeated for v in renaming.uses(statement))

    def _require_assigned(self, statement: ir.Stmt) -> None:
        # what a variable holds, if anything, while another has its name
        if _is(statement, SAVED) and statement.value.value.name not in self._current:
            statement.value = ir.Expr.undef(statement.loc)
        for variable in renaming.uses(statement):
            if variable.name in self._repeated and variable.name not in self._current:
                name = renaming.user_name(variable.name)
                raise BlockNameError(f"name {name!r} is used before it is assigned",
                                     loc=renaming.read_location(statement, variable))

    def _read(self, variable: ir.Var) -> ir.Var:
        return self._current[variable.name] if variable.name in self._repeated else variable

    def _write(self, variable: ir.Var) -> ir.Var:
        name = variable.name
        if name not in self._repeated:
            return variable
        version = self._versions[name] = self._versions.get(name, 0) + 1
        renamed = ir.Var(variable.scope, f"{name}#{version}", variable.loc)
        self._current[name] = renamed
        return renamed

    def _fill_phis(self, source: Label, target: Label) -> None:
        for name, phi in self._phis[target]:
            phi.incoming_blocks.append(source)
            phi.incoming_values.append(self._current.get(name, ir.UNDEFINED))


def _is(statement: ir.Stmt, operation: str) -> bool:
    """Whether a statement assigns an expression of this operation."""
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            and statement.value.op == operation)
