"""Stores that wait for the load of the same elements.

    loop:   added = load p                  the line is fetched
            store p, state                  does not need what is loaded: begins at once
            state = state * decay + added

Where a store meets the fetch of its own line, memory does both again and again: 619 us instead of
157 for the states of a linear attention on an H200, 571 for Triton's code.  So one register of each
vector that is stored takes part in an operation with what was loaded.  It changes nothing, but only
the hardware knows: the masks of the lanes before and behind a lane have no bit in common.
Which stores those are: tile_ir/analysis/awaited_loads.py.
"""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import element_bits, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.services.address import special_register
from blocknumba.tile_ir.ir.types import DType


def awaiting(emitter: Emitter, dtype: DType, values: Registers, loaded: Registers,
             width: int) -> Registers:
    """The same values, of which the first of each vector is there when what was loaded is."""
    body, bits = emitter.body, f"i{element_bits(dtype)}"
    before, behind = (special_register(body, f"lanemask.{side}") for side in ("lt", "gt"))
    nothing = body.binary("and", I32, before, behind)
    if bits != I32:
        nothing = body.convert("trunc" if element_bits(dtype) < 32 else "zext", I32, nothing, bits)
    waiting = list(values)
    for register in range(0, len(values), width):
        value, other = (_as(emitter, register_type(dtype), registers[register], bits)
                        for registers in (values, loaded))
        mixed = body.binary("or", bits, value, body.binary("and", bits, other, nothing))
        waiting[register] = _as(emitter, bits, mixed, register_type(dtype))
    return waiting


def _as(emitter: Emitter, given: str, value: str, wanted: str) -> str:
    return value if given == wanted else emitter.body.convert("bitcast", given, value, wanted)
