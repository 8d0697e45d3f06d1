"""The choice of layouts: the preferred layout of every tile, then the plan that costs least.

1. PreferredLayouts, forwards: accesses to memory prefer coalesced layouts, other ops follow their
   operands.  Loop-carried values get one layout for all iterations.
2. Planner, backwards: each op is done in the layouts in which its results are required, or its
   results are moved there, whichever costs less.

       %x = load %p            prefers B, in which %p is coalesced
       %y = exp %x             prefers B, as its operand does
       store %q, %y            requires B of %y: nothing moves
       %t = transpose %y
       store %r, %t            requires D of %y: do exp in D as well, on a moved %x, or move %y
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import move_cost
from blocknumba.gpu_layout.layouts.registers import in_rows
from blocknumba.gpu_layout.layouts.shared import in_registers
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.coalescing import Accesses
from blocknumba.gpu_layout.placement.rule import placement_of
from blocknumba.gpu_layout.placement.spreads import spreads
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import PURE, READS, TERMINATOR, WRITES
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ir.uses import carried, controls, is_loop
from blocknumba.tile_ir.ops.memory import load


class PreferredLayouts:
    """The layout that each tile has if nothing else matters: preferred[value].

    None if the tile has no preference, and for scalars and buffers.

    Accesses to memory are coalesced, other ops follow their operands, and what is computed from
    scalars alone has no preference.  Values that a loop or an `if` yields always have a preferred
    layout, since they have one layout in all iterations: that in which the body produces them, else
    the first one that is requested of them.
    fixed: layouts of some results of loops, whatever the body produces.
    """

    def __init__(self, fn: Function, accesses: Accesses, options: LayoutOptions,
                 fixed: Mapping[Value, LinearLayout]):
        self._accesses, self._fixed = accesses, fixed
        self._num_warps = options.num_warps
        self._layouts: dict[Value, LinearLayout | None] = {}
        self._requests: dict[Value, LinearLayout] = {}
        self._forward(fn.body)
        self._backward(fn.body)

    def __getitem__(self, value: Value) -> LinearLayout | None:
        return self._layouts.get(value)

    def op_layout(self, op: Op) -> LinearLayout | None:
        """The op's layout that suits the preferred layouts of its operands, or None."""
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
        """Prefer for yielded values the layout that the body produces them in, else the initial."""
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
            self._layouts[op.results[i]] = self._fixed.get(op.results[i], layout)
        if not tiles or not op.regions[0].args:
            return
        (region,) = op.regions
        for i in tiles:
            self._layouts[region.args[-count:][i]] = self._layouts[op.results[i]]
        self._forward(region)

    def _backward(self, region: Region) -> None:
        """Find layouts for yielded values without preference: the first one requested of them."""
        for op in reversed(region.ops):
            if op.regions:
                self._settle(op)
                continue
            layout = self._accesses.layout(op)
            if layout is None and len(op.results) == 1:
                layout = self._requests.get(op.result) or self._layouts.get(op.result)
            if layout is None or not placement_of(op).follows_result:
                continue
            if placement_of(op).accepts(op, layout):
                self._request(op.operands, placement_of(op).operands(op, layout))

    def _request(self, values: tuple[Value, ...], layouts: tuple[LinearLayout | None, ...]) -> None:
        for value, layout in zip(values, layouts, strict=True):
            if layout is not None and self._layouts.get(value) is None:
                self._requests.setdefault(value, layout)

    def _settle(self, op: Op) -> None:
        """Give every tile that a control op yields a layout, from inside it or from its users."""
        count = len(op.results)
        for region in op.regions:
            known = tuple(
                self._layouts.get(value) or self._requests.get(value) for value in op.results
            )
            self._request(region.terminator.values, known)
            self._backward(region)
        args = op.regions[0].args[-count:] if op.regions[0].args and count else ()
        for i, result in enumerate(op.results):
            if not in_registers(result.type):
                continue
            inside = self._requests.get(args[i]) if args else None
            layout = self._layouts.get(result) or inside or self._requests.get(result)
            layout = layout or in_rows(result.type.shape, self._num_warps)
            self._layouts[result] = layout
            if args:
                self._layouts[args[i]] = layout
                self._request((op.initial[i],), (layout,))


Layout = LinearLayout | None
LOOP_WEIGHT = 8  # assumed number of iterations of a loop
LOOKAHEAD = 24  # ops before a value that an estimate looks at
POINTER_BITS = 64


def element_bits(tile: TileType) -> int:
    """Bits of an element in memory."""
    return POINTER_BITS if tile.is_pointer else tile.dtype.bits


def tile_bytes(tile: TileType) -> int:
    """Bytes of a tile in memory."""
    return tile.size * element_bits(tile) // 8


@dataclass(slots=True)
class ValuePlan:
    """The layouts of one value.

    required: those in which a user requires it; None for a scalar or a buffer.
    moves: (from, to) for those that it is moved to, not computed in.
    """

    required: dict[Layout, None] = field(default_factory=dict)
    moves: list[tuple[LinearLayout, LinearLayout]] = field(default_factory=list)


class Planner:
    """Decides op by op, last op first, so that all users of a value are known.

    layouts: per op the layouts that it is done in, one new op for each; other ops are dead.
    values: per value its plan; other values are not used.
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
        self._lookahead = 0
        self._estimates: dict[tuple[Value, LinearLayout], float] = {}
        self._note_depths(fn.body, 0)
        self._region(fn.body)

    def cost(self) -> float:
        """The cost of all ops, and of all values that are moved."""
        done = sum(self._own_cost(op, layout) for op, layouts in self.layouts.items()
                   for layout in layouts if layout is not None)
        return done + sum(self._move_cost(value, *move) for value, plan in self.values.items()
                          for move in plan.moves)

    def carried_elsewhere(self) -> Iterator[dict[Value, LinearLayout]]:
        """Results of loops with layouts that something is moved to in each iteration.

        First all pointers of the shape of what is moved, as stores and loads share a layout; then
        each carried tile that is moved itself, or by whose pointers that is loaded.
        """
        for loop in [op for op in self._depths if isinstance(op, Op) and is_loop(op)]:
            (region,), values = loop.regions, carried(loop)
            made = [*region.args, *(result for op in region.ops for result in op.results)]
            pairs = list(zip(values.args, loop.results, strict=True))
            moves = {(value, destination): None for value in made
                     for _, destination in self.values.get(value, ValuePlan()).moves}
            for shape, destination in dict.fromkeys((v.type.shape, to) for v, to in moves):
                yield {result: destination for arg, result in pairs
                       if arg.type.shape == shape and arg.type.is_pointer}
            for value, destination in moves:
                op = value.owner
                source = op.pointer if op is not None and op.opdef is load else value
                yield {result: destination for arg, result in pairs if source is arg}

    def _required(self, value: Value) -> tuple[Layout, ...]:
        plan = self.values.get(value)
        return tuple(plan.required) if plan is not None else ()

    def _require(self, value: Value, layout: Layout) -> None:
        self.values.setdefault(value, ValuePlan()).required.setdefault(layout)

    def _note_depths(self, region: Region, depth: int) -> None:
        """Note how many loops every value and op is nested in."""
        for arg in region.args:
            self._depths[arg] = depth
        for op in region.ops:
            self._depths[op] = depth
            for value in op.results:
                self._depths[value] = depth
            for inner in op.regions:
                self._note_depths(inner, depth + is_loop(op))

    def _region(self, region: Region) -> None:
        for op in reversed(region.ops):
            if op.regions:
                self._control(op)
            else:
                self._op(op)
        for arg in region.args:
            self._plan_moves(arg, self._preferred[arg])

    def _control(self, op: Op) -> None:
        """Plan what a control op yields: one layout inside, from which it is moved outside."""
        layouts = tuple(self._preferred[value] for value in op.results)
        for value, layout in zip(op.results, layouts, strict=True):
            self._plan_moves(value, layout)
        # before the regions: loop-carried values are produced in them
        for value in controls(op) if is_loop(op) else op.operands:
            self._require(value, None)
        for region in op.regions:
            for value, layout in zip(region.terminator.values, layouts, strict=True):
                self._require(value, layout)
            self._region(region)
        for value, layout in zip(op.initial if is_loop(op) else (), layouts):
            self._require(value, layout)

    def _plan_moves(self, value: Value, source: Layout) -> None:
        plan = self.values.setdefault(value, ValuePlan())
        plan.moves += [(source, layout) for layout in plan.required if layout != source]

    def _op(self, op: Op) -> None:
        if op.opdef.has(TERMINATOR):
            return
        needed = any(self._required(value) for value in op.results)
        if op.opdef.has(PURE) and not needed:
            return
        if not any(in_registers(value.type) for value in op.results + op.operands):
            self._settle(op, (None,))
            return
        required = tuple(dict.fromkeys(layout for v in op.results for layout in self._required(v)))
        candidates, done_cost = self._candidates(op, required), self._done_cost
        if not candidates:
            # of tiles that are broadcast, say, which have no place yet
            candidates, done_cost = self._free_candidates(op), self._slice_cost
        base = candidates[0]
        if len(candidates) > 1:
            base = min(candidates, key=lambda layout: done_cost(op, layout) + self._delivery_cost(
                op, layout, required))
        layouts = [base]
        made = self._result(op, base)
        for layout in required:
            if layout == made:
                continue
            if self._recompute_cost(op, layout) < self._move_all_cost(op, made, layout):
                layouts.append(layout)
        computed = {self._result(op, layout) for layout in layouts}
        for value in op.results:
            plan = self.values.setdefault(value, ValuePlan())
            plan.moves += [(made, layout) for layout in plan.required if layout not in computed]
        self._settle(op, tuple(layouts))

    def _settle(self, op: Op, layouts: tuple[Layout, ...]) -> None:
        self.layouts[op] = layouts
        for layout in layouts:
            for value, needed in zip(op.operands, self._operands(op, layout), strict=True):
                self._require(value, needed)

    def _candidates(self, op: Op, required: tuple[Layout, ...]) -> tuple[LinearLayout, ...]:
        """The layouts an op might be done in: those required of it, and those of its operands."""
        placement = placement_of(op)
        found: dict[LinearLayout, None] = {}
        if placement.follows_result:
            found.update(dict.fromkeys(layout for layout in required if layout is not None))
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
        return tuple(layout for layout in found if placement.accepts(op, layout))

    def _free_candidates(self, op: Op) -> tuple[LinearLayout, ...]:
        """The fallback of an op, and what keeps in place what its operands are broadcast from."""
        placement = placement_of(op)
        others = () if placement.slots_in is None else spreads(  # None: nothing would choose
            op.operands, self._preferred.__getitem__)
        return (placement.fallback(op, self._num_warps),
                *(layout for layout in others if placement.accepts(op, layout)))

    def _delivery_cost(self, op: Op, layout: LinearLayout, required: tuple[Layout, ...]) -> float:
        """The cost of bringing results from a layout to all that are required."""
        made = self._result(op, layout)
        others = (layout for layout in required if layout != made)
        return sum(
            min(self._recompute_cost(op, other), self._move_all_cost(op, made, other))
            for other in others
        )

    def _done_cost(self, op: Op, layout: LinearLayout) -> float:
        """The cost of an op in a layout, and of bringing its operands there."""
        needed = zip(op.operands, self._operands(op, layout), strict=True)
        return self._own_cost(op, layout) + sum(
            self._operand_cost(value, operand) for value, operand in needed if operand is not None
        )

    def _slice_cost(self, op: Op, layout: LinearLayout) -> float:
        """As _done_cost, but what several ops need of values without preference counts once."""
        cost, ops, seen = 0.0, [(op, layout)], set()
        while ops:
            op, layout = ops.pop()
            cost += self._own_cost(op, layout)
            for value, needed in zip(op.operands, self._operands(op, layout), strict=True):
                if needed in (None, *self._required(value)) or (value, needed) in seen:
                    continue
                seen.add((value, needed))
                if self._is_free(value) and placement_of(value.owner).accepts(value.owner, needed):
                    ops.append((value.owner, needed))
                else:
                    cost += self._operand_cost(value, needed)
        return cost

    def _is_free(self, value: Value) -> bool:
        """Whether a value prefers no layout, and its op can be done where it is required."""
        op = value.owner
        return (self._preferred[value] is None and op is not None and not op.regions
                and op.opdef.has(PURE) and placement_of(op).follows_result)

    def _recompute_cost(self, op: Op, layout: LinearLayout) -> float:
        """The cost of doing an op once more, in another layout; infinite if it cannot be."""
        placement = placement_of(op)
        if op.opdef.has(PURE) and placement.follows_result and placement.accepts(op, layout):
            return self._done_cost(op, layout)
        return math.inf

    def _move_all_cost(self, op: Op, made: Layout, layout: Layout) -> float:
        """The cost of moving every result of an op."""
        return sum(self._move_cost(value, made, layout) for value in op.results)

    def _move_cost(self, value: Value, source: LinearLayout, destination: LinearLayout) -> float:
        cost = move_cost(source, destination, element_bits(value.type))
        return cost * LOOP_WEIGHT ** self._depths[value]

    def _own_cost(self, op: Op, layout: LinearLayout) -> float:
        """The cost of an op by itself."""
        if self._accesses.layout(op) is not None:
            slots = self._accesses.slots(op, layout)
        else:
            slots = placement_of(op).cost(op, layout)
        return slots * LOOP_WEIGHT ** self._depths[op]

    def _operand_cost(self, value: Value, layout: LinearLayout) -> float:
        """An estimate of the cost of having a value in a layout besides its preferred one."""
        plan = self.values.get(value)
        preferred = self._preferred[value]
        if preferred == layout or (plan is not None and layout in plan.required):
            return 0
        found = self._estimates.get((value, layout))
        if found is not None:
            return found
        moved = math.inf if preferred is None else self._move_cost(value, preferred, layout)
        if self._lookahead == LOOKAHEAD:
            return 0 if preferred is None else moved
        self._lookahead += 1
        cost = min(moved, self._production_cost(value.owner, layout))
        self._lookahead -= 1
        self._estimates[value, layout] = cost
        return cost

    def _production_cost(self, op: Op | None, layout: LinearLayout) -> float:
        """The cost of producing a value in a layout at once; infinite if it cannot be."""
        if op is None or op.regions or not placement_of(op).follows_result:
            return math.inf
        if not placement_of(op).accepts(op, layout):
            return math.inf
        if op.opdef.has(PURE):
            return self._done_cost(op, layout)
        coalesced = self._accesses.layout(op)
        if coalesced is None or op.opdef.has(WRITES):
            return math.inf
        return max(0, self._done_cost(op, layout) - self._own_cost(op, coalesced))

    def _operands(self, op: Op, layout: Layout) -> tuple[Layout, ...]:
        if layout is None:
            return (None,) * len(op.operands)
        return placement_of(op).operands(op, layout)

    def _result(self, op: Op, layout: Layout) -> Layout:
        if layout is None or not op.results:
            return None
        return placement_of(op).result(op, layout)
