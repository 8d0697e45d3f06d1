"""wgmma: dots of warpgroups on Hopper's tensor cores, and the waits for them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from blocknumba.gpu_layout.dots.wgmma import (
    WORD_BITS, SharedOperand, accumulator_layout, depth_of, warpgroup_tiling,
)
from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.registers import REGISTER, WARP, log2
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.nvvm_lower.elements import register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import FLOAT, I32
from blocknumba.nvvm_lower.ptx import wgmma as ptx
from blocknumba.nvvm_lower.ptx.wgmma import Instruction, WgmmaGroup
from blocknumba.nvvm_lower.services.address import image_of
from blocknumba.nvvm_lower.services.floats import rounded_to_tf32
from blocknumba.nvvm_lower.services.shared_memory import address_of
from blocknumba.nvvm_lower.services.words import pack, unpack
from blocknumba.tile_ir.ir.types import (
    DType, TileType, bfloat16, float16, float32, float8_e4m3fn, float8_e5m2, int32, int8, uint8,
)

KINDS = {float16: "f16", bfloat16: "bf16", float32: "tf32", float8_e4m3fn: "e4m3",
         float8_e5m2: "e5m2", int8: "s8", uint8: "u8"}
RESULT_KINDS = {float32: "f32", float16: "f16", int32: "s32"}
ADDRESS_MASK = 0x3FFFF  # PTX ISA, "Matrix Descriptor Format": bits of an address in a block
ADDRESS_SHIFT = 4  # descriptors count in 16 bytes
LEADING_SHIFT = 16  # PTX ISA, "Matrix Descriptor Format"


class Operand(NamedTuple):
    """An operand of a dot: its type, and its registers or the byte offset of its buffer."""

    type: TileType
    registers: Registers


def begin(emitter: Emitter, a: Operand, b: Operand, acc: Operand, num_warps: int) -> Registers:
    """Begin acc + a @ b; returns the registers of the result, valid after `wait`.

    a: in a buffer, or in registers in gpu_layout.wgmma.operand_layout.   b: in a buffer.
    """
    from_zero = set(acc.registers) == {zero(acc.type.dtype)}
    group = _group(a.type, b.type, acc.type, num_warps, from_zero)
    if is_buffer(a.type):
        first = [_low_word(emitter, a, 0, acc.type, num_warps)]
    else:
        first = _operand_words(emitter, a)
    second = _low_word(emitter, b, 1, acc.type, num_warps)
    held = [] if from_zero else _accumulator_words(emitter, acc)
    made = emitter.assembly(ptx.multiply(group), *held, *first, second)
    return _of_words(emitter, acc.type.dtype, list(made))


def wait(emitter: Emitter, value: Operand, pending: int) -> Registers:
    """Wait until at most `pending` of the latest groups are in flight."""
    emitter.assembly(ptx.wait(pending))
    words = _accumulator_words(emitter, value)
    register = FLOAT if value.type.dtype == float32 else I32
    done: list[str] = []
    for first in range(0, len(words), ptx.ARRIVING_WORDS):
        chunk = words[first:first + ptx.ARRIVING_WORDS]
        done += emitter.assembly(ptx.arrived(register, len(chunk)), *chunk)
    return _of_words(emitter, value.type.dtype, done)


@lru_cache(maxsize=256)
def _group(a: TileType, b: TileType, acc: TileType, num_warps: int, from_zero: bool) -> WgmmaGroup:
    """The instructions of one warpgroup, k by k."""
    divided = warpgroup_tiling(*acc.shape, num_warps)
    columns, depth = 1 << divided.columns, depth_of(a.dtype)
    right = SharedOperand.of(b, 1)
    left = SharedOperand.of(a, 0) if is_buffer(a) else None
    starts = _starts(acc, num_warps, log2(columns // 2))
    steps = a.shape[1] // depth
    repeats = 1 << divided.repeat_columns  # instructions that share a first operand
    instructions = []
    for step in range(steps):
        for index, (row, column) in enumerate(starts):
            first = (left.offset_bytes(row, step * depth) >> ADDRESS_SHIFT if left
                     else index // repeats * steps + step)
            second = right.offset_bytes(column, step * depth) >> ADDRESS_SHIFT
            instructions.append(Instruction(index, first, second, not step))
    return WgmmaGroup(
        (RESULT_KINDS[acc.dtype], KINDS[a.dtype], KINDS[b.dtype]), columns, depth,
        columns // 2 * acc.dtype.bits // WORD_BITS, left and _high_word(left), _high_word(right),
        (left is not None and left.is_transposed, right.is_transposed), from_zero,
        tuple(instructions))


def _starts(acc: TileType, num_warps: int, inner: int) -> list[tuple[int, int]]:
    """The row and column, in its warpgroup, where each instruction starts.

    inner: bits of a register's number within an instruction.
    """
    layout = accumulator_layout(acc.shape, num_warps)
    return [divmod(element, acc.shape[1]) for element in gf2.images(layout[REGISTER][inner:])]


def _high_word(operand: SharedOperand) -> int:
    return (operand.stride_bytes >> ADDRESS_SHIFT
            | ptx.SWIZZLE_CODES[operand.swizzle_bytes] << 30)


def _low_word(emitter: Emitter, given: Operand, axis: int, acc: TileType, num_warps: int) -> str:
    """The low word of the descriptor of the elements that this warpgroup reads first."""
    body, operand = emitter.body, SharedOperand.of(given.type, axis)
    base = body.binary("and", I32, address_of(emitter, "0"), str(ADDRESS_MASK))
    address = body.binary("add", I32, base, given.registers[0])
    word = body.binary("lshr", I32, address, str(ADDRESS_SHIFT))
    leading = operand.leading_bytes >> ADDRESS_SHIFT << LEADING_SHIFT
    word = body.binary("or", I32, word, str(leading))
    elements = accumulator_layout(acc.shape, num_warps)[WARP]
    # the warps of a warpgroup have one descriptor
    starts = [0, 0] + [divmod(element, acc.shape[1])[axis] for element in elements[2:]]
    matrix = tuple(operand.offset_bytes(start, 0) >> ADDRESS_SHIFT for start in starts)
    if not any(matrix):
        return word
    start = image_of(body.binary, matrix, emitter.threads.uniform_warp)
    return body.binary("add", I32, word, start)


def _operand_words(emitter: Emitter, operand: Operand) -> list[str]:
    """The first operand in registers, a word at a time."""
    dtype, values = operand.type.dtype, operand.registers
    if dtype == float32:
        return [rounded_to_tf32(emitter, value) for value in values]
    return _packed(emitter, dtype, values)


def _accumulator_words(emitter: Emitter, operand: Operand) -> list[str]:
    """Accumulators as the registers of the instructions."""
    dtype, values = operand.type.dtype, operand.registers
    return values if dtype.bits == WORD_BITS else _packed(emitter, dtype, values)


def _packed(emitter: Emitter, dtype: DType, values: Registers) -> list[str]:
    count = WORD_BITS // dtype.bits
    return [word for i in range(0, len(values), count)
            for word in pack(emitter, dtype, values[i:i + count])]


def _of_words(emitter: Emitter, dtype: DType, words: list[str]) -> Registers:
    """The elements in registers of accumulators."""
    if register_type(dtype) in (FLOAT, I32):
        return words
    return unpack(emitter, dtype, words, len(words) * WORD_BITS // dtype.bits)
