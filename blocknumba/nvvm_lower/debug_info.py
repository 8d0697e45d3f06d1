"""Source lines in the machine code, as metadata of the NVVM IR."""

from __future__ import annotations

import os

from blocknumba.errors import UNKNOWN, Loc
from blocknumba.nvvm_lower.llvm import Module


class DebugInfo:
    """The debug metadata of one kernel: lines only, no variables.

    Source: NVVM IR Specification, "Source Level Debugging Support"; DebugDirectivesOnly is what
    makes `.loc` lines without a debugger's sections.
    """

    def __init__(self, module: Module, kernel: str, loc: Loc):
        self._module = module
        self._unit = module.node(
            "!DICompileUnit(language: DW_LANG_C_plus_plus, "
            f'file: {self._file(loc.file)}, producer: "blocknumba", isOptimized: true, '
            "runtimeVersion: 0, emissionKind: DebugDirectivesOnly)", distinct=True)
        module.name_node("llvm.dbg.cu", self._unit)
        module.name_node("llvm.module.flags", module.node('!{i32 2, !"Debug Info Version", i32 3}'))
        self._signature = module.node(f"!DISubroutineType(types: {module.node('!{null}')})")
        self._known: dict[Loc, str] = {}
        self._functions: dict[tuple[str, str], str] = {}
        self._kernel = kernel
        self.subprogram = self._function(loc)
        self._outermost = self.node(loc) or self._module.node(
            f"!DILocation(line: 0, column: 0, scope: {self.subprogram})")

    def location(self, loc: Loc) -> str:
        """The suffix of the instructions that come from a place in the source."""
        if loc is UNKNOWN:
            return f", !dbg {self._outermost}"
        if loc not in self._known:
            self._known[loc] = f", !dbg {self.node(loc)}"
        return self._known[loc]

    def node(self, loc: Loc) -> str:
        """The metadata node of a place; a place in an inlined function says where it was called."""
        if loc is UNKNOWN:
            return ""
        if loc.caller is None:
            scope, called_at = self.subprogram, ""
        else:
            scope = self._function(loc)
            called_at = f", inlinedAt: {self.node(loc.caller)}"
        return self._module.node(f"!DILocation(line: {loc.line}, column: {max(loc.column, 0) + 1}, "
                                 f"scope: {scope}{called_at})", distinct=loc.caller is not None)

    def _file(self, path: str) -> str:
        folder, name = os.path.split(path)
        return self._module.node(f'!DIFile(filename: "{_quoted(name or "unknown")}", '
                                 f'directory: "{_quoted(folder)}")')

    def _function(self, loc: Loc) -> str:
        key = loc.file, loc.function
        if key not in self._functions:
            name = _quoted(loc.function or self._kernel)
            file = self._file(loc.file)
            self._functions[key] = self._module.node(
                f'!DISubprogram(name: "{name}", linkageName: "{name}", scope: {file}, '
                f"file: {file}, line: {loc.line}, type: {self._signature}, isLocal: false, "
                f"isDefinition: true, scopeLine: {loc.line}, isOptimized: true, "
                f"unit: {self._unit})", distinct=True)
        return self._functions[key]


def _quoted(text: str) -> str:
    """text as the inside of an LLVM string."""
    return "".join(c if c.isprintable() and c not in '"\\' and c.isascii()
                   else "".join(f"\\{byte:02X}" for byte in c.encode()) for c in text)
