"""Native code of a kernel for the CPU, with all that its launches need."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields

from blocknumba.cpu_lower.printing import PrintOp
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import Loaded, assembly_text, undefined
from blocknumba.errors import Loc
from blocknumba.tables import html_table
from blocknumba.tile_ir.ir.function import Parameter

@dataclass(frozen=True, slots=True)
class StopReason:
    """A reason for which a program stops; loc: of the op.

    kind: as of cpu_lower's Failure.  message: of an assertion.  shape: of its condition.
    """

    kind: str
    message: str
    shape: tuple[int, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class NativeStats:
    """Facts on native code.

    device: the processor and its vectors.  code_bytes: of the object file.
    versions: regions that were written twice, with and without masks.
    vector_loads, vector_stores: accesses of whole vectors in the source, in all versions.
    masked: loads and stores of vectors under a mask.  gathers: loads and stores of elements that
        are not side by side.
    advice: lines on what is slow as the kernel is written, and what to write instead.
    """

    device: str
    code_bytes: int
    versions: int
    vector_loads: int
    vector_stores: int
    masked: int
    gathers: int
    advice: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_table((), ((field.name.replace("_", " "), getattr(self, field.name))
                               for field in fields(self)))


@dataclass(frozen=True)
class NativeCode:
    """Machine code for this processor.

    llvm_ir: its source.  code: an object file.  symbol: of its function.
    parameters: in the order of their slots.
    stops: stops[n - 1] is what a result of n means.  prints: the ops that print, by number.
    versions: regions that were written with and without masks.
    """

    llvm_ir: str
    code: bytes
    symbol: str
    parameters: tuple[Parameter, ...]
    stops: tuple[StopReason, ...]
    prints: tuple[PrintOp, ...]
    versions: int

    @functools.cached_property
    def loaded(self) -> Loaded:
        """The code in this process."""
        if undefined(self.llvm_ir):
            # here and not above: only scalar functions need it, few of which call what it defines
            from numba.core.registry import cpu_target

            assert cpu_target.target_context, "making it defines the symbols of Numba's library"
        return Loaded(self.code, self.llvm_ir)

    @property
    def assembly(self) -> str:
        """The code in the processor's assembly language."""
        return assembly_text(self.llvm_ir, host())

    @property
    def stats(self) -> NativeStats:
        """Facts on the code, counted in its LLVM IR."""
        text = self.llvm_ir
        return NativeStats(
            str(host()), len(self.code), self.versions,
            text.count("= load <"), text.count("  store <"),
            len(re.findall(r"call [^@]*@llvm\.masked\.(?:load|store)", text)),
            len(re.findall(r"call [^@]*@llvm\.masked\.(?:gather|scatter)", text)))
