"""Exchange within warps: elements between lanes, and tiles between layouts."""

from __future__ import annotations

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import RegisterMove, Select, ShuffleMove, plan_move
from blocknumba.gpu_layout.layouts.registers import LANE_BITS, REGISTER
from blocknumba.nvvm_lower.elements import element_bits, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.ptx import warp as ptx
from blocknumba.nvvm_lower.services.words import Dtype, of_words, shuffle_type, to_words


def from_lane_xor(emitter: Emitter, dtype: Dtype, value: str, mask: int) -> str:
    """The element of this register in lane ^ mask."""
    row = ptx.shuffle("bfly", shuffle_type(dtype), mask)
    words = to_words(emitter, dtype, value)
    return of_words(emitter, dtype, [emitter.assembly(row, word)[0] for word in words])


def from_lane(emitter: Emitter, dtype: Dtype, value: str, lane: str) -> str:
    """The element of this register in a lane, an i32 that may differ from thread to thread."""
    row = ptx.shuffle_from(shuffle_type(dtype))
    words = to_words(emitter, dtype, value)
    return of_words(emitter, dtype, [emitter.assembly(row, word, lane)[0] for word in words])


def moved(emitter: Emitter, dtype: Dtype, values: Registers, source: LinearLayout,
          wanted: LinearLayout) -> Registers:
    """A tile in layout source converted to layout wanted, without shared memory.

    wanted may hold elements several times, or only some of them.
    """
    if source == wanted:
        return values
    plan = plan_move(source, wanted, element_bits(dtype))
    if isinstance(plan, RegisterMove):
        return [values[register] for register in plan.sources]
    assert isinstance(plan, ShuffleMove), f"{source} to {wanted} needs shared memory"
    offered = _selected(emitter, dtype, values, plan.before)
    received = _shuffled(emitter, dtype, offered, plan)
    return _selected(emitter, dtype, received, plan.after)


def shifted(emitter: Emitter, dtype: Dtype, values: Registers, layout: LinearLayout,
            distance: int) -> Registers:
    """The tile in which element i is element i ^ distance of values (packed indices)."""
    location = gf2.solve(layout.columns, distance)
    assert location is not None, f"{layout} does not hold every element"
    register_bits = layout.bits(REGISTER)
    register, thread = location & (1 << register_bits) - 1, location >> register_bits
    assert not thread >> LANE_BITS, f"{layout} shifted by {distance} needs shared memory"
    turned = [values[i ^ register] for i in range(len(values))]
    if not thread:
        return turned
    return [from_lane_xor(emitter, dtype, value, thread) for value in turned]


def _selected(emitter: Emitter, dtype: Dtype, values: Registers,
              selects: tuple[Select, ...]) -> Registers:
    type_ = register_type(dtype)
    for select in selects:
        is_on = emitter.threads.parity(select.thread_mask)
        values = [emitter.body.select(is_on, type_, values[i ^ select.register_xor], value)
                  for i, value in enumerate(values)]
    return values


def _shuffled(emitter: Emitter, dtype: Dtype, offered: Registers, plan: ShuffleMove) -> Registers:
    """Step 2 of a ShuffleMove; equal steps are one shuffle."""
    if plan.stays_in_lane:
        return [offered[step.register] for step in plan.rounds]
    base = emitter.threads.image(plan.source_lane)
    received: dict[object, str] = {}
    for step in plan.rounds:
        if step not in received:
            lane = (emitter.body.binary("xor", I32, base, str(step.lane_xor)) if step.lane_xor
                    else base)
            received[step] = from_lane(emitter, dtype, offered[step.register], lane)
    return [received[step] for step in plan.rounds]
