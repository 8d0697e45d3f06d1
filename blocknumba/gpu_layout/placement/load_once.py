"""The pass that loads elements once of which runs have one address, and broadcasts them.

    %q = %i // 8                        eight neighbours in one word
    %w = load (%p + %q) : 64 x 32       becomes   %v = load : 8 x 32
                                                  %w = reshape (broadcast %v) : 64 x 32

The addresses of the smaller load are made again from as much of what made the larger ones as
is arithmetic; what else there is, such as pointers that a loop carries, is taken from the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import stage
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.folds.patterns import filled
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ops import elementwise
from blocknumba.tile_ir.ops.create import arange
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.shape import broadcast, extract, reshape, splat
from blocknumba.tile_ir.passes.contract import declared

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of `length` equal elements along an axis."""

    axis: int
    length: int

    def shorten(self, shape: Shape) -> Shape:
        """The shape with one element for each run."""
        extent = shape[self.axis] // self.length
        return (*shape[:self.axis], extent, *shape[self.axis + 1:])

    def apart(self, shape: Shape, length: int) -> Shape:
        """The shape with an axis for runs, of which so many elements are left."""
        extent = shape[self.axis] // self.length
        return (*shape[:self.axis], extent, length, *shape[self.axis + 1:])


@declared(reads=("ops",), writes=("ops",))
def load_once(fn: Function, _options: LayoutOptions) -> Function:
    """Load one element of every run that has one address and one mask, and broadcast it.

    Loads that a dot reads from shared memory stay: the copy there is asynchronous.
    """
    staged = {op.x for op in walk(fn.body) if op.opdef is stage}
    loads = [op for op in walk(fn.body) if op.opdef is load and op.result not in staged]
    infos = AxisInfos(fn) if loads else {}
    found = {op: runs for op in loads if (runs := _runs_of(infos, op)) is not None}

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
        return (_loaded_once(rebuilder, op, found[op]),) if op in found else None

    return rebuild(fn, rewrite) if found else fn


def _runs_of(infos: AxisInfos, op: Op) -> _Runs | None:
    """The longest runs of a load's elements that are surely equal; None without any."""
    shape = op.result.type.shape
    if not shape or attribute(op, "volatile") or (
            op.other is not None and constant_of(op.other) is None):
        return None
    lengths = []
    for axis, extent in enumerate(shape):
        equal = [infos[value].axes[axis].constancy for value in (op.pointer, op.mask)
                 if value is not None]
        lengths.append(min(extent, *equal))
    longest = max(lengths)
    return _Runs(lengths.index(longest), longest) if longest > 1 else None


def _loaded_once(rebuilder: Rebuilder, op: Op, runs: _Runs) -> Value:
    """The tile of a load, by way of one element for each run."""
    builder, shape = rebuilder.builder, op.result.type.shape
    sampler = _Sampler(rebuilder)
    operands = [sampler.sample(value, runs) for value in (op.pointer, op.mask)
                if value is not None]
    if op.other is not None:
        other = constant_of(op.other).item()
        operands.append(filled(builder, op.other.type.shaped(runs.shorten(shape)), other))
    value = builder.emit(load, *operands, hint=op.result.hint, **op.attrs)
    wide = builder.emit(reshape, value, shape=runs.apart(shape, 1))
    wide = builder.emit(broadcast, wide, shape=runs.apart(shape, runs.length))
    return builder.emit(reshape, wide, shape=shape)


class _Sampler:
    """Makes tiles that have the first element of every run of others."""

    def __init__(self, rebuilder: Rebuilder):
        self._rebuilder = rebuilder
        self._made: dict[tuple[Value, _Runs], Value] = {}

    def sample(self, value: Value, runs: _Runs) -> Value:
        """The new tile for an old one, of the shortened shape."""
        key = value, runs
        if key not in self._made:
            made = self._again(value, runs) if value.owner is not None else None
            self._made[key] = made if made is not None else self._extracted(value, runs)
        return self._made[key]

    def _again(self, value: Value, runs: _Runs) -> Value | None:
        """A tile made as the old one was; None where that is not arithmetic."""
        op, emit, shape = value.owner, self._rebuilder.builder.emit, value.type.shape
        if op.opdef is splat:
            return emit(splat, self._rebuilder[op.x], shape=runs.shorten(shape))
        if op.opdef is arange:
            return self._range(op, runs)
        if op.opdef.has(ELEMENTWISE):
            return emit(op.opdef, *[self.sample(x, runs) for x in op.operands], **op.attrs)
        if op.opdef is broadcast:
            inner = self._rebuilder[op.x] if op.x.type.shape[runs.axis] == 1 else self.sample(
                op.x, runs)
            return emit(broadcast, inner, shape=runs.shorten(shape))
        if op.opdef is reshape:
            axis = _axis_before(op, runs.axis)
            if axis is not None:
                inner = self.sample(op.x, _Runs(axis, runs.length))
                return emit(reshape, inner, shape=runs.shorten(shape))
        return None

    def _range(self, op: Op, runs: _Runs) -> Value:
        builder, size = self._rebuilder.builder, op.attrs["size"] // runs.length
        made = builder.emit(arange, start=0, size=size)
        for opdef, number in ((elementwise.mul, runs.length), (elementwise.add, op.attrs["start"])):
            made = builder.emit(opdef, made, filled(builder, made.type, number))
        return made

    def _extracted(self, value: Value, runs: _Runs) -> Value:
        builder, shape = self._rebuilder.builder, value.type.shape
        apart = builder.emit(reshape, self._rebuilder[value], shape=runs.apart(shape, runs.length))
        one = builder.emit(extract, apart, starts=(0,) * (len(shape) + 1),
                           shape=runs.apart(shape, 1))
        return builder.emit(reshape, one, shape=runs.shorten(shape))


def _axis_before(op: Op, axis: int) -> int | None:
    """The axis that a reshape keeps as this one; None if it cuts or joins it."""
    before, after = op.x.type.shape, op.result.type.shape
    if tuple(n for n in before if n > 1) != tuple(n for n in after if n > 1):
        return None
    place = sum(n > 1 for n in after[:axis])
    return [index for index, n in enumerate(before) if n > 1][place]
