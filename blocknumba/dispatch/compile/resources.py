"""Resource limits of kernels: registers, shared memory, elements per thread."""

from __future__ import annotations

from collections.abc import Mapping

from blocknumba.errors import ResourceError
from blocknumba.gpu_layout.layouts.registers import MAX_WARPS, register_count
from blocknumba.gpu_layout.layouts.shared import in_registers
from blocknumba.gpu_layout.memory.allocate_shared import size_bytes
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.placement.planner import tile_bytes
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS, raises
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.wording import shown

SHOWN_BUFFERS = 4  # the largest ones say what to change


def require_shared_memory(fn: Function, target: Target, owner: str = "") -> None:
    """Check that a function with layouts fits the shared memory of a block.

    owner: of the memory, in messages; the target unless it is given.

    Errors: ResourceError that names the largest buffers, at the line of the largest one.
    """
    needed, present = fn.attrs.get("shared_bytes", 0), target.shared_bytes_per_block
    if needed <= present:
        return
    buffers = sorted((op for op in walk(fn.body) if op.opdef is shared_allocate), key=size_bytes,
                     reverse=True)
    listed = ", ".join(map(_described, buffers[:SHOWN_BUFFERS]))
    raise ResourceError(f"{fn.name}: needs {needed} bytes of shared memory, {owner or target} has "
                        f"{present} per program: {listed}",
                        hint="use smaller tiles or fewer num_stages", resource="shared memory",
                        required=needed, limit=present).at(buffers[0].loc)


def require_registers(fn: Function, num_warps: int) -> None:
    """Check that no thread holds very many elements of one tile of a function with layouts.

    They would not fit its registers, and the assembler would take minutes to allocate them.
    Errors: ResourceError at the largest tile.
    """
    held = {value: register_count(value.type.layout)
            for op in walk(fn.body) for value in op.results if _is_held(value)}
    _require_few_elements(fn, held, num_warps)


def require_room(fn: Function, target: Target, blocks: int) -> None:
    """Check, before any layout, that the registers of all warps have room for each tile.

    Tiles that fit shared memory may be there instead.
    blocks: of the cluster that a program may be partitioned over.
    Errors: ResourceError at the largest tile.
    """
    sizes = {value: value.type.size // blocks for op in walk(fn.body) for value in op.results}
    large = {value: size // (MAX_WARPS * target.warp_size) for value, size in sizes.items()
             if size > target.shared_bytes_per_block}  # where no element takes less than a byte
    _require_few_elements(fn, large, MAX_WARPS)


def _require_few_elements(fn: Function, held: Mapping[Value, int], num_warps: int) -> None:
    """held: elements per thread."""
    limit = SETTINGS.limits.elements_per_thread
    largest = max(held, key=held.get, default=None)
    if largest is None or held[largest] <= limit:
        return
    warps = num_warps * held[largest] // limit
    fix = f"num_warps={warps} or smaller tiles" if warps <= MAX_WARPS else "smaller tiles"
    raise ResourceError(
        f"{fn.name}: a tile of shape {largest.type.shape} has {shown(held[largest])} elements per "
        f"thread with num_warps={num_warps}, accepted at most {limit}", loc=largest.owner.loc,
        hint=f"use {fix}; {raises('elements_per_thread')}", required=held[largest], limit=limit)


def _is_held(value: Value) -> bool:
    return in_registers(value.type) and value.type.layout is not None


def require_memory(fn: Function) -> None:
    """Check that no tile is so large that the interpreter would fill the memory of the machine.

    Errors: ResourceError at the largest tile.
    """
    limit = SETTINGS.limits.tile_bytes
    largest = max((value for op in walk(fn.body) for value in op.results),
                  key=lambda value: tile_bytes(value.type), default=None)
    size = 0 if largest is None else tile_bytes(largest.type)
    if size <= limit:
        return
    raise ResourceError(
        f"{fn.name}: a tile of shape {largest.type.shape} has {shown(size)} bytes, "
        f"accepted at most {limit} on the CPU device", loc=largest.owner.loc,
        hint=f"use smaller tiles; {raises('tile_bytes')}", resource="memory", required=size,
        limit=limit)


def _described(buffer: Op) -> str:
    tile = buffer.result.type
    shape = "x".join(map(str, tile.shape))
    return f"{size_bytes(buffer)} bytes for {shape}x{tile.dtype} at line {buffer.loc.line}"
