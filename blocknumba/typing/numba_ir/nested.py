"""Functions that are defined inside a kernel: what they keep of the scope around them.

A nested function reads a variable of its scope when it is called, as Python does.  A variable that
never changes once the function is made is read when it is made instead: then the function may
outlive its scope, as the results of factories do.  What a function keeps is its defaults and those
variables; at run time it is the structure of their values.
"""

from __future__ import annotations

import dis
import types
from dataclasses import dataclass, replace
from functools import lru_cache

from numba.core import ir

from blocknumba.typing.numba_ir.graph import Graph, Label

# Expressions: a nested function, and one of the values that it keeps.
MAKE, KEPT = "make_function", "kept"


@dataclass(frozen=True, slots=True)
class Nested:
    """A function as it is written inside another one.

    globals: of the function around it.
    defaults: number of parameters with a default that can be given by position.
    keywords: names of the keyword-only parameters with a default.
    values: names of the variables that are read when it is made.
    cells: names of the variables that are read when it is called.
    The values kept are those of the defaults, then of the keywords, then of `values`.
    """

    code: types.CodeType
    globals: dict[str, object]
    defaults: int
    keywords: tuple[str, ...]
    values: tuple[str, ...]
    cells: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nested) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self.code)

    @property
    def _key(self) -> tuple:
        return (self.code, id(self.globals), self.defaults, self.keywords, self.values, self.cells)


def make_function(nested: Nested, kept: tuple[ir.Var, ...], cells: tuple[ir.Var, ...],
                  loc: ir.Loc) -> ir.Expr:
    """The expression that makes a nested function."""
    return ir.Expr(MAKE, loc, nested=nested, kept=kept, cells=cells)


def kept_value(function: ir.Var, index: int, loc: ir.Loc) -> ir.Expr:
    """The expression for one of the values that a function keeps."""
    return ir.Expr(KEPT, loc, value=function, index=index)


def is_made(statement: ir.Stmt) -> bool:
    """Whether a statement makes a nested function."""
    return (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)
            and statement.value.op == MAKE)


@lru_cache(maxsize=4096)
def written_cells(code: types.CodeType) -> frozenset[str]:
    """The variables of enclosing functions that a function, or one inside of it, assigns."""
    written = {i.argval for i in dis.get_instructions(code)
               if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            written |= written_cells(constant)
    return frozenset(written & set(code.co_freevars))


def keep_values(node: ir.Expr, names: frozenset[str]) -> None:
    """Let a nested function keep the values of some of its cells."""
    nested = node.nested
    moved = [(name, cell) for name, cell in zip(nested.cells, node.cells) if name in names]
    rest = [(name, cell) for name, cell in zip(nested.cells, node.cells) if name not in names]
    node._kws["nested"] = replace(nested, values=nested.values + tuple(n for n, _ in moved),
                                  cells=tuple(n for n, _ in rest))
    node._kws["kept"] = node.kept + tuple(cell for _, cell in moved)
    node._kws["cells"] = tuple(cell for _, cell in rest)


def keep_settled_values(function: types.FunctionType, code: types.CodeType,
                        blocks: dict[Label, ir.Block], entry: Label) -> None:
    """Let each nested function keep the variables that do not change once it is made.

    These are assigned in one statement, outside of loops, which comes before on every path.
    Those of the functions around this one are constants.
    function, code: this one, and its code as it was written.
    """
    made = [(label, i, s.value) for label, block in blocks.items()
            for i, s in enumerate(block.body) if is_made(s)]
    if not made:
        return
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    around = {name for name, cell in cells if is_set(cell)}
    graph = Graph(blocks, entry)
    looping = {label for loop in graph.loops.values() for label in loop.body}
    changing = {name for constant in code.co_consts if isinstance(constant, types.CodeType)
                for name in written_cells(constant)}
    sites: dict[str, list[tuple[Label, int]]] = {}
    for label in graph.order:
        for i, statement in enumerate(blocks[label].body):
            if isinstance(statement, ir.Assign):
                sites.setdefault(statement.target.name, []).append((label, i))
    for label, index, node in made:
        if label in graph.index:
            settled = {name for name in set(node.nested.cells) - changing
                       if name in around and not sites.get(name)
                       or _comes_before(sites.get(name, ()), (label, index), graph, looping)}
            keep_values(node, frozenset(settled))


def forget_cells(blocks: dict[Label, ir.Block]) -> None:
    """Drop the cells of nested functions once all calls are inlined."""
    for block in blocks.values():
        for statement in block.body:
            if is_made(statement):
                statement.value._kws["cells"] = ()


def is_set(cell: types.CellType) -> bool:
    """Whether a variable of a function around another one has a value."""
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _comes_before(sites: list[tuple[Label, int]], made: tuple[Label, int], graph: Graph,
                  looping: set[Label]) -> bool:
    """Whether a variable has one assignment, outside of loops, before a function is made."""
    if len(sites) != 1 or sites[0][0] in looping:
        return False
    (label, index), (at, made_index) = sites[0], made
    return index < made_index if label == at else graph.dominates(label, at)
