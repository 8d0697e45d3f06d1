"""The pass that gives dots to the asynchronous tensor cores of Hopper."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout import registers
from blocknumba.gpu_layout.async_ops import buffer_view, stage, wgmma, wgmma_wait
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.planner import element_bits
from blocknumba.gpu_layout.schedule import plan_schedule
from blocknumba.gpu_layout.swizzle import swizzled, widest_swizzle
from blocknumba.gpu_layout.wgmma import refusal
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir import Function, Op, Value, walk
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.shape import transpose
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.types import TileType, float32

FREE_MAJOR_BITS = 16  # operands of this size may lie either way.  Source: PTX ISA, "wgmma"


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a dot that is read from shared memory.

    root: the value that is put there, as its ops made it; axes: axis i of the operand is axis
    axes[i] of the root; minor: the root's axis that its rows run along.
    """

    root: Value
    axes: tuple[int, ...]
    minor: int

    @property
    def staged(self) -> LinearLayout:
        """The layout of the root in shared memory."""
        tile = self.root.type
        bits = element_bits(tile)
        swizzle = widest_swizzle(tile.shape[self.minor], bits)
        return swizzled(tile.shape, self.minor, bits, swizzle)

    @property
    def type(self) -> TileType:
        """The operand, as a view of the same bytes."""
        tile = self.root.type
        shape = tuple(tile.shape[axis] for axis in self.axes)
        return TileType(tile.dtype, shape, registers.transpose(self.staged, self.axes))


@declared(reads=("ops",), writes=("ops",))
def map_wgmma(fn: Function, options: LayoutOptions) -> Function:
    """Dots that the asynchronous tensor cores can do become stage, wgmma and wgmma_wait.

    Operands that are loaded lie in shared memory the way they lie in global memory, transposed or
    not; a first operand that is computed stays in registers.
    """
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    if not dots or "wgmma" not in options.features:
        return fn
    infos = AxisInfos(fn)
    found = {op: _operands(op, infos, options) for op in dots}
    taken = {op: pair for op, pair in found.items() if not isinstance(pair, str)}
    mapped = _Mapper(taken, options).function(fn) if taken else fn
    if _are_rounded(mapped, options):
        return mapped
    taken = {op: pair for op, pair in taken.items() if op.operands[0].type.dtype != float32}
    return _Mapper(taken, options).function(fn) if taken else fn


def _are_rounded(fn: Function, options: LayoutOptions) -> bool:
    """Whether the copy engine brings all float32 operands: nobody else rounds them to tf32."""
    staged = {op for op in walk(fn.body) if op.opdef is stage and op.attrs.get("as_tf32")}
    if not staged:
        return True
    rings = plan_schedule(fn, options).rings
    fetched = {f.stage for ring in rings for group in ring.groups for f in group.fetches}
    return staged <= fetched


def refusals(fn: Function, options: LayoutOptions) -> dict[Op, str]:
    """Per dot that the pass leaves as it is, why."""
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    if "wgmma" not in options.features:
        return dict.fromkeys(dots, "the target has no wgmma")
    infos = AxisInfos(fn)
    found = {op: _operands(op, infos, options) for op in dots}
    return {op: reason for op, reason in found.items() if isinstance(reason, str)}


def _operands(
    op: Op, infos: AxisInfos, options: LayoutOptions
) -> tuple[_Operand | None, _Operand] | str:
    """Where a dot's operands are, None for registers; or why wgmma does not take it."""
    a, b, acc = op.operands
    first, second = _operand(a, 1, infos), _operand(b, 0, infos)
    owner = first.root.owner
    loaded = owner is not None and owner.opdef is load
    left = first.type if loaded else a.type
    reason = refusal(left, second.type, acc.type, attribute(op, "precision"), options.num_warps)
    if reason:
        return reason
    return first if loaded else None, second


class _Mapper(Rebuilder):
    """Re-emits a function; an operand is staged where its root is made."""

    def __init__(
        self, dots: dict[Op, tuple[_Operand | None, _Operand]], options: LayoutOptions
    ):
        super().__init__(folding=False)
        self._num_warps = options.num_warps
        self._operands = dots
        self._staged: dict[tuple[Value, LinearLayout], Value] = {}
        self._at_root: dict[Op, dict[LinearLayout, None]] = {}
        for op, pair in dots.items():
            for operand in filter(None, pair):
                owner = operand.root.owner
                if owner is not None and not owner.regions:
                    self._at_root.setdefault(owner, {})[operand.staged] = None

    def op(self, op: Op) -> None:
        """A copy of one op, of a dot its new form; what is staged is staged behind it."""
        if op in self._operands:
            self.builder.loc = op.loc
            (self[op.result],) = self._dot(op)
        else:
            super().op(op)
        for layout in self._at_root.get(op, ()):
            self._stage(op.result, layout)

    def _dot(self, op: Op) -> Values:
        a, b, acc = op.operands
        placed = [
            self[value] if operand is None else self._in_shared(operand)
            for value, operand in zip((a, b), self._operands[op], strict=True)
        ]
        begun = self.builder.emit(wgmma, *placed, self[acc], num_warps=self._num_warps)
        return (self.builder.emit(wgmma_wait, begun, pending=0, hint=op.result.hint),)

    def _in_shared(self, operand: _Operand) -> Value:
        buffer = self._staged.get((operand.root, operand.staged))
        if buffer is None:  # a value that a loop or a branch hands on
            buffer = self._stage(operand.root, operand.staged)
        viewed = operand.type
        if viewed == buffer.type:
            return buffer
        return self.builder.emit(buffer_view, buffer, shape=viewed.shape, layout=viewed.layout)

    def _stage(self, root: Value, layout: LinearLayout) -> Value:
        buffer = self.builder.emit(
            stage, self[root], layout=layout, as_tf32=root.type.dtype == float32, hint=root.hint
        )
        owner = root.owner
        if owner is not None and not owner.regions:
            self._staged[root, layout] = buffer
        return buffer


def _operand(value: Value, k_axis: int, infos: AxisInfos) -> _Operand:
    """How an operand comes from what is put into shared memory; k_axis: along which it is summed.

    Transposes in between cost nothing: the layout absorbs them.
    """
    axes: tuple[int, ...] = tuple(range(len(value.type.shape)))
    while value.owner is not None and value.owner.opdef is transpose:
        of_value = value.owner.attrs["axes"]
        axes = tuple(of_value[axis] for axis in axes)
        (value,) = value.owner.operands
    minor = axes[k_axis]
    if value.type.dtype.bits == FREE_MAJOR_BITS:
        minor = _contiguous_axis(value, minor, infos)
    return _Operand(value, axes, minor)


def _contiguous_axis(value: Value, otherwise: int, infos: AxisInfos) -> int:
    """The axis along which a loaded tile is contiguous in memory."""
    if value.owner is None or value.owner.opdef is not load:
        return otherwise
    axes = infos[value.owner.operands[0]].axes
    longest = max(axis.contiguity for axis in axes)
    if longest == 1 or axes[otherwise].contiguity == longest:
        return otherwise
    return next(i for i, axis in enumerate(axes) if axis.contiguity == longest)
