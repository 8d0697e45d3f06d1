"""What a kernel may take of a GPU."""

from __future__ import annotations

from blocknumba.dispatch.specialize import Specialization
from blocknumba.errors import ResourceError
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.passes.allocate_shared import shared_bytes, size_bytes
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.ir import Function, Op, walk

SHOWN_BUFFERS = 4  # the largest ones say what to change


def layout_options(specialization: Specialization, num_warps: int) -> LayoutOptions:
    """What the passes of the GPU-layout IR are told about a specialization."""
    options, target = specialization.options, specialization.target
    return LayoutOptions(num_warps, options.num_stages, specialization.disjoint,
                         specialization.numbers_describe, target.capabilities,
                         target.shared_bytes_per_block, options.num_ctas)


def require_shared_memory(fn: Function, target: Target) -> None:
    """Check that a function with layouts fits the shared memory of a block.

    Errors: ResourceError that names the largest buffers, at the line of the largest one.
    """
    needed, present = shared_bytes(fn), target.shared_bytes_per_block
    if needed <= present:
        return
    buffers = sorted((op for op in walk(fn.body) if op.opdef is shared_allocate), key=size_bytes,
                     reverse=True)
    listed = ", ".join(map(_described, buffers[:SHOWN_BUFFERS]))
    raise ResourceError(f"{fn.name}: needs {needed} bytes of shared memory, {target} has "
                        f"{present} per program: {listed}",
                        hint="use smaller tiles or fewer num_stages").at(buffers[0].loc)


def _described(buffer: Op) -> str:
    tile = buffer.result.type
    shape = "x".join(map(str, tile.shape))
    return f"{size_bytes(buffer)} bytes for {shape}x{tile.dtype} at line {buffer.loc.line}"
