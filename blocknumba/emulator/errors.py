"""Errors of the emulator, each with the line of PTX and of source where it happened."""

from __future__ import annotations

from blocknumba.errors import UNKNOWN, BlockError, Loc


class EmulatorError(BlockError, RuntimeError):
    """A kernel that does what the PTX ISA does not allow.

    ptx_line: the line of the PTX text, from 1; 0 when no instruction is to blame.
    instruction: that line's text.
    """

    def __init__(self, message: str, *, loc: Loc = UNKNOWN, hint: str = "", ptx_line: int = 0,
                 instruction: str = ""):
        super().__init__(message, loc=loc, hint=hint)
        self.ptx_line, self.instruction = ptx_line, instruction

    def in_instruction(self, ptx_line: int, instruction: str, loc: Loc) -> EmulatorError:
        """This error, with an instruction as its location unless it has one."""
        if not self.ptx_line:
            self.ptx_line, self.instruction = ptx_line, instruction
            self.loc = loc if loc.file else self.loc
        return self

    def __str__(self) -> str:
        location = f"\n  PTX line {self.ptx_line}: {self.instruction}" if self.ptx_line else ""
        head, _, rest = super().__str__().partition("\n")
        return head + location + (f"\n{rest}" if rest else "")


class PtxSyntaxError(EmulatorError):
    """Text that is not PTX, or a name that is not declared."""


class UnknownInstructionError(EmulatorError):
    """An instruction, a qualifier or an operand that the emulator does not know yet."""


class AccessError(EmulatorError):
    """An access out of bounds, misaligned, to memory never written, or to read-only memory."""


class RaceError(EmulatorError):
    """Two accesses to shared memory, one of them a write, that nothing orders."""


class ProxyFenceError(RaceError):
    """An access through the async proxy to what the generic proxy wrote, without a fence."""


class SynchronizationError(EmulatorError):
    """A barrier, an mbarrier or a collective instruction used against its rules."""


class DeadlockError(EmulatorError):
    """Every warp waits for another."""


class TrapError(EmulatorError):
    """The kernel executed trap."""


class KernelAssertionError(EmulatorError, AssertionError):
    """An assertion of the kernel, or one of its checks with debug=True, that does not hold."""
