"""The pass that lowers dots to wgmma, Hopper's asynchronous tensor core instruction.

    %c = dot %a, %b, %acc       ->    %sa = stage %a       into shared memory; later TMA or cp.async
                                      %sb = stage %b
                                      %p  = wgmma %sa, %sb, %acc      starts
                                      %c  = wgmma_wait %p             ends
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import stage, wgmma, wgmma_wait
from blocknumba.gpu_layout.async_copies.schedule import plan_schedule
from blocknumba.gpu_layout.dots.operands import Root, StagingRebuilder, contiguous_axis, root_of
from blocknumba.gpu_layout.dots.wgmma import FREE_MAJOR_BITS, refusal
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.shared import swizzled, widest_swizzle
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.rebuild import Values
from blocknumba.tile_ir.ir.types import TileType, float32
from blocknumba.tile_ir.ir.remarks import NOT_WGMMA, Remark
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.passes.contract import declared

# TMA rounds float32 to tf32 while it copies; threads that copy do not
NOT_ROUNDED = "its operands are not all copied by TMA, which rounds them to tf32"


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a dot that is read from shared memory.

    root: the value that is staged there.  minor: its axis that is contiguous there.
    """

    root: Root
    minor: int

    @property
    def staged(self) -> LinearLayout:
        """The layout of the root in shared memory."""
        tile = self.root.value.type
        bits = element_bits(tile)
        swizzle = widest_swizzle(tile.shape[self.minor], bits)
        return swizzled(tile.shape, self.minor, bits, swizzle)

    @property
    def type(self) -> TileType:
        """The type of the operand: a view of the same bytes."""
        tile = self.root.value.type
        shape = tuple(tile.shape[axis] for axis in self.root.axes)
        return TileType(tile.dtype, shape, self.root.viewed(self.staged))


@declared(reads=("ops",), writes=("ops",))
def map_wgmma(fn: Function, options: LayoutOptions) -> Function:
    """Lower the dots that wgmma can do to stage, wgmma and wgmma_wait.

    Operands that are loaded are staged in shared memory, contiguous along the axis that is
    contiguous in global memory.  An operand a that is computed stays in registers.
    """
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    if "wgmma" not in options.features:
        return _refused(fn, dict.fromkeys(dots, "the target has no wgmma"))
    if not dots:
        return fn
    infos = AxisInfos(fn)
    found = {op: _operands(op, infos, options) for op in dots}
    taken = {op: pair for op, pair in found.items() if not isinstance(pair, str)}
    fn = _refused(fn, {op: reason for op, reason in found.items() if isinstance(reason, str)})
    mapped = _mapped(fn, taken, options)
    if _are_rounded(mapped, options):
        return mapped
    by_threads = [op for op in taken if op.a.type.dtype == float32]
    fn = _refused(fn, dict.fromkeys(by_threads, NOT_ROUNDED))
    taken = {op: pair for op, pair in taken.items() if op.a.type.dtype != float32}
    return _mapped(fn, taken, options)


def _refused(fn: Function, reasons: Mapping[Op, str]) -> Function:
    """A function with remarks that say why dots are not lowered to wgmma."""
    return fn.remarked(Remark.of(NOT_WGMMA, op.loc, reason=reason)
                       for op, reason in reasons.items())


def _are_rounded(fn: Function, options: LayoutOptions) -> bool:
    """Whether TMA copies all float32 operands: nothing else rounds them to tf32."""
    staged = {op for op in walk(fn.body) if op.opdef is stage and op.attrs.get("as_tf32")}
    if not staged:
        return True
    rings = plan_schedule(fn, options).rings
    fetched = {f.stage for ring in rings for group in ring.groups for f in group.fetches}
    return staged <= fetched


def _operands(
    op: Op, infos: AxisInfos, options: LayoutOptions
) -> tuple[_Operand | None, _Operand] | str:
    """The operands of a dot in shared memory, None for registers; or why wgmma cannot do it."""
    a, b, acc = op.a, op.b, op.acc
    first, second = _operand(a, 1, infos), _operand(b, 0, infos)
    owner = first.root.value.owner
    loaded = owner is not None and owner.opdef is load
    left = first.type if loaded else a.type
    reason = refusal(left, second.type, acc.type, attribute(op, "precision"), options.num_warps)
    if reason:
        return reason
    return first if loaded else None, second


def _mapped(
    fn: Function, dots: dict[Op, tuple[_Operand | None, _Operand]], options: LayoutOptions
) -> Function:
    """A function in which some dots are replaced by wgmma."""
    if not dots:
        return fn

    def rewrite(rebuilder: StagingRebuilder, op: Op) -> Values | None:
        if op not in dots:
            return None
        placed = [
            rebuilder[value] if operand is None else rebuilder.buffer(operand.root, operand.staged)
            for value, operand in zip(op.operands, dots[op], strict=False)
        ]
        emit, acc = rebuilder.builder.emit, rebuilder[op.acc]
        begun = emit(wgmma, *placed, acc, num_warps=options.num_warps)
        return (emit(wgmma_wait, begun, pending=0, hint=op.result.hint),)

    staged = [(o.root, o.staged) for pair in dots.values() for o in pair if o is not None]
    return StagingRebuilder(rewrite, staged, as_tf32=True).function(fn)


def _operand(value: Value, k_axis: int, infos: AxisInfos) -> _Operand:
    """The operand of a dot in shared memory.

    k_axis: its contracted axis.
    """
    root = root_of(value)
    minor = root.axes[k_axis]
    if root.value.type.dtype.bits == FREE_MAJOR_BITS:
        minor = contiguous_axis(root.value, infos, minor)
    return _Operand(root, minor)
