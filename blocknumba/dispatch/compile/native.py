"""Native code of a kernel for the CPU, with all that its launches need."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from blocknumba.cpu_lower.printing import PrintOp
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import Loaded, assemble, assembly_text
from blocknumba.dispatch.compile.compiled import located, numbered
from blocknumba.errors import Loc
from blocknumba.tile_ir.ir.function import Function, Parameter
from blocknumba.tile_ir.ir.opdef import attribute

# what an entry on disk must hold, and of which types
_FIELDS = {"symbol": str, "failures": list, "prints": list, "locations": list, "numbers": list,
           "versions": int}


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

    llvm_ir: what it was made of.  code: an object file.  symbol: of its function.
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

    def fields(self) -> dict[str, object]:
        """All but texts, code and parameters, for JSON."""
        locations, numbers = numbered(stop.loc for stop in self.stops)
        return {"symbol": self.symbol, "versions": self.versions,
                "failures": [[s.kind, s.message, list(s.shape)] for s in self.stops],
                "prints": [[p.prefix, p.hexadecimal, [[n, list(s)] for n, s in p.operands]]
                           for p in self.prints],
                "locations": locations, "numbers": numbers}

    @staticmethod
    def of_fields(fields: Mapping[str, object], llvm_ir: str, code: bytes,
                  parameters: tuple[Parameter, ...]) -> NativeCode:
        """What `fields` wrote.  Errors: KeyError, TypeError or ValueError for anything else."""
        for name, accepted in _FIELDS.items():
            if not isinstance(fields[name], accepted):
                raise TypeError(name)
        locs = located(fields["locations"], fields["numbers"])
        stops = tuple(StopReason(str(kind), str(message), tuple(shape), loc)
                      for (kind, message, shape), loc in zip(fields["failures"], locs, strict=True))
        prints = tuple(PrintOp(str(prefix), bool(hexadecimal),
                               tuple((str(n), tuple(s)) for n, s in operands))
                       for prefix, hexadecimal, operands in fields["prints"])
        return NativeCode(llvm_ir, code, fields["symbol"], parameters, stops, prints,
                          fields["versions"])


def native_code(fn: Function, disjoint: bool, times_ms: dict[str, float]) -> NativeCode | None:
    """The native code of a function; None where it has to be interpreted.

    disjoint: no array that it stores to shares memory with another.
    """
    # here and not above: kernels that come from the disk need none of it
    from blocknumba.cpu_lower.kernel import lower, unsupported
    from blocknumba.dispatch.compile.pipeline import timed

    if unsupported(fn):
        return None
    with timed("llvm", times_ms):
        lowered = lower(fn, host(), disjoint=disjoint)
    with timed("native", times_ms):
        code = assemble(lowered.llvm_ir, host())
    stops = tuple(StopReason(
        f.kind, f.op.attrs["message"] if f.kind == "assert" else "",
        f.op.condition.type.shape if f.kind == "assert" else (),
        fn.loc if f.op is None else f.op.loc) for f in lowered.failures)
    prints = tuple(PrintOp(op.attrs["prefix"], attribute(op, "hexadecimal"), tuple(
        (str(value.type.dtype), value.type.shape) for value in op.operands))
        for op in lowered.prints)
    return NativeCode(lowered.llvm_ir, code, lowered.name, lowered.parameters, stops, prints,
                      lowered.versions)
