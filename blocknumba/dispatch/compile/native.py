"""Native code of a kernel for the CPU, with all that its launches need."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from blocknumba.cpu_lower.printing import PrintOp
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import Loaded, assembly_text
from blocknumba.errors import Loc
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
        return Loaded(self.code, host())

    @property
    def assembly(self) -> str:
        """The code in the processor's assembly language."""
        return assembly_text(self.llvm_ir, host())
