"""The pass that takes small parts of large tiles in steps.

    %y = extract %x : 512 to 1     becomes   %v = extract %x : 512 to 32
                                             %y = extract %v : 32 to 1

A thread that holds an element of a part holds those of x that the part leaves out, in further
registers: of one element out of 512 every thread would hold all 512.  In steps threads hold few,
and between steps the rest is spread over them anew.
"""

from __future__ import annotations

from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ops.shape import extract
from blocknumba.tile_ir.passes.contract import declared

MAX_LEFT_OUT = 16  # elements of x for each one of a part, in one step

Shape = tuple[int, ...]


@declared(reads=("ops",), writes=("ops",))
def extract_in_steps(fn: Function, _options: LayoutOptions) -> Function:
    """Emit extracts that leave out much as several, each of MAX_LEFT_OUT to one at most."""
    if not any(op.opdef is extract and _is_small(op) for op in walk(fn.body)):
        return fn
    return _Steps(folding=False).function(fn)


def _is_small(op: Op) -> bool:
    return op.x.type.size > MAX_LEFT_OUT * op.result.type.size


class _Steps(Rebuilder):
    """Rebuilder that emits extracts of small parts in steps."""

    def op(self, op: Op) -> None:
        if op.opdef is not extract or not _is_small(op):
            super().op(op)
            return
        self.builder.loc = op.loc
        self[op.result] = _in_steps(self.builder, self[op.x], op.attrs["starts"],
                                    op.result.type.shape, op.result.hint)


def _in_steps(builder: Builder, x: Value, starts: Shape, shape: Shape, hint: str) -> Value:
    """The part of x of a shape from starts on."""
    while x.type.size > MAX_LEFT_OUT * x.type.shaped(shape).size:
        step = _step(x.type.shape, shape)
        firsts = tuple(start // n * n for start, n in zip(starts, step))
        x = builder.emit(extract, x, starts=firsts, shape=step)
        starts = tuple(start - first for start, first in zip(starts, firsts))
    return builder.emit(extract, x, starts=starts, shape=shape, hint=hint)


def _step(given: Shape, wanted: Shape) -> Shape:
    """The shape of a part of MAX_LEFT_OUT-th of a shape, cut along the first axes."""
    step, left = list(given), MAX_LEFT_OUT
    for axis, (extent, own) in enumerate(zip(given, wanted)):
        cut = min(left, extent // own)
        step[axis], left = extent // cut, left // cut
    return tuple(step)
