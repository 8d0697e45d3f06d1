"""Inline PTX of wgmma: dots of warpgroups on Hopper's tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.target import Capability

SWIZZLE_CODES = {128: 1, 64: 2, 32: 3}  # PTX ISA, "Matrix Descriptor Format", bits 62 to 63
OPERAND_WORDS = 4  # registers of the first operand of an instruction
# Accumulators per `arrived`: libNVVM takes time that is quadratic in the results of inline PTX.
ARRIVING_WORDS = 8
_EITHER_MAJOR = ("f16", "bf16")  # kinds whose instructions have flags for transposed operands
_WITHOUT_SIGNS = ("s32",)  # kinds of results whose operands cannot be negated


@dataclass(frozen=True, slots=True)
class Instruction:
    """One of the instructions of a group.

    accumulators: index of its accumulators among the group's, in instructions.
    first, second: added to the low words of the descriptors; where the first operand is in
        registers, the index of its registers among the group's, in instructions.
    begins: whether it is the first one to add to its accumulators.
    """

    accumulators: int
    first: int
    second: int
    begins: bool


@dataclass(frozen=True, slots=True)
class WgmmaGroup:
    """A wgmma group: the instructions of a dot, which are waited for together.

    kinds: of elements: of the result and both operands, in PTX's names.
    columns, depth: N and K of an instruction.
    words: registers of an instruction's accumulators.
    first_high, second_high: the constant high words of the descriptors; the first is None where
        that operand is in registers.
    is_transposed: of both operands, whether they are contiguous along M or N.
    from_zero: the accumulators are zeros, and no operands.
    """

    kinds: tuple[str, str, str]
    columns: int
    depth: int
    words: int
    first_high: int | None
    second_high: int
    is_transposed: tuple[bool, bool]
    from_zero: bool
    instructions: tuple[Instruction, ...]

    @property
    def total_words(self) -> int:
        """Registers of all accumulators."""
        return self.words * (1 + max(one.accumulators for one in self.instructions))

    @property
    def first_words(self) -> int:
        """Number of words that hold, or describe, the first operand."""
        if self.first_high is not None:
            return 1
        return OPERAND_WORDS * (1 + max(one.first for one in self.instructions))

    @property
    def register(self) -> str:
        """The LLVM type of an accumulator's register."""
        return "float" if self.kinds[0] == "f32" else "i32"


@cache
def multiply(group: WgmmaGroup) -> Assembly:
    """Begin a dot as one group: a fence, the instructions, a commit.

    Operands: the accumulators unless from_zero; the first operand's words, or its descriptor's low
    word; the low word of the second operand's descriptor.   Results: the accumulators.
    """
    count = group.total_words
    tied = 0 if group.from_zero else count
    first = count + tied
    second = first + group.first_words
    steps = " ".join(_instruction(group, number, first, second)
                     for number in range(len(group.instructions)))
    # Every descriptor has registers of its own: the assembler of CUDA 13 drops instructions whose
    # operands have the names of an earlier one's.
    names = f"first<{len(group.instructions)}>, second<{len(group.instructions)}>"
    text = (f"{{ .reg .b32 low; .reg .b64 {names}; wgmma.fence.sync.aligned; "
            f"{steps} wgmma.commit_group.sync.aligned; }}")
    operands = (group.register,) * tied + ("i32",) * (group.first_words + 1)
    return Assembly(
        f"wgmma.n{group.columns}.{'.'.join(group.kinds)}", text, (group.register,) * count,
        operands, "wgmma.mma_async", tied=tuple((i, i) for i in range(tied)),
        needs=Capability.WGMMA, has_effect=True, touches_memory=True, converges=True)


def _instruction(group: WgmmaGroup, number: int, first: int, second: int) -> str:
    """The text of the instruction of a number; first, second: numbers of the operands' words."""
    one = group.instructions[number]
    result, left, right = group.kinds
    text = ""
    if group.first_high is None:
        start = first + OPERAND_WORDS * one.first
        source = "{" + ", ".join(f"${start + i}" for i in range(OPERAND_WORDS)) + "}"
    else:
        source = f"first{number}"
        text += _descriptor(source, first, one.first, group.first_high)
    text += _descriptor(f"second{number}", second, one.second, group.second_high)
    start = group.words * one.accumulators
    target = "{" + ", ".join(f"${start + i}" for i in range(group.words)) + "}"
    flags = [str(int(not (group.from_zero and one.begins)))]
    flags += ["1", "1"] * (result not in _WITHOUT_SIGNS)
    if left in _EITHER_MAJOR:
        from_shared = group.is_transposed[group.first_high is None:]
        flags += [str(int(transposed)) for transposed in from_shared]
    shape = f"m64n{group.columns}k{group.depth}"
    return (f"{text}wgmma.mma_async.sync.aligned.{shape}.{result}.{left}.{right} "
            f"{target}, {source}, second{number}, {', '.join(flags)};")


def _descriptor(name: str, low: int, distance: int, high: int) -> str:
    word = f"${low}"
    if distance:
        text, word = f"add.u32 low, ${low}, {distance}; ", "low"
    else:
        text = ""
    return f"{text}mov.b64 {name}, {{{word}, {high}}}; "


@cache
def wait(pending: int) -> Assembly:
    """Wait for all groups but the latest few."""
    return Assembly(
        f"wgmma.wait.{pending}", f"wgmma.wait_group.sync.aligned {pending};", (), (),
        "wgmma.wait_group", needs=Capability.WGMMA, has_effect=True, touches_memory=True,
        converges=True)


@cache
def arrived(register: str, count: int) -> Assembly:
    """Accumulators after a wait: no instruction, but an order for their readers."""
    return Assembly(
        f"wgmma.arrived.{count}.{register}", "", (register,) * count, (register,) * count,
        "wgmma.wait_group", tied=tuple((i, i) for i in range(count)), has_effect=True)


# A use of a value that never stores: no instruction returns this NaN.
PIN = Assembly(
    "wgmma.pin", "{ .reg .pred p; .reg .b32 w; mov.b32 w, $0; setp.eq.b32 p, w, 0x7fc0dead; "
    "@p st.shared.b32 [$1], w; }", (), ("float", "i32"), "st", has_effect=True,
    touches_memory=True)


def rows() -> list[Assembly]:
    """Some of the rows of this module, for tests."""
    high = 64 | SWIZZLE_CODES[128] << 30
    return [
        multiply(WgmmaGroup((result, left, right), 8, 256 // bits, words, first_high, high,
                         (False, False), from_zero, (Instruction(0, 0, 0, True),)))
        for result, left, right, bits, words in (
            ("f32", "f16", "f16", 16, 4), ("f16", "f16", "f16", 16, 2),
            ("f32", "tf32", "tf32", 32, 4), ("f32", "e4m3", "e5m2", 8, 4),
            ("s32", "s8", "u8", 8, 4))
        for first_high in (None, high) for from_zero in (False, True)
    ] + [wait(0), wait(1), arrived("float", 8), arrived("i32", 2), PIN]
