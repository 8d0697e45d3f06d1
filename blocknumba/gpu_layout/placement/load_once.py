"""The pass that loads elements once of which runs have one address, and broadcasts them.

    %q = %i // 8                        eight neighbours in one word
    %w = load (%p + %q) : 64 x 32       becomes   %v = load : 8 x 32
                                                  %w = reshape (broadcast %v) : 64 x 32

The addresses of the smaller load are made again from as much of what made the larger ones as
is arithmetic; what else there is, such as pointers that a loop carries, is taken from the tile.
"""

from __future__ import annotations

from blocknumba.gpu_layout.async_copies.ops import stage
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.sampling import Runs, Sampler
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.folds.patterns import filled
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.shape import broadcast, reshape
from blocknumba.tile_ir.passes.contract import declared


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


def _runs_of(infos: AxisInfos, op: Op) -> Runs | None:
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
    return Runs(lengths.index(longest), longest) if longest > 1 else None


def _loaded_once(rebuilder: Rebuilder, op: Op, runs: Runs) -> Value:
    """The tile of a load, by way of one element for each run."""
    builder, shape = rebuilder.builder, op.result.type.shape
    sampler = Sampler(rebuilder)
    operands = [sampler.sample(value, runs) for value in (op.pointer, op.mask)
                if value is not None]
    if op.other is not None:
        other = constant_of(op.other).item()
        operands.append(filled(builder, op.other.type.shaped(runs.shorten(shape)), other))
    value = builder.emit(load, *operands, hint=op.result.hint, **op.attrs)
    wide = builder.emit(reshape, value, shape=runs.apart(shape, 1))
    wide = builder.emit(broadcast, wide, shape=runs.apart(shape, runs.length))
    return builder.emit(reshape, wide, shape=shape)
