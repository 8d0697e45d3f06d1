"""Overlap of iterations: the wgmma of one is under way while the next one begins.

It is possible where nothing but wgmma touches the accumulators in a loop:

    iteration k:   begin wgmma k; wait for wgmma k - 1; what wgmma k - 1 read is free

So the tensor cores have work while threads wait, fetch and compute addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.gpu_layout.async_copies.ops import buffer_view, wgmma_wait
from blocknumba.gpu_layout.async_copies.reads import last_reads
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.uses import Uses, carried


def late_waits(loop: Op, stages: Sequence[Op], uses: Uses) -> tuple[Op, ...]:
    """The wgmma_wait ops of a `for` that may wait for the iteration before; empty if not all may.

    stages: the ops whose buffers are slots of a ring, which outlive an iteration.  Only wgmma may
    read them, and every wgmma of the loop reads one.
    """
    (region,) = loop.regions
    read = [op for op in last_reads(uses, stages) if op not in stages]
    waits = tuple(op for op in region.ops if op.opdef is wgmma_wait and op in read)
    every = [op for op in walk(region) if op.opdef is wgmma_wait]
    if list(waits) != every or set(read) != set(waits):
        return ()
    if not all(_only_accumulates(op, loop, uses) for op in waits):
        return ()
    begun = [wait.value.owner for wait in waits]
    operands = (value for op in begun for value in (op.a, op.b))
    if not all(_outlives_iteration(value, stages, region) for value in operands):
        return ()
    return waits


def result_of(wait: Op, loop: Op) -> Value:
    """The result of a loop that the result of one of its late waits becomes."""
    return loop.results[carried(loop).following.index(wait.result)]


def _outlives_iteration(operand: Value, stages: Sequence[Op], region: Region) -> bool:
    """Whether an operand of wgmma lasts into the next iteration: in the ring, or invariant."""
    while operand.owner is not None and operand.owner.opdef is buffer_view:
        operand = operand.owner.buffer
    return operand.owner in stages or operand.owner not in set(walk(region))


def _only_accumulates(wait: Op, loop: Op, uses: Uses) -> bool:
    """Whether a wgmma adds to a loop-carried value that nothing else in the loop touches."""
    begun = wait.value.owner
    values, end = carried(loop), loop.regions[0].terminator
    accumulator = begun.acc
    if accumulator not in values.args or uses.users(accumulator) != [begun]:
        return False
    index = values.args.index(accumulator)
    return uses.users(wait.result) == [end] and values.following[index] is wait.result
