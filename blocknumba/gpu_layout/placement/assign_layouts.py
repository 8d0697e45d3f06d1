"""The pass that assigns a layout to every tile, as the planner chose it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.shared import is_buffer, register_layout
from blocknumba.gpu_layout.ops import convert_layout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.coalescing import Accesses
from blocknumba.gpu_layout.placement.planner import PreferredLayouts, Layout, Planner
from blocknumba.gpu_layout.placement.rule import placement_of
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import TERMINATOR
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.passes.contract import declared

MAX_TRIALS = 16  # plans with a carried tile in another layout: each takes as long as the first


@declared(reads=("ops",), writes=("ops", "layouts"))
def assign_layouts(fn: Function, options: LayoutOptions) -> Function:
    """Give every tile a layout, and every op operands in the layouts that its placement requires.

    A tile that is required in several layouts is computed again in each or moved, whichever costs
    less.  Both happen where the tile is defined, so never more often than it is computed.  A tile
    that a loop carries is carried where it is moved to, if that costs less.  Dead ops are left out.
    """
    accesses = Accesses(fn, options)
    fixed: dict[Value, LinearLayout] = {}
    preferred, planner = _planned(fn, accesses, options, fixed)
    for change in [*islice(filter(None, planner.carried_elsewhere()), MAX_TRIALS)]:
        trial = _planned(fn, accesses, options, fixed | change)
        if trial[1].cost() < planner.cost():
            fixed |= change
            preferred, planner = trial
    return _Emitter(planner, preferred).function(fn)


def _planned(fn: Function, accesses: Accesses, options: LayoutOptions,
             fixed: Mapping[Value, LinearLayout]) -> tuple[PreferredLayouts, Planner]:
    preferred = PreferredLayouts(fn, accesses, options, fixed)
    return preferred, Planner(fn, accesses, preferred, options.num_warps)


class _Emitter:
    """Emits every op once for each of its layouts, and keeps each value in each of its layouts."""

    def __init__(self, planner: Planner, preferred: PreferredLayouts):
        self._planner = planner
        self._preferred = preferred
        self._builder = Builder(folding=False)
        self._emitted: dict[tuple[Value, Layout], Value] = {}

    def function(self, fn: Function) -> Function:
        """fn with layouts."""
        return fn.with_body(self._region(fn.body))

    def _region(self, region: Region, results: tuple[Value, ...] = ()) -> Region:
        """region with layouts.   results: of its op, to which it yields."""
        types = tuple(_with_layout(arg.type, self._preferred[arg]) for arg in region.args)
        hints = [arg.hint for arg in region.args]
        with self._builder.region(*types, hints=hints) as (new, args):
            for old, arg in zip(region.args, args, strict=True):
                self._emitted[old, register_layout(arg.type)] = arg
                self._move(old)
            for op in region.ops:
                self._builder.loc = op.loc
                self._op(op, results)
        return new

    def _op(self, op: Op, yielded: tuple[Value, ...]) -> None:
        if op.regions:
            self._control(op)
        elif op.opdef.has(TERMINATOR):
            first = len(op.operands) - len(yielded)
            layouts = (None,) * first + tuple(self._preferred[value] for value in yielded)
            self._emit(op, layouts, ())
        else:
            for layout in self._planner.layouts.get(op, ()):
                self._compute(op, layout)
        for value in op.results:
            self._move(value)

    def _compute(self, op: Op, layout: Layout) -> None:
        """Emit one op in one layout."""
        if layout is None:
            self._emit(op, (None,) * len(op.operands), (None,) * len(op.results))
            return
        placement = placement_of(op)
        made = placement.result(op, layout) if op.results else None
        self._emit(op, placement.operands(op, layout), (made,) * len(op.results))

    def _control(self, op: Op) -> None:
        preferred = tuple(self._preferred[value] for value in op.results)
        regions = tuple(self._region(region, op.results) for region in op.regions)
        carried = len(preferred) if op.regions[0].args else 0
        scalars = len(op.operands) - carried
        self._builder.loc = op.loc
        self._emit(op, (None,) * scalars + preferred[:carried], preferred, regions)

    def _emit(
        self,
        op: Op,
        operands: tuple[Layout, ...],
        results: tuple[Layout, ...],
        regions: tuple[Region, ...] = (),
    ) -> None:
        """Emit an op with its operands and results in these layouts."""
        values = [self._emitted[pair] for pair in zip(op.operands, operands, strict=True)]
        pairs = zip(op.results, results, strict=True)
        types = tuple(_with_layout(value.type, layout) for value, layout in pairs)
        attrs = dict(op.attrs)
        if "result_types" in attrs:
            attrs["result_types"] = types
        new = self._builder.make(op.opdef, values, regions, "", types, attrs)
        self._builder.append(new)
        for old, value in zip(op.results, new.results, strict=True):
            value.hint = old.hint
            self._emitted[old, register_layout(value.type)] = value

    def _move(self, value: Value) -> None:
        """Move a value to the layouts that the plan moves it to."""
        plan = self._planner.values.get(value)
        for source, destination in plan.moves if plan is not None else ():
            moved = self._builder.emit(
                convert_layout, self._emitted[value, source], layout=destination, hint=value.hint
            )
            self._emitted[value, destination] = moved


def _with_layout(tile: TileType, layout: LinearLayout | None) -> TileType:
    return tile if is_buffer(tile) else TileType(tile.dtype, tile.shape, layout)
