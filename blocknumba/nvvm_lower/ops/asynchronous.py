"""Code of asynchronous ops: mbarriers, TMA copies, cp.async, wgmma, and roles of warps.

One thread of a warp issues an arrival or a bulk copy.  It is chosen by `elect.sync` within the
inline PTX, so there is no branch around it.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

from blocknumba.gpu_layout.async_copies.ops import (
    async_copy, async_copy_commit, async_copy_wait, blocks_done, buffer_shard, buffer_view,
    fence_async, is_first_warp, mbarrier_allocate, mbarrier_arrive, mbarrier_expect, mbarrier_wait,
    mbarriers_ready, pin, shared_slice, slot, tma_load, tma_store, tma_store_wait, uniform,
    warp_roles, wgmma, wgmma_wait,
)
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import log2, shape_of
from blocknumba.gpu_layout.layouts.shared import in_panels, offset_of, recognized
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.ops.dot import remark_dot
from blocknumba.nvvm_lower.ops.memory import access_width, does_work
from blocknumba.nvvm_lower.ptx import (
    async_copy as async_copy_ptx, cluster as cluster_ptx, mbarrier as mbarrier_ptx, tma as tma_ptx,
    warp as warp_ptx, wgmma as wgmma_ptx,
)
from blocknumba.nvvm_lower.ptx.tma import Piece
from blocknumba.nvvm_lower.services import async_copies, wgmma as warpgroups
from blocknumba.nvvm_lower.services.shared_memory import address_of, tile_in_shared
from blocknumba.nvvm_lower.services.wgmma import Operand
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.remarks import BY_THREADS, Remark
from blocknumba.tile_ir.ir.tensor_map import TensorMap
from blocknumba.tile_ir.ir.types import TileType


def initialize(emitter: Emitter, ring: str, copies: int, arrivals: int) -> None:
    """The first thread initializes a ring of mbarriers at a byte offset."""
    row = mbarrier_ptx.initialize(copies, arrivals)
    emitter.assembly(row, address_of(emitter, ring), emitter.flag(emitter.threads.is_first))


def wait(emitter: Emitter, barrier: str, phase: str) -> None:
    """Wait for the end of a phase of the mbarrier at a byte offset."""
    emitter.assembly(mbarrier_ptx.WAIT, address_of(emitter, barrier), phase)


def arrive(emitter: Emitter, barrier: str, condition: str, blocks: int) -> None:
    """One arrival of each warp, where condition, "" or an i1, holds, in each of some blocks."""
    conditions = [emitter.flag(condition)] if condition else []
    is_conditional = bool(condition)
    row = mbarrier_ptx.arrive(is_conditional)
    if blocks > 1:
        row = mbarrier_ptx.arrive_in_all(blocks, is_conditional)
    emitter.assembly(row, address_of(emitter, barrier), *conditions)


def expect(emitter: Emitter, barrier: str, size_bytes: int) -> None:
    """One arrival of this warp that also announces the bytes of a copy."""
    emitter.assembly(mbarrier_ptx.expect(size_bytes), address_of(emitter, barrier))


def load(emitter: Emitter, map_: str, description: TensorMap, tile: TileType, buffer: str,
         barrier: str, starts: list[str], blocks: int) -> None:
    """Begin to copy a box of an array to the buffer at a byte offset, in each of some blocks.

    map_: address of the tensor map.  barrier: byte offset of the mbarrier that counts the bytes.
    """
    row = tma_ptx.load(_pieces_of(description, tile), blocks)
    emitter.assembly(row, address_of(emitter, buffer), map_, address_of(emitter, barrier), *starts)


def store(emitter: Emitter, map_: str, description: TensorMap, tile: TileType, buffer: str,
          starts: list[str]) -> None:
    """The first warp begins to copy the buffer at a byte offset to a box of an array."""
    row = tma_ptx.store(_pieces_of(description, tile))
    is_first = emitter.body.compare("icmp eq", I32, emitter.threads.uniform_warp, "0")
    emitter.assembly(row, address_of(emitter, buffer), map_, emitter.flag(is_first), *starts)


def _pieces_of(description: TensorMap, tile: TileType) -> tuple[Piece, ...]:
    bits = element_bits(tile.dtype)
    found = recognized(tile.layout, bits)
    assert found and found[1] == description.swizzle_bytes, f"{tile} for {description}"
    return pieces(tile.layout, bits, description.box)


@lru_cache(maxsize=256)
def pieces(layout: LinearLayout, bits: int, box: tuple[int, ...]) -> tuple[Piece, ...]:
    """The boxes that fill a buffer, panel after panel.

    layout: one that swizzled gave, of elements of so many bits.  box: extents, innermost first;
    those above 1 belong to the tile's axes above 1: the minor one, then the others from the last.
    """
    shape = shape_of(layout)
    minor_axis, swizzle = recognized(layout, bits)
    others = [axis for axis in reversed(range(len(shape))) if axis != minor_axis]
    axes = [axis for axis in (minor_axis, *others) if shape[axis] > 1]
    box_axes = [axis for axis, extent in enumerate(box) if extent > 1]
    assert len(axes) == len(box_axes), f"a box {box} for a tile {shape}"
    panels = in_panels(shape, minor_axis, bits, swizzle)
    extents = [box[axis] for axis in box_axes]
    _check_order(panels, axes, extents)
    steps = [range(0, shape[axis], extent) for axis, extent in zip(axes, extents)]
    made = []
    for index in itertools.product(*reversed(steps)):
        index = index[::-1]
        offset = offset_of(panels, dict(zip(axes, index)))
        starts = dict(zip(box_axes, index))
        made.append(Piece(offset * bits // 8, tuple(starts.get(i, 0) for i in range(len(box)))))
    return tuple(sorted(made, key=lambda piece: piece.offset_bytes))


def _check_order(panels: LinearLayout, axes: list[int], extents: list[int]) -> None:
    """Assert that a box lies in the buffer as TMA writes it: its elements one after the other."""
    lower_bits = 0
    for axis, extent in zip(axes, extents, strict=True):
        for bit in range(log2(extent)):
            at = offset_of(panels, {axis: 1 << bit})
            assert at == 1 << lower_bits + bit, f"axis {axis} of a box {extents} is cut up"
        lower_bits += log2(extent)


PROGRAM_BARRIER = 1  # of the program's warps, once others run beside them; 0 is of all


@code(buffer_view)
def _(_emitter: Emitter, _op: Op, buffer: Registers) -> Registers:
    return buffer


@code(slot, buffer_shard)
def _(emitter: Emitter, op: Op, whole: Registers, index: Registers) -> Registers:
    body, tile = emitter.body, op.result.type
    size_bytes = str(tile.size * element_bits(tile.dtype) // 8)
    return [body.binary("add", I32, body.binary("mul", I32, index[0], size_bytes), whole[0])]


@code(shared_slice)
def _(emitter: Emitter, op: Op, buffer: Registers) -> Registers:
    """A k slice of a tile in shared memory: the same layout, from another origin.

    Swizzles are linear, so the origin is added by xor.
    """
    held, slice_ = op.buffer.type, op.result.type
    layout = slice_.layout.with_outs(held.layout.outs)
    origin = offset_of(held.layout, {attribute(op, "axis"): attribute(op, "start")})
    tile = tile_in_shared(emitter, slice_.dtype, layout, buffer[0], held.layout, origin)
    return [tile.element(register) for register in range(count(slice_))]


# barrier objects ------------------------------------------------------------------------------
@code(mbarrier_allocate)
def _(emitter: Emitter, op: Op) -> Registers:
    """A ring of barrier objects is its byte offset in shared memory."""
    offset = attribute(op, "offset")
    assert offset is not None, "mbarrier_allocate: no pass gave an offset"
    ring = str(offset)
    initialize(emitter, ring, attribute(op, "copies"), attribute(op, "arrivals"))
    return [ring]


@code(mbarriers_ready)
def _(emitter: Emitter, op: Op) -> None:
    emitter.assembly(mbarrier_ptx.READY)
    if attribute(op, "blocks") > 1:
        emitter.assembly(cluster_ptx.BARRIER)
    else:
        emitter.barrier()


@code(mbarrier_wait)
def _(emitter: Emitter, _op: Op, barrier: Registers, phase: Registers) -> None:
    wait(emitter, barrier[0], phase[0])


@code(mbarrier_arrive)
def _(emitter: Emitter, op: Op, barrier: Registers, condition: Registers = ("",)) -> None:
    arrive(emitter, barrier[0], condition[0], attribute(op, "blocks"))


@code(mbarrier_expect)
def _(emitter: Emitter, op: Op, barrier: Registers) -> None:
    expect(emitter, barrier[0], attribute(op, "size_bytes"))


# bulk copies ----------------------------------------------------------------------------------
@code(tma_load)
def _(emitter: Emitter, op: Op, map_: Registers, buffer: Registers, barrier: Registers,
      *starts: Registers) -> None:
    load(emitter, map_[0], _description(emitter, op.map), op.buffer.type,
             buffer[0], barrier[0], [start for start, in starts], attribute(op, "blocks"))


@code(tma_store)
def _(emitter: Emitter, op: Op, map_: Registers, buffer: Registers, *starts: Registers) -> None:
    store(emitter, map_[0], _description(emitter, op.map), op.buffer.type,
              buffer[0], [start for start, in starts])


def _description(emitter: Emitter, map_: Value) -> object:
    description = emitter.parameters[map_].tensor_map
    assert description is not None, "the map of a bulk copy is a tensor map parameter"
    return description


@code(tma_store_wait)
def _(emitter: Emitter, op: Op) -> None:
    emitter.assembly(tma_ptx.store_wait(attribute(op, "reads")))


@code(fence_async)
def _(emitter: Emitter, _op: Op) -> None:
    emitter.assembly(tma_ptx.FENCE)


# copies by threads ----------------------------------------------------------------------------
@code(async_copy)
def _(emitter: Emitter, op: Op, pointers: Registers, buffer: Registers,
      masks: Registers | None = None) -> None:
    held = op.buffer.type
    source = async_copies.Source(
        op.pointer.type.layout, pointers, masks, access_width(emitter.axis_infos, op),
        does_work(emitter, op.pointer))
    copied = async_copies.copy(emitter, held.dtype, source, buffer[0], held.layout)
    emitter.remarks.append(Remark.of(
        BY_THREADS, op.loc, kind="load", array=emitter.arrays_of(op.pointer), tile=held.spelling,
        way="asynchronous" if copied else "threads",
        width_bytes=copied or source.width * element_bits(held.dtype) // 8, cut_bytes=0))


@code(async_copy_commit)
def _(emitter: Emitter, _op: Op) -> None:
    emitter.assembly(async_copy_ptx.COMMIT)


@code(async_copy_wait)
def _(emitter: Emitter, op: Op) -> None:
    emitter.assembly(async_copy_ptx.wait(attribute(op, "pending")))


# tensor cores ---------------------------------------------------------------------------------
@code(wgmma)
def _(emitter: Emitter, op: Op, *registers: Registers) -> Registers:
    remark_dot(emitter, op, "wgmma")
    operands = itertools.starmap(Operand, zip([value.type for value in op.operands], registers,
                                              strict=True))
    return warpgroups.begin(emitter, *operands, attribute(op, "num_warps"))


@code(wgmma_wait)
def _(emitter: Emitter, op: Op, value: Registers) -> Registers:
    return warpgroups.wait(emitter, Operand(op.result.type, value), attribute(op, "pending"))


@code(pin)
def _(emitter: Emitter, _op: Op, values: Registers, scratch: Registers) -> None:
    address = address_of(emitter, scratch[0])
    for value in values:
        emitter.assembly(wgmma_ptx.PIN, value, address)


@code(uniform)
def _(emitter: Emitter, _op: Op, value: Registers) -> Registers:
    return list(emitter.assembly(warp_ptx.UNIFORM_HERE, value[0]))


# blocks of a program --------------------------------------------------------------------------
@code(blocks_done)
def _(emitter: Emitter, _op: Op) -> None:
    emitter.assembly(cluster_ptx.BARRIER)


# roles ----------------------------------------------------------------------------------------
@code(is_first_warp)
def _(emitter: Emitter, _op: Op) -> Registers:
    return [emitter.body.compare("icmp eq", I32, emitter.threads.uniform_warp, "0")]


@code(warp_roles)
def _(emitter: Emitter, op: Op) -> tuple[Registers, ...]:
    """Branch to the role of this warp, by an index that the assembler knows to be uniform.

    Producers end with their region, so from here on the program's barrier is a named one.
    """
    body, num_warps = emitter.body, emitter.options.num_warps
    emitter.assembly(mbarrier_ptx.READY)
    emitter.assembly(cluster_ptx.BARRIER if attribute(op, "blocks") > 1 else warp_ptx.BARRIER)
    labels = body.new_label("program"), body.new_label("producer")
    is_ours = body.compare("icmp ult", I32, emitter.threads.uniform_warp, str(num_warps))
    body.branch_if(is_ours, *labels)
    program, producer = op.regions
    given, taken = attribute(op, "registers") or (None, None)
    body.begin_block(labels[1])
    with body.scope():
        if given is not None:
            emitter.assembly(warp_ptx.set_registers(given, gives=True))
        _run_first(emitter, producer, attribute(op, "producers"))
    body.begin_block(labels[0])
    if num_warps > 1:
        threads = num_warps * emitter.target.warp_size
        emitter.program_barrier = warp_ptx.named_barrier(PROGRAM_BARRIER, threads)
    if taken is not None:
        emitter.assembly(warp_ptx.set_registers(taken, gives=False))
    emitter.run(program)
    return ()


def _run_first(emitter: Emitter, region: Region, producers: int) -> None:
    """The first producer runs a region; then all of them end."""
    body, done = emitter.body, emitter.body.new_label("done")
    if producers > 1:
        first = body.new_label("first")
        number = str(emitter.options.num_warps)
        is_first = body.compare("icmp eq", I32, emitter.threads.uniform_warp, number)
        body.branch_if(is_first, first, done)
        body.begin_block(first)
    emitter.run(region)
    body.branch(done)
    body.begin_block(done)
    body.do("ret void")
