"""Code of gathers within a tile: by shuffles from computed lanes, or by reads of shared memory."""

from __future__ import annotations

from blocknumba.gpu_layout.layouts.registers import LANE_BITS
from blocknumba.gpu_layout.ops import shared_gather
from blocknumba.gpu_layout.placement.gathers import LaneGather, gather_plan, row_layout
from blocknumba.nvvm_lower.elements import register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.services.address import index_at
from blocknumba.nvvm_lower.services.shared_memory import from_lane, read_vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops.gather import gather


@code(gather)
def _(emitter: Emitter, op: Op, x: Registers, indices: Registers) -> Registers:
    type_, axis, body = op.x.type, op.attrs["axis"], emitter.body
    plan = gather_plan(op.result.type.layout, type_.shape, axis, type_.dtype.bits)
    assert plan is not None, f"{op.result.type} needs shared memory"
    found = []
    for register, index in enumerate(indices):
        inside = _inside(emitter, index, type_.shape[axis])
        first = plan.rows[register]
        candidates = [x[first + plan.step * i] for i in range(plan.candidates)]
        if plan.lane_bits:
            lane = _source_lane(emitter, plan, index)
            candidates = [from_lane(emitter, type_.dtype, value, lane) for value in candidates]
        value = _chosen(emitter, register_type(type_.dtype), candidates, index,
                        len(plan.lane_bits))
        found.append(body.select(inside, register_type(type_.dtype), value, zero(type_.dtype)))
    return found


@code(shared_gather)
def _(emitter: Emitter, op: Op, buffer: Registers, indices: Registers) -> Registers:
    held, axis, body = op.buffer.type, op.attrs["axis"], emitter.body
    type_ = register_type(held.dtype)
    rows = row_layout(op.indices.type.layout, held.shape, axis)
    step = 1
    for extent in held.shape[axis + 1:]:
        step *= extent
    found = []
    for register, index in enumerate(indices):
        inside = _inside(emitter, index, held.shape[axis])
        # a read must stay inside the buffer
        safe = body.select(inside, I32, index, "0")
        row = index_at(body, emitter.threads, rows, register)
        offset = body.binary("add", I32, row, body.binary("mul", I32, safe, str(step)))
        (value,) = read_vector(emitter, held.dtype, buffer[0], offset, 1)
        found.append(body.select(inside, type_, value, zero(held.dtype)))
    return found


def _inside(emitter: Emitter, index: str, extent: int) -> str:
    """Whether an index is in [0, extent): taken as unsigned, a negative one is greater."""
    return emitter.body.compare("icmp ult", I32, index, str(extent))


def _source_lane(emitter: Emitter, plan: LaneGather, index: str) -> str:
    """This lane, with the low bits of the index in the lane bits of the axis."""
    body = emitter.body
    mask = sum(1 << bit for bit in plan.lane_bits)
    kept = (1 << LANE_BITS) - 1 & ~mask
    lane = body.binary("and", I32, emitter.threads.lane, str(kept)) if kept else "0"
    by_distance: dict[int, int] = {}
    for bit, lane_bit in enumerate(plan.lane_bits):
        by_distance[lane_bit - bit] = by_distance.get(lane_bit - bit, 0) | 1 << bit
    for distance, bits in by_distance.items():
        part = body.binary("and", I32, index, str(bits))
        if distance:
            part = body.binary("shl", I32, part, str(distance))
        lane = part if lane == "0" else body.binary("or", I32, lane, part)
    return lane


def _chosen(emitter: Emitter, type_: str, candidates: Registers, index: str,
            first_bit: int) -> str:
    """The candidate whose number is in the bits of an index from first_bit on."""
    body = emitter.body
    bit = first_bit
    while len(candidates) > 1:
        chosen = body.binary("and", I32, index, str(1 << bit))
        is_set = body.compare("icmp ne", I32, chosen, "0")
        candidates = [body.select(is_set, type_, high, low)
                      for low, high in zip(candidates[::2], candidates[1::2])]
        bit += 1
    return candidates[0]
