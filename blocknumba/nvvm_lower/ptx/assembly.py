"""Assembly: one row of the table of inline PTX.

    Assembly("min.NaN.f32", "min.NaN.f32 $0, $1, $2;", ("float",), ("float", "float"), "min")
    call float asm "min.NaN.f32 $0, $1, $2;", "=f,f,f"(float %v1, float %v2) nounwind readnone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blocknumba.nvvm_lower.target import Capability

# Addresses in assembly: the pointer types that it takes, by the state space that the text names.
POINTER = {"global": "i8 addrspace(1)*", "generic": "i8*"}
# Source: NVVM IR Specification, "Inline Assembler Expressions", supported constraints.
_CONSTRAINT = {"i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d",
               **dict.fromkeys(POINTER.values(), "l")}


@dataclass(frozen=True, slots=True)
class Assembly:
    """Inline PTX with its operands.

    name: for tests and messages.
    text: $0, $1, ... are the results and then the operands; braces open a scope of registers.
    results, operands: LLVM types.
    tied: operands[i] and results[j] share a register, as pairs (i, j).
    section: of the PTX ISA manual, by its instruction.
    needs: the capability that a target must have, beyond the oldest's.
    has_effect: it must be executed exactly as often as it is written, in order.
    touches_memory: loads and stores may not move across it.
    converges: all threads of a warp execute it together.
    """

    name: str
    text: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    section: str
    tied: tuple[tuple[int, int], ...] = ()
    needs: Capability | None = None
    has_effect: bool = False
    touches_memory: bool = False
    converges: bool = False
    _head: str = field(init=False, repr=False, compare=False)
    _tail: str = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        effect = "sideeffect " if self.has_effect else ""
        text = self.text.replace("\n", "\\0A")
        object.__setattr__(
            self, "_head", f'call {self.result_type} asm {effect}"{text}", "{self.constraints}"(')
        attributes = "nounwind" + (" convergent" if self.converges else "")
        attributes += "" if self.has_effect else " readnone"
        object.__setattr__(self, "_tail", f") {attributes}")

    @property
    def result_type(self) -> str:
        """The LLVM type of the call."""
        if not self.results:
            return "void"
        return self.results[0] if len(self.results) == 1 else f"{{{', '.join(self.results)}}}"

    @property
    def constraints(self) -> str:
        """The constraint string: results, operands, clobbers."""
        tied = dict(self.tied)
        letters = [f"={_CONSTRAINT[result]}" for result in self.results]
        letters += [str(tied[i]) if i in tied else _CONSTRAINT[type_]
                    for i, type_ in enumerate(self.operands)]
        return ",".join(letters + ["~{memory}"] * self.touches_memory)

    def call(self, operands: Sequence[str]) -> str:
        """The text of a call of this with these values."""
        assert len(operands) == len(self.operands), f"{self.name}: {len(operands)} operands"
        typed = ", ".join([f"{type_} {value}" for type_, value in zip(self.operands, operands)])
        return f"{self._head}{typed}{self._tail}"
