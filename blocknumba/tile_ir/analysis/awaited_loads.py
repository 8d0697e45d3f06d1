"""Loads of what is overwritten: stores to the pointers of a load that do not need what it brought.

    added = load p
    store p, state              waits for the load, though it could begin before
    state = state * decay + added
"""

from __future__ import annotations

from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.uses import is_computed_from
from blocknumba.tile_ir.ops.memory import load, store


def loads_to_await(region: Region) -> dict[Op, Op]:
    """Such stores of a region, each with the last load before it from its pointers."""
    found: dict[Op, Op] = {}
    loads: dict[Value, Op] = {}
    for op in region.ops:
        for inner in op.regions:
            found |= loads_to_await(inner)
        if op.opdef is load and not op.pointer.type.is_scalar:
            loads[op.pointer] = op
        elif op.opdef is store and op.pointer in loads and not is_computed_from(
                op.value, loads[op.pointer]):
            found[op] = loads[op.pointer]
    return found
