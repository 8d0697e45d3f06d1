"""Scopes: names inside nested braces."""

from __future__ import annotations

import re

from blocknumba.emulator.syntax import Label, Register, Variable

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})\Z")


class Scope:
    """The names declared between one pair of braces, and the scope around it.

    register_types: the file of registers that declarations add to; a register's slot is its index.
    """

    def __init__(self, outer: Scope | None, register_types: list[str],
                 names: dict[str, Variable] | None = None):
        self.outer, self.register_types = outer, register_types
        self.names: dict[str, Register | Variable] = dict(names or {})
        self.labels: dict[str, Label] = {}
        self.ranges: dict[str, tuple[str, int, int]] = {}

    def declare(self, name: str, type_: str) -> None:
        """Declare one register."""
        self.names[name] = Register(len(self.register_types), type_, name)
        self.register_types.append(type_)

    def declare_range(self, prefix: str, type_: str, count: int) -> None:
        """Declare prefix0 up to prefix(count - 1)."""
        self.ranges[prefix] = (type_, len(self.register_types), count)
        self.register_types += [type_] * count

    def find(self, name: str) -> Register | Variable | None:
        """The register or variable of a name, or None."""
        scope: Scope | None = self
        numbered = _NUMBERED.match(name)
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            if numbered and numbered[1] in scope.ranges:
                type_, first, count = scope.ranges[numbered[1]]
                index = int(numbered[2])
                if index < count:
                    register = Register(first + index, type_, name)
                    scope.names[name] = register
                    return register
            scope = scope.outer
        return None

    def find_label(self, name: str) -> Label | None:
        """The label of a name, seen from here; ask when the function has been read."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.outer
        return None
