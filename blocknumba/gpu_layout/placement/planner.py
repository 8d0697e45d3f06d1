"""Where each tile of a function would be by itself, before anything is weighed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import move_cost
from blocknumba.gpu_layout.layouts.registers import in_rows, register_count
from blocknumba.gpu_layout.layouts.shared import in_registers
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.coalescing import Accesses
from blocknumba.gpu_layout.placement.rule import placement_of
from blocknumba.tile_ir.ir.carried import controls, is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import PURE, READS, TERMINATOR, WRITES
from blocknumba.tile_ir.ir.types import TileType


class PreferredLayouts:
    """homes[value]: the layout that a tile has naturally; None if any will do, and
    for scalars and buffers.

    Accesses to memory are coalesced, other ops follow their operands, and what is made from scalars
    alone is at home nowhere.  Values that a loop or an `if` hands on always have a home, because
    they have one layout for all rounds: the one the body makes them in, else the first one wanted.
    """

    def __init__(self, fn: Function, accesses: Accesses, options: LayoutOptions):
        self._accesses = accesses
        self._num_warps = options.num_warps
        self._layouts: dict[Value, LinearLayout | None] = {}
        self._wants: dict[Value, LinearLayout] = {}
        self._forward(fn.body)
        self._backward(fn.body)

    def __getitem__(self, value: Value) -> LinearLayout | None:
        return self._layouts.get(value)

    def op_layout(self, op: Op) -> LinearLayout | None:
        """The layout that suits an op where its operands are at home, or None."""
        layouts = tuple(self._layouts.get(value) for value in op.operands)
        coalesced = self._accesses.layout(op)
        if coalesced is not None:
            follow = layouts[0] if self._accesses.is_scattered(op) else None
            return follow or coalesced
        placement = placement_of(op)
        preferred = placement.preferred(op, layouts)
        return preferred if preferred is not None and placement.accepts(op, preferred) else None

    def _forward(self, region: Region) -> None:
        for op in region.ops:
            if op.regions:
                self._control(op)
                continue
            if not any(in_registers(value.type) for value in op.results):
                continue
            layout = self.op_layout(op)
            if layout is None:
                continue
            layout = placement_of(op).result(op, layout)
            for value in op.results:
                self._layouts[value] = layout

    def _control(self, op: Op) -> None:
        """The homes of what a loop carries: as its body makes it, else as it came in."""
        count = len(op.results)
        tiles = [i for i in range(count) if in_registers(op.results[i].type)]
        for region in op.regions:
            self._forward(region)
        yields = [region.terminator.values for region in op.regions]
        for i in tiles:
            made = (self._layouts.get(values[i]) for values in yields)
            layout = next((layout for layout in made if layout is not None), None)
            if layout is None and is_loop(op):
                layout = self._layouts.get(op.initial[i])
            self._layouts[op.results[i]] = layout
        if not tiles or not op.regions[0].args:
            return
        (region,) = op.regions
        for i in tiles:
            self._layouts[region.args[-count:][i]] = self._layouts[op.results[i]]
        self._forward(region)

    def _backward(self, region: Region) -> None:
        """Find homes for carried values that have none: what is first wanted of them."""
        for op in reversed(region.ops):
            if op.regions:
                self._settle(op)
                continue
            layout = self._accesses.layout(op)
            if layout is None and len(op.results) == 1:
                layout = self._wants.get(op.result) or self._layouts.get(op.result)
            if layout is None or not placement_of(op).follows_result:
                continue
            if placement_of(op).accepts(op, layout):
                self._want(op.operands, placement_of(op).operands(op, layout))

    def _want(self, values: tuple[Value, ...], layouts: tuple[LinearLayout | None, ...]) -> None:
        for value, layout in zip(values, layouts, strict=True):
            if layout is not None and self._layouts.get(value) is None:
                self._wants.setdefault(value, layout)

    def _settle(self, op: Op) -> None:
        """Give every tile that a control op hands on a home, from inside or from after it."""
        count = len(op.results)
        for region in op.regions:
            known = tuple(
                self._layouts.get(value) or self._wants.get(value) for value in op.results
            )
            self._want(region.terminator.values, known)
            self._backward(region)
        args = op.regions[0].args[-count:] if op.regions[0].args and count else ()
        for i, result in enumerate(op.results):
            if not in_registers(result.type):
                continue
            inside = self._wants.get(args[i]) if args else None
            home = self._layouts.get(result) or inside or self._wants.get(result)
            home = home or in_rows(result.type.shape, self._num_warps)
            self._layouts[result] = home
            if args:
                self._layouts[args[i]] = home
                self._want((op.initial[i],), (home,))


Layout = LinearLayout | None
LOOP_WEIGHT = 8  # rounds that a loop is taken to make
LOOKAHEAD = 24  # ops back from a value that an estimate follows
POINTER_BITS = 64


def element_bits(tile: TileType) -> int:
    """The size of an element in memory, bits."""
    return POINTER_BITS if tile.is_pointer else tile.dtype.bits


def tile_bytes(tile: TileType) -> int:
    """The size of a tile in memory."""
    return tile.size * element_bits(tile) // 8


@dataclass(slots=True)
class ValuePlan:
    """What becomes of one value.

    wanted: the layouts in which something needs it, None for a scalar or a buffer.
    moves: (from, to) for those that are not computed but moved.
    """

    wanted: dict[Layout, None] = field(default_factory=dict)
    moves: list[tuple[LinearLayout, LinearLayout]] = field(default_factory=list)


class Planner:
    """Decides op by op, last op first, so that all that is wanted of a value is known.

    layouts: the layouts each op is done in, one new op for each; one that is not there is left out.
    values: what becomes of each value; a value that is not there is not needed.
    """

    def __init__(
        self, fn: Function, accesses: Accesses, preferred: PreferredLayouts, num_warps: int
    ):
        self._accesses = accesses
        self._preferred = preferred
        self._num_warps = num_warps
        self.layouts: dict[Op, tuple[Layout, ...]] = {}
        self.values: dict[Value, ValuePlan] = {}
        self._depths: dict[Value | Op, int] = {}
        self._ahead = 0
        self._estimates: dict[tuple[Value, LinearLayout], float] = {}
        self._measure(fn.body, 0)
        self._region(fn.body)

    def _wanted(self, value: Value) -> tuple[Layout, ...]:
        plan = self.values.get(value)
        return tuple(plan.wanted) if plan is not None else ()

    def _want(self, value: Value, layout: Layout) -> None:
        self.values.setdefault(value, ValuePlan()).wanted.setdefault(layout)

    def _measure(self, region: Region, depth: int) -> None:
        """Note in how many loops every value and op is."""
        for arg in region.args:
            self._depths[arg] = depth
        for op in region.ops:
            self._depths[op] = depth
            for value in op.results:
                self._depths[value] = depth
            for inner in op.regions:
                self._measure(inner, depth + bool(inner.args))

    def _region(self, region: Region) -> None:
        for op in reversed(region.ops):
            if op.regions:
                self._control(op)
            else:
                self._op(op)
        for arg in region.args:
            self._move_from(arg, self._preferred[arg])

    def _control(self, op: Op) -> None:
        """What a control op hands on is in one layout inside, and is moved from that outside."""
        layouts = tuple(self._preferred[value] for value in op.results)
        for value, layout in zip(op.results, layouts, strict=True):
            self._move_from(value, layout)
        # before the regions: what ends an iteration is made in them
        for value in controls(op) if is_loop(op) else op.operands:
            self._want(value, None)
        for region in op.regions:
            for value, layout in zip(region.terminator.values, layouts, strict=True):
                self._want(value, layout)
            self._region(region)
        for value, layout in zip(op.initial if is_loop(op) else (), layouts):
            self._want(value, layout)

    def _move_from(self, value: Value, source: Layout) -> None:
        plan = self.values.setdefault(value, ValuePlan())
        plan.moves += [(source, layout) for layout in plan.wanted if layout != source]

    def _op(self, op: Op) -> None:
        if op.opdef.has(TERMINATOR):
            return
        needed = any(self._wanted(value) for value in op.results)
        if op.opdef.has(PURE) and not needed:
            return
        if not any(in_registers(value.type) for value in op.results + op.operands):
            self._settle(op, (None,))
            return
        wanted = tuple(dict.fromkeys(layout for v in op.results for layout in self._wanted(v)))
        candidates = self._candidates(op, wanted)
        base = candidates[0]
        if len(candidates) > 1:
            base = min(candidates, key=lambda layout: self._total(op, layout, wanted))
        layouts = [base]
        made = self._result(op, base)
        for layout in wanted:
            if layout == made:
                continue
            if self._again(op, layout) < self._moved(op, made, layout):
                layouts.append(layout)
        computed = {self._result(op, layout) for layout in layouts}
        for value in op.results:
            plan = self.values.setdefault(value, ValuePlan())
            plan.moves += [(made, layout) for layout in plan.wanted if layout not in computed]
        self._settle(op, tuple(layouts))

    def _settle(self, op: Op, layouts: tuple[Layout, ...]) -> None:
        self.layouts[op] = layouts
        for layout in layouts:
            for value, needed in zip(op.operands, self._operands(op, layout), strict=True):
                self._want(value, needed)

    def _candidates(self, op: Op, wanted: tuple[Layout, ...]) -> tuple[LinearLayout, ...]:
        """Layouts an op might be done in: where it is wanted, and where its operands are."""
        placement = placement_of(op)
        found: dict[LinearLayout, None] = {}
        if placement.follows_result:
            found.update(dict.fromkeys(layout for layout in wanted if layout is not None))
        preferred = self._preferred.op_layout(op)
        if preferred is not None:
            found.setdefault(preferred)
        if op.opdef.has(READS | WRITES) or not op.results:
            found.update(
                dict.fromkeys(
                    layout
                    for value in op.operands
                    if (layout := self._preferred[value]) is not None
                )
            )
        accepted = tuple(layout for layout in found if placement.accepts(op, layout))
        if accepted:
            return accepted
        return (placement.fallback(op, self._num_warps),)

    def _total(self, op: Op, layout: LinearLayout, wanted: tuple[Layout, ...]) -> float:
        """The cost of an op done in a layout and brought from there to all that are wanted."""
        made = self._result(op, layout)
        others = (layout for layout in wanted if layout != made)
        return self._done(op, layout) + sum(
            min(self._again(op, other), self._moved(op, made, other)) for other in others
        )

    def _done(self, op: Op, layout: LinearLayout) -> float:
        """The cost of an op and of having its operands, in a layout."""
        needed = zip(op.operands, self._operands(op, layout), strict=True)
        return self._own(op, layout) + sum(
            self._available(value, operand) for value, operand in needed if operand is not None
        )

    def _again(self, op: Op, layout: LinearLayout) -> float:
        """The cost of doing an op once more, in another layout; infinite if that cannot be."""
        placement = placement_of(op)
        if op.opdef.has(PURE) and placement.follows_result and placement.accepts(op, layout):
            return self._done(op, layout)
        return math.inf

    def _moved(self, op: Op, made: Layout, layout: Layout) -> float:
        """The cost of moving every result of an op."""
        return sum(self._move(value, made, layout) for value in op.results)

    def _move(self, value: Value, source: LinearLayout, destination: LinearLayout) -> float:
        cost = move_cost(source, destination, element_bits(value.type))
        return cost * LOOP_WEIGHT ** self._depths[value]

    def _own(self, op: Op, layout: LinearLayout) -> float:
        """The cost of an op by itself."""
        if self._accesses.layout(op) is not None:
            slots = self._accesses.slots(op, layout)
        else:
            slots = placement_of(op).slots * register_count(layout)
        return slots * LOOP_WEIGHT ** self._depths[op]

    def _available(self, value: Value, layout: LinearLayout) -> float:
        """An estimate of what it costs to have a value in a layout besides where it is at home."""
        plan = self.values.get(value)
        preferred = self._preferred[value]
        if preferred == layout or (plan is not None and layout in plan.wanted):
            return 0
        found = self._estimates.get((value, layout))
        if found is not None:
            return found
        moved = math.inf if preferred is None else self._move(value, preferred, layout)
        if self._ahead == LOOKAHEAD:
            return 0 if preferred is None else moved
        self._ahead += 1
        cost = min(moved, self._computed(value.owner, layout))
        self._ahead -= 1
        self._estimates[value, layout] = cost
        return cost

    def _computed(self, op: Op | None, layout: LinearLayout) -> float:
        """The cost of making a value in a layout in the first place, where that is a choice."""
        if op is None or op.regions or not placement_of(op).follows_result:
            return math.inf
        if not placement_of(op).accepts(op, layout):
            return math.inf
        if op.opdef.has(PURE):
            return self._done(op, layout)
        coalesced = self._accesses.layout(op)
        if coalesced is None or op.opdef.has(WRITES):
            return math.inf
        return max(0, self._done(op, layout) - self._own(op, coalesced))

    def _operands(self, op: Op, layout: Layout) -> tuple[Layout, ...]:
        if layout is None:
            return (None,) * len(op.operands)
        return placement_of(op).operands(op, layout)

    def _result(self, op: Op, layout: Layout) -> Layout:
        if layout is None or not op.results:
            return None
        return placement_of(op).result(op, layout)
