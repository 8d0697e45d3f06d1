"""Elements of tiles in LLVM: types, literals, and the values of a number of lanes.

    dtype                      register         memory
    bool                       i1               i8
    int8 ... uint64            i8 ... i64       the same
    float16, bfloat16          i16              the same
    float8_e4m3fn, _e5m2       i8               the same
    float32, float64           float, double    the same
    pointer                    ptr
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from blocknumba.tile_ir.ir.types import DType, PointerType, bool_, float32, float64


@dataclass(frozen=True, slots=True)
class Lanes:
    """One element for each lane.

    name: of a vector; where step is given, of a scalar: lane k holds name + k * step (a pointer:
        elements).  A step of 0 is one element for all lanes.
    step: an int, the name of a scalar of the same type (of a pointer: i64), or None.
    """

    name: str
    step: int | str | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes hold the same."""
        return self.step == 0

    @property
    def is_ramp(self) -> bool:
        """Whether the lanes rise or fall by one step."""
        return self.step is not None and self.step != 0


def uniform(name: str | int) -> Lanes:
    """A scalar for all lanes."""
    return Lanes(str(name), 0)


def is_narrow(dtype: DType | PointerType) -> bool:
    """Whether dtype is a float that is carried as the integer of its bits."""
    return isinstance(dtype, DType) and dtype.is_float and dtype.bits < float32.bits


def register_type(dtype: DType | PointerType) -> str:
    """The LLVM type of an element in a register."""
    if isinstance(dtype, PointerType):
        return "ptr"
    if dtype == bool_:
        return "i1"
    return {float32: "float", float64: "double"}.get(dtype) or f"i{dtype.bits}"


def memory_type(dtype: DType | PointerType) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if dtype == bool_ else register_type(dtype)


def size_bytes(dtype: DType | PointerType) -> int:
    """The size of an element in memory."""
    return 8 if isinstance(dtype, PointerType) else dtype.bytes


def literal(value: bool | int | float, dtype: DType | PointerType) -> str:
    """The literal of a value that dtype represents exactly; of a pointer, null."""
    if isinstance(dtype, PointerType):
        return "null"
    if dtype == bool_:
        return "true" if value else "false"
    if is_narrow(dtype):
        value = int(np.asarray(value).astype(dtype.numpy).view(f"u{dtype.bytes}"))
    elif dtype.is_float:
        rounded = float(np.asarray(value).astype(dtype.numpy))
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    bits = int(value) & (1 << dtype.bits) - 1
    return str(bits - (1 << dtype.bits) if bits >> dtype.bits - 1 else bits)
