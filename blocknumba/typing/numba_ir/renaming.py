"""Copies of Numba IR statements with other variables, labels and locations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from numba.core import ir

from blocknumba.errors import Loc

_VARIABLE_SLOTS = {
    ir.SetItem: ("target", "index", "value"),
    ir.StaticSetItem: ("target", "index_var", "value"),
    ir.Raise: ("exception",),
    ir.Return: ("value",),
    ir.Branch: ("cond",),
    ir.Jump: (),
    ir.Del: (),
}

Rename = Callable[[ir.Var], ir.Var]


def user_name(name: str) -> str:
    """The name the user gave a variable, from the one it has in Numba IR."""
    base = name.partition("@")[0].partition("#")[0]
    stem, _, version = base.rpartition(".")
    return stem if stem and version.isdigit() else base


def owner(name: str) -> int | None:
    """The number of the inlined call that a variable belongs to; None for the kernel itself."""
    parts = name.split("@")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


def is_temporary(name: str) -> bool:
    """Whether a variable is a slot of Python's evaluation stack."""
    return name.startswith("$")


def uses(statement: ir.Stmt) -> list[ir.Var]:
    """The variables that a statement reads."""
    if isinstance(statement, ir.Assign):
        value = statement.value
        if isinstance(value, ir.Var):
            return [value]
        return operands(value) if isinstance(value, ir.Expr) else []
    slots = _VARIABLE_SLOTS.get(type(statement), ())
    return [v for slot in slots if isinstance(v := getattr(statement, slot), ir.Var)]


def operands(expression: ir.Expr) -> list[ir.Var]:
    """The variables that an expression reads."""
    found: list[ir.Var] = []
    for value in expression._kws.values():
        _collect(value, found)
    return found


def read_location(statement: ir.Stmt, variable: ir.Var) -> Loc:
    """Location where a statement reads a variable: the name itself, if that is in the same line."""
    whole = statement.loc.location
    name = getattr(variable.loc, "location", whole)
    if (name.file, name.line) != (whole.file, whole.line):
        return whole
    return replace(whole, column=name.column, end_column=name.end_column)


def rename_statement(statement: ir.Stmt, read: Rename, write: Rename,
                     label: Callable[[int], int] = lambda label: label,
                     location: Callable[[ir.Loc], ir.Loc] = lambda loc: loc) -> ir.Stmt:
    """A copy of a statement.

    read, write: the variables to read and to assign instead of the given ones.
    label: the new label of a jump's target; location: the new location.
    """
    loc = location(statement.loc)
    if isinstance(statement, ir.Assign):
        value = statement.value
        if isinstance(value, ir.Var):
            value = read(value)
        elif isinstance(value, ir.Expr):
            value = rename_expression(value, read, location)
        return ir.Assign(value, write(statement.target), loc)
    if isinstance(statement, ir.Jump):
        return ir.Jump(label(statement.target), loc)
    if isinstance(statement, ir.Branch):
        targets = label(statement.truebr), label(statement.falsebr)
        return ir.Branch(read(statement.cond), *targets, loc)
    if isinstance(statement, ir.Return):
        return ir.Return(read(statement.value), loc)
    if isinstance(statement, ir.SetItem):
        return ir.SetItem(read(statement.target), read(statement.index), read(statement.value), loc)
    assert isinstance(statement, ir.Raise), statement
    return ir.Raise(statement.exception and read(statement.exception), loc)


def rename_expression(expression: ir.Expr, read: Rename,
                      location: Callable[[ir.Loc], ir.Loc] = lambda loc: loc) -> ir.Expr:
    """A copy of an expression."""
    slots = {name: _rename(value, read) for name, value in expression._kws.items()}
    return ir.Expr(expression.op, location(expression.loc), **slots)


def _rename(value: object, read: Rename) -> object:
    if isinstance(value, ir.Var):
        return read(value)
    if isinstance(value, list):
        return [_rename(item, read) for item in value]
    if isinstance(value, tuple):
        return tuple([_rename(item, read) for item in value])
    return value


def _collect(value: object, found: list[ir.Var]) -> None:
    if isinstance(value, ir.Var):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
