"""The structure of the package in numbers: what a newcomer has to find the way through.

    python tests/structure.py

Prints lines, modules, statements, long functions, modules with one importer, rooms by size, and
cycles of imports.  Imports for type checking count; functions that import do too.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONG_FUNCTION = 40  # lines
APART = "emulator"  # counted by itself: it knows nothing of the rest


@dataclass(frozen=True)
class Source:
    """One module of the package.  name: as imported, without the leading "blocknumba."."""

    name: str
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The package that it is a module of."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def statements(self) -> int:
        return sum(isinstance(node, ast.stmt) for node in ast.walk(self.tree))

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in ast.walk(self.tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@dataclass(frozen=True)
class Structure:
    """Modules by name."""

    modules: Mapping[str, Source]

    @staticmethod
    def of(root: Path = ROOT) -> Structure:
        """The package below a folder."""
        found = {}
        for path in sorted((root / "blocknumba").rglob("*.py")):
            parts = path.relative_to(root / "blocknumba").with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Source(name, path.read_text(), is_package)
        return Structure(found)

    @property
    def ours(self) -> list[Source]:
        """All modules but the emulator's."""
        return [module for module in self.modules.values()
                if module.name.partition(".")[0] != APART]

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """What each module imports of the others."""
        return {name: set(self._imported(module)) - {name}
                for name, module in self.modules.items()}

    def _imported(self, module: Source) -> Iterator[str]:
        for node in ast.walk(module.tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                # a module may be imported by its name, or a name from it
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if self._own(name) in self.modules else node.module
                         for name in names]
            for name in names:
                if self._own(name) in self.modules and name.startswith("blocknumba."):
                    yield self._own(name)

    @staticmethod
    def _own(name: str) -> str:
        return name.removeprefix("blocknumba.")

    @property
    def long_functions(self) -> list[str]:
        return [f"{module.name}.{function.name}" for module in self.ours
                for function in module.functions
                if function.end_lineno - function.lineno >= LONG_FUNCTION]

    @property
    def with_one_importer(self) -> list[str]:
        counts = Counter(name for imported in self.imports.values() for name in imported)
        return [module.name for module in self.ours
                if counts[module.name] == 1 and not module.is_package]

    @property
    def rooms(self) -> dict[str, list[Source]]:
        """The modules of each package, its own __init__ among them."""
        found = defaultdict(list)
        for module in self.ours:
            found[module.room or "blocknumba"].append(module)
        return dict(found)

    @property
    def cycles(self) -> list[list[str]]:
        """Groups of modules outside of the emulator that import each other."""
        names = {module.name for module in self.ours}
        graph = {name: self.imports[name] & names for name in names}
        reached = {name: _reached(graph, name) for name in graph}
        groups = {frozenset({name} | {other for other in reached[name] if name in reached[other]})
                  for name in graph if name in reached[name]}
        return sorted(map(sorted, groups))

    def __str__(self) -> str:
        ours = self.ours
        rooms = sorted(self.rooms.items(), key=lambda room: -len(room[1]))
        return "\n".join((
            f"without the {APART}: {sum(module.lines for module in ours)} lines, "
            f"{len(ours)} modules, {sum(module.statements for module in ours)} statements",
            f"functions of {LONG_FUNCTION} lines and more: {len(self.long_functions)}",
            f"modules with one importer: {len(self.with_one_importer)}",
            "rooms:",
            *(f"  {name}: {len(modules)} modules, {sum(module.lines for module in modules)} lines"
              for name, modules in rooms),
            f"cycles of imports: {self.cycles or 'none'}"))


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """The modules that a module imports, or that what it imports does."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


if __name__ == "__main__":
    print(Structure.of())
