"""Decoding of one instruction: readers, writers and steps over a cohort, for the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.errors import UnknownInstructionError
from blocknumba.emulator.syntax import (
    Address,
    Function,
    Group,
    Immediate,
    Instruction,
    Inverted,
    Label,
    Operand,
    Pair,
    Program,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
)
from blocknumba.emulator.values import container_of, dtype_of, literal

Reader = Callable[[Cohort], np.ndarray]
Writer = Callable[[Cohort, np.ndarray], None]
Step = Callable[[Cohort], "bool | None"]  # true: stop here, the cohort waits or has ended


@dataclass(frozen=True, slots=True)
class Site:
    """One instruction in its program, as decoders see it.

    pc: its program counter.
    reconvergence: program counter where lanes that diverge here reconverge.
    pcs: program counter of each instruction of the function, and of its end.
    entries: program counter of each function's first instruction.
    specials: the special registers.
    """

    instruction: Instruction
    program: Program
    function: Function
    pc: int
    reconvergence: int
    pcs: Sequence[int]
    entries: dict[str, int]
    specials: dict[str, Callable[[Cohort], np.ndarray]] = field(repr=False)

    @property
    def opcode(self) -> tuple[str, ...]:
        """The opcode with its modifiers, split at the dots."""
        return self.instruction.opcode

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands, destinations first."""
        return self.instruction.operands

    @property
    def exit_pc(self) -> int:
        """Program counter of the function's end."""
        return self.pcs[-1]

    def pc_of(self, label: Label) -> int:
        """Program counter of a label of the function."""
        return self.pcs[label.index]

    def has(self, *modifiers: str) -> bool:
        """Whether the opcode has one of these modifiers."""
        return any(modifier in self.opcode for modifier in modifiers)

    def refuse(self, message: str, *given: object) -> UnknownInstructionError:
        """The error for an instruction that no decoder accepts."""
        return UnknownInstructionError(f"{self.instruction.name}: {message.format(*given)}")

    # ---- reading

    def read(self, operand: Operand, type_: str) -> Reader:
        """Reader of an operand as a type."""
        if isinstance(operand, Register):
            return _read_register(operand, type_)
        if isinstance(operand, Immediate):
            value = literal(operand.value, operand.bits, type_)
            return lambda cohort: value
        if isinstance(operand, Special):
            return self._read_special(operand, type_)
        if isinstance(operand, Inverted):
            inner = self.read(operand.operand, type_)
            if type_ == "pred":
                return lambda cohort: ~inner(cohort)
            return lambda cohort: -inner(cohort)
        if isinstance(operand, Symbol):
            return self._read_symbol(operand, 0, type_)
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            return self._read_symbol(operand.base, operand.offset, type_)
        raise self.refuse("given {}, accepted a register or a literal", operand)

    def _read_special(self, operand: Special, type_: str) -> Reader:
        special = self.specials.get(operand.name)
        if special is None:
            raise self.refuse("given the register {}, accepted {}", operand.name,
                              ", ".join(sorted(self.specials)))
        dtype = dtype_of(type_)
        return lambda cohort: special(cohort).astype(dtype)

    def _read_symbol(self, symbol: Symbol, offset: int, type_: str) -> Reader:
        variable = symbol.target
        if not isinstance(variable, Variable):
            raise self.refuse("given the name {}, which is not declared", symbol.name)
        dtype = dtype_of(type_)
        return lambda cohort: (cohort.launch.address_of(variable, cohort) + offset).astype(dtype)

    def address(self, operand: Operand) -> Reader:
        """Reader of [base + offset], as int64 of shape (1,) or (lanes,)."""
        if not isinstance(operand, Address):
            raise self.refuse("given {}, accepted an address", operand)
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            read = _read_register(base, "u64" if base.type.endswith("64") else "u32")
            return lambda cohort: read(cohort).astype(np.int64) + offset
        if isinstance(base, Symbol):
            return self._read_symbol(base, offset, "s64")
        if isinstance(base, Immediate):
            value = np.array([int(base.value) + offset], np.int64)
            return lambda cohort: value
        raise self.refuse("given the address {}, accepted a register or a name", base)

    def items(self, operand: Operand) -> tuple[Operand, ...]:
        """The operands between braces, or the operand itself."""
        return operand.items if isinstance(operand, Group) else (operand,)

    # ---- writing

    def write(self, operand: Operand, type_: str) -> Writer:
        """Writer of a result of a type; a wider register is sign- or zero-extended."""
        if isinstance(operand, Sink):
            return lambda cohort, value: None
        if not isinstance(operand, Register):
            raise self.refuse("given the destination {}, accepted a register", operand)
        slot, container, source = operand.slot, container_of(operand.type), dtype_of(type_)
        if container.itemsize == source.itemsize:
            def convert(value: np.ndarray) -> np.ndarray:
                return value.view(container)
        elif source.kind == "i":
            signed = np.dtype(f"i{container.itemsize}")

            def convert(value: np.ndarray) -> np.ndarray:
                return value.astype(signed).view(container)
        else:
            bits = np.dtype(f"u{source.itemsize}")

            def convert(value: np.ndarray) -> np.ndarray:
                return value.view(bits).astype(container)

        def write(cohort: Cohort, value: np.ndarray) -> None:
            value = convert(value)
            if cohort.mask is not None:
                value = np.where(cohort.mask, value, cohort.registers[slot])
            cohort.registers[slot] = value
        return write

    def write_pair(self, operand: Operand, first: str, second: str) -> tuple[Writer, Writer]:
        """Writers of d|p; the second does nothing if there is only d."""
        if isinstance(operand, Pair):
            return self.write(operand.first, first), self.write(operand.second, second)
        return self.write(operand, first), self.write(Sink(), second)

    # ---- steps

    def compute(self, function: Callable[..., np.ndarray], result: str, sources: Sequence[str],
                first: int = 1) -> Step:
        """The step d = function(a, b, ...) with operands from index first on."""
        write = self.write(self.operands[0], result)
        reads = [self.read(operand, type_)
                 for operand, type_ in zip(self.operands[first:], sources, strict=True)]
        if len(reads) == 1:
            one, = reads
            return lambda cohort: write(cohort, function(one(cohort)))
        if len(reads) == 2:
            left, right = reads
            return lambda cohort: write(cohort, function(left(cohort), right(cohort)))
        return lambda cohort: write(cohort, function(*[read(cohort) for read in reads]))


Decoder = Callable[[Site], Step]


def _read_register(operand: Register, type_: str) -> Reader:
    slot, container, wanted = operand.slot, container_of(operand.type), dtype_of(type_)
    if container == wanted:
        return lambda cohort: cohort.registers[slot]
    if container.itemsize == wanted.itemsize:
        return lambda cohort: cohort.registers[slot].view(wanted)
    if wanted.itemsize > container.itemsize and wanted.kind == "u":
        return lambda cohort: cohort.registers[slot].astype(wanted)
    if wanted.itemsize > container.itemsize:
        raise UnknownInstructionError(
            f"given the register {operand.name} of type {operand.type}, accepted type {type_}")
    bits = np.dtype(f"u{wanted.itemsize}")
    return lambda cohort: cohort.registers[slot].astype(bits).view(wanted)
