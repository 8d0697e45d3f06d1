"""Operands of mma.sync that TMA rounds to tf32, so that no warp that reads them has to.

A 64 x 64 operand that four warps read is rounded four times by mma.sync's readers, in 128
instructions each; TMA rounds it on its way to shared memory, to the same numbers.
"""

from __future__ import annotations

from blocknumba.gpu_layout.async_copies.ops import buffer_view, stage
from blocknumba.gpu_layout.async_copies.schedule import plan_schedule, stage_of
from blocknumba.gpu_layout.dots.ops import mma
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.types import float32
from blocknumba.tile_ir.ir.uses import Uses


def rounded_by_tma(fn: Function, options: LayoutOptions) -> Function:
    """A function in which TMA rounds what it fetches for dots of tf32 alone."""
    uses = Uses(fn)
    readers = {op: _readers(op.result, uses) for op in walk(fn.body) if op.opdef is stage
               and op.result.type.dtype == float32 and not attribute(op, "as_tf32")}
    readers = {op: dots for op, dots in readers.items() if dots and all(map(_rounds, dots))
               and all(user.opdef is stage and user in readers for user in uses.users(op.x))}
    if not readers:
        return fn
    fetched = {fetch.stage for ring in plan_schedule(fn, options).rings
               for group in ring.groups for fetch in group.fetches}
    # a load that is staged twice is rounded in both, or in none
    staged = {op for op in readers if fetched >= set(uses.users(op.x))
              and readers.keys() >= set(uses.users(op.x))}
    dots = {dot for op in staged for dot in readers[op]}

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
        if op in staged:
            changed = {"as_tf32": True}
        elif op in dots:
            changed = {"rounded": tuple(number for number, value in enumerate((op.a, op.b))
                                        if stage_of(value) in staged)}
        else:
            return None
        return (rebuilder.builder.emit(op.opdef, *(rebuilder[value] for value in op.operands),
                                       hint=op.result.hint, **op.attrs | changed),)

    return rebuild(fn, rewrite, folding=False)


def _readers(buffer: Value, uses: Uses) -> list[Op]:
    """The ops that read a buffer, through views of it too."""
    return [reader for user in uses.users(buffer) for reader in (
        _readers(user.result, uses) if user.opdef is buffer_view else [user])]


def _rounds(op: Op) -> bool:
    return op.opdef is mma and attribute(op, "precision") == "tf32"
