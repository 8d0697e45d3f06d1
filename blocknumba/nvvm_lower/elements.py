"""Elements of tiles in registers: LLVM types and literals.

    dtype                      register         memory
    bool                       i1               i8
    int8 ... uint64            i8 ... i64       the same
    float16, bfloat16          i16              the same
    float8_e4m3fn, _e5m2       i8               the same
    float32, float64           float, double    i32, i64

Narrow floats (16 and 8 bits) are integers of their bits: the dialect has no bfloat16.
"""

from __future__ import annotations

import numpy as np

from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, GLOBAL, I1, floating, integer, pointer
from blocknumba.tile_ir.ir.types import DType, PointerType, bool_, float32, float64

POINTER_BITS = 64


def is_narrow(dtype: DType | PointerType) -> bool:
    """Whether dtype is a float that is carried as the integer of its bits."""
    return isinstance(dtype, DType) and dtype.is_float and dtype.bits < float32.bits


def memory_type(dtype: DType) -> str:
    """The LLVM type of an element in memory: an integer of its size."""
    return f"i{dtype.bits}"


def register_type(dtype: DType | PointerType) -> str:
    """The LLVM type of an element in a register."""
    if isinstance(dtype, PointerType):
        return pointer(memory_type(dtype.pointee), GLOBAL)
    if dtype == bool_:
        return I1
    if dtype == float32:
        return FLOAT
    return DOUBLE if dtype == float64 else memory_type(dtype)


def element_bits(dtype: DType | PointerType) -> int:
    """The size of an element in memory."""
    return POINTER_BITS if isinstance(dtype, PointerType) else dtype.bits


def literal(value: bool | int | float, dtype: DType) -> str:
    """The literal of a value that dtype represents exactly."""
    if dtype == bool_:
        return "true" if value else "false"
    if is_narrow(dtype):
        bits = np.asarray(value).astype(dtype.numpy).view(f"u{dtype.bytes}")
        return integer(int(bits), dtype.bits)
    return floating(float(value)) if dtype.is_float else integer(int(value), dtype.bits)


def zero(dtype: DType | PointerType) -> str:
    """The literal of 0; of a pointer, null."""
    return "null" if isinstance(dtype, PointerType) else literal(0, dtype)


def is_literal(value: str) -> bool:
    """Whether a value is a literal, not the result of an instruction."""
    return not value.startswith("%")
