"""Stores that one nest does: what they share is computed once, and interleaved ones fill vectors.

    out[r, 0] = a * c - b * d          for i in range(0, 1024, 16):
    out[r, 1] = a * d + b * c            a, b, c, d of 16 elements; both results; 32 numbers stored

Stores of one shape join if nothing but lazy ops is between them, if no two write one element, and
if an element that one of them writes is read only before, at its own place.  The nest stands where
the last one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.polynomial import AffineExpression
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute

MAX_STORES = 8  # of a nest: what they need has to stay in registers
Loads = dict[Op, bool]  # whether each is only needed at the place of the element that is stored


@dataclass(frozen=True, slots=True)
class Grouping:
    """Finds groups of stores in a function whose arrays share no memory where one is stored to.

    may_alias: of two pointers.  number: of each op, in order.  is_root: of an op that runs where
    it stands.
    """

    affine: AffineExpressions
    number: Mapping[Op, int]
    may_alias: Callable[[Value, Value], bool]
    is_root: Callable[[Op], bool]

    def of_region(self, region: Region) -> Iterator[tuple[Op, ...]]:
        """The groups, of one store or more."""
        group: list[Op] = []
        for op in region.ops:
            for inner in op.regions:
                yield from self.of_region(inner)
            is_store = op.name == "store" and bool(op.pointer.type.shape)
            if group and (not self._joins(group, op) if is_store else self._ends(group, op)):
                yield tuple(group)
                group = []
            if is_store:
                group.append(op)
        if group:
            yield tuple(group)

    def _ends(self, group: Sequence[Op], op: Op) -> bool:
        """Whether an op runs where it stands, before the stores that wait for another."""
        if op.name != "load" or self.is_root(op):
            return self.is_root(op)
        return bool(attribute(op, "volatile")) or not op.result.type.shape and any(
            self.may_alias(op.pointer, store.pointer) for store in group)

    def _joins(self, group: Sequence[Op], op: Op) -> bool:
        if len(group) == MAX_STORES or group[0].pointer.type.shape != op.pointer.type.shape:
            return False
        if any(self._may_meet(store, op) for store in group):
            return False
        stores = [*group, op]
        loads = [self._loads(store) for store in stores]
        shares = any(load in before for load in loads[-1] for before in loads[:-1]) or any(
            self._distance(store, op) for store in group)
        return shares and all(
            not self._may_meet(load, store)
            or self.number[load] < self.number[store] and self.is_same_place(load, store)
            and all(needed.get(load, True) for needed in loads)
            for load in {load for needed in loads for load in needed} for store in stores)

    def is_same_place(self, load: Op, write: Op) -> bool:
        """Whether each element that is written is one of the load, at the same place of both.

        Of elements that are written twice, the second would read what the first one wrote.
        """
        return load.pointer is write.pointer and self.affine.differ(write.pointer)

    def _loads(self, store: Op) -> Loads:
        """The loads that the nest of a store does."""
        found: Loads = {}
        waiting = [(value, True) for value in store.operands]
        seen: set[tuple[Value, bool]] = set()
        while waiting:
            access = value, aligned = waiting.pop()
            owner = value.owner
            if access in seen or not value.type.shape or owner is None or self.is_root(owner):
                continue
            seen.add(access)
            if owner.name == "load":
                found[owner] = found.get(owner, True) and aligned
            moves = not owner.opdef.has(ELEMENTWISE) and owner.name != "load"
            waiting += [(operand, aligned and not moves) for operand in owner.operands]
        return found

    def _may_meet(self, one: Op, other: Op) -> bool:
        """Whether any two elements of two accesses may be one element of memory."""
        return self.may_alias(one.pointer, other.pointer) and not self._distance(one, other)

    def _distance(self, one: Op, other: Op) -> int:
        """Elements from each of one access to that of another; 0 if it is not known, or is none.

        The two interleave: what divides all constant steps along axes of the tile is greater.
        Steps that are not known are those of an array, whose rows do not overlap.
        """
        first, second = self.affine[one.pointer], self.affine[other.pointer]
        if not (isinstance(first, AffineExpression) and isinstance(second, AffineExpression)
                and first.origin is second.origin and first.steps == second.steps
                and self.affine.has_steps_of_array(first)):
            return 0
        distance = (second.base - first.base).number or 0
        step = math.gcd(*(step.number or 0 for step in first.steps))  # 0: none is known
        return distance if abs(distance) < step else 0

    def interleaved(self, group: Sequence[Op]) -> list[tuple[Op, ...]]:
        """Stores of a group that write elements side by side, in their order."""
        found, left = [], list(group)
        while left:
            first = left[0]
            places = {0: first} | {self._distance(first, op): op for op in left[1:]
                                   if op.value.type == first.value.type
                                   and self._distance(first, op)}
            run = tuple(places[place] for place in sorted(places))
            if len(run) > 1 and max(places) - min(places) == len(run) - 1:
                found.append(run)
            left = [op for op in left if op not in run]
        return found
