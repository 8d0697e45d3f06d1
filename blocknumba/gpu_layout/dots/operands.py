"""Operands of dots in shared memory: which value is staged there, and the view that the dot reads.

A transposed operand is not copied.  `transpose` is looked through to its root, the root is staged
in the layout that its memory has, and the dot reads the same bytes through a transposed layout.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import buffer_view, stage
from blocknumba.gpu_layout.layouts import registers
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Rewrite
from blocknumba.tile_ir.ir.types import float32
from blocknumba.tile_ir.ops.cast import bitcast, cast
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.shape import transpose


@dataclass(frozen=True, slots=True)
class Root:
    """The value that an operand is a transposed view of.

    value: before any transpose.  axes: axis i of the operand is axis axes[i] of the value.
    """

    value: Value
    axes: tuple[int, ...]

    def viewed(self, layout: LinearLayout) -> LinearLayout:
        """The layout in which the operand reads the bytes of a root that has this layout."""
        return registers.transpose(layout, self.axes)

    def stored(self, layout: LinearLayout) -> LinearLayout:
        """The layout that the root needs for the operand to read it in this layout."""
        return registers.transpose(layout, registers.inverse_axes(self.axes))


def root_of(value: Value) -> Root:
    """The root of an operand: transposes cost nothing, since the layout absorbs them."""
    axes: tuple[int, ...] = tuple(range(len(value.type.shape)))
    while value.owner is not None and value.owner.opdef is transpose:
        of_value = value.owner.attrs["axes"]
        axes = tuple(of_value[axis] for axis in axes)
        value = value.owner.x
    return Root(value, axes)


def loaded(value: Value) -> Root | None:
    """The load that a tile is computed from by elementwise ops; None if there is none."""
    seen: set[Value] = set()
    waiting = [Root(value, tuple(range(len(value.type.shape))))]
    while waiting:
        found = waiting.pop()
        root = root_of(found.value)
        root = Root(root.value, tuple(root.axes[axis] for axis in found.axes))
        op = root.value.owner
        if op is None or root.value in seen:
            continue
        if op.opdef is load:
            return root
        seen.add(root.value)
        if _is_elementwise(op):
            waiting += [Root(operand, root.axes) for operand in reversed(op.operands)]
    return None


def contiguous_axis(value: Value, infos: AxisInfos, otherwise: int) -> int:
    """The axis of a tile along which the load that it is computed from is contiguous.

    otherwise: the axis returned where nothing is known, or where it is as contiguous as another.
    """
    source = loaded(value)
    if source is None:
        return otherwise
    axes = infos[source.value.owner.pointer].axes
    runs = [axes[axis].contiguity for axis in source.axes]
    return otherwise if runs[otherwise] == max(runs) else runs.index(max(runs))


def computed_from(value: Value, ops: set[Op]) -> Op | None:
    """The op among `ops` from whose result a tile is computed by elementwise ops; None if none."""
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        op = waiting.pop().owner
        if op in ops:
            return op
        if op is not None and _is_elementwise(op):
            waiting += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)
    return None


def _is_elementwise(op: Op) -> bool:
    return op.opdef.has(ELEMENTWISE) or op.opdef in (cast, bitcast)


class StagingRebuilder(Rebuilder):
    """Rebuilder that stages roots in shared memory right where they are defined.

    So a tile is staged no more often than it is computed, and once for all its readers.
    as_tf32: float32 tiles are rounded when they are staged.
    """

    def __init__(self, rewrite: Rewrite, staged: Iterable[tuple[Root, LinearLayout]],
                 as_tf32: bool = False):
        super().__init__(rewrite, folding=False)
        self._as_tf32 = as_tf32
        self._buffers: dict[tuple[Value, LinearLayout], Value] = {}
        self._wanted: dict[Value, dict[LinearLayout, None]] = {}
        for root, layout in staged:
            self._wanted.setdefault(root.value, {})[layout] = None

    def region(self, region: Region) -> Region:
        """A copy of a region, with buffers of its arguments."""
        types, hints = [arg.type for arg in region.args], [arg.hint for arg in region.args]
        with self.builder.region(*types, hints=hints) as (copy, args):
            for old, new in zip(region.args, args, strict=True):
                self[old] = new
                self._stage(old)
            self.ops(region.ops)
        return copy

    def op(self, op: Op) -> None:
        """Emit one op again, and buffers of its results."""
        super().op(op)
        for value in op.results:
            self._stage(value)

    def buffer(self, root: Root, layout: LinearLayout) -> Value:
        """The view of a staged root that an operand reads; layout: of the root."""
        buffer = self._buffers[root.value, layout]
        if root.axes == tuple(range(len(root.axes))):
            return buffer
        shape = tuple(root.value.type.shape[axis] for axis in root.axes)
        return self.builder.emit(buffer_view, buffer, shape=shape, layout=root.viewed(layout))

    def _stage(self, value: Value) -> None:
        rounding = {"as_tf32": True} if self._as_tf32 and value.type.dtype == float32 else {}
        for layout in self._wanted.get(value, ()):
            self._buffers[value, layout] = self.builder.emit(
                stage, self[value], layout=layout, hint=value.hint, **rounding)
