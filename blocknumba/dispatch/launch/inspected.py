"""The code of a kernel, for who looks at it: texts at each level, and a table in notebooks.

A module of its own: none of it has to do with launching, which Kernel is about.
"""

from __future__ import annotations

from blocknumba.dispatch.launch.specialize import Specialization
from blocknumba.tables import html_table


class Inspected:
    """The part of a kernel that shows its code."""

    __slots__ = ()

    def inspect_tile(self) -> dict[Specialization, str]:
        """The tile IR of all code so far."""
        return self._texts("tile")

    def inspect_llvm(self) -> dict[Specialization, str]:
        """The NVVM IR of all code so far, under Numba's name."""
        return self._texts("nvvm")

    def inspect_asm(self) -> dict[Specialization, str]:
        """The PTX of all code so far, under Numba's name."""
        return self._texts("ptx")

    def inspect_sass(self) -> dict[Specialization, str]:
        """The machine code of all code so far, under Numba's name; not of interpreted kernels."""
        return self._texts("sass")

    def _repr_html_(self) -> str:
        """A table for notebooks: each compilation so far, its device and what it was made for."""
        return html_table(("device", "arguments, constants and options"), (
            (compiled.device, compiled.made_for) for compiled in self._compiled.values()),
            repr(self))

    def _texts(self, level: str) -> dict[Specialization, str]:
        kernels = (self, *self.nested.kernels.values())
        return {specialization: compiled.asm[level] for kernel in kernels
                for specialization, compiled in kernel._compiled.items() if level in compiled.asm}
