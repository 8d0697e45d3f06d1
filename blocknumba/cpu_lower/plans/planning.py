"""Plans of a kernel's nests: tiles that are kept in buffers, and the axes of the lanes.

Costs are in vector instructions for one vector of elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from blocknumba.cpu_lower import strided
from blocknumba.cpu_lower.bounds import CLAMPS, clamped
from blocknumba.cpu_lower.elements import is_narrow, size_bytes
from blocknumba.cpu_lower.math import FUNCTIONS
from blocknumba.cpu_lower.math.registry import MATHEMATICAL
from blocknumba.cpu_lower.plans.indices import counts_of_elements, made_into
from blocknumba.cpu_lower.plans.store_groups import Grouping
from blocknumba.cpu_lower.target import CpuTarget
from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.axis_info import AxisInfos, axis_info
from blocknumba.tile_ir.analysis.polynomial import AffineExpression
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import READS, WRITES, OpTable, attribute
from blocknumba.tile_ir.ir.types import DType, PointerType

# vector instructions of one vector; of functions see FUNCTIONS
COSTS = OpTable[int]("vector instructions on CPUs", {
    **dict.fromkeys(("arange", "splat", "broadcast", "transpose", "reshape", "extract", "hint",
                     "constant", "undefined", "program_id", "num_programs", "bitcast",
                     "split"), 0),
    **dict.fromkeys(("add", "sub", "mul", "neg", "absolute", "and", "or", "xor", "invert",
                     "minimum", "maximum", "fmin", "fmax", "eq", "ne", "lt", "le", "gt", "ge",
                     "isnan", "isinf", "isfinite", "cast", "offset", "shl", "shr", "join", "flip",
                     "popc", "fma", "select"), 1),
    "div": 6, "truncdiv": 8, "truncmod": 8})
GATHER = 1.0  # of one element that does not lie beside the one before
MIN_SHARED_COST = 10
Root = Callable[..., None]  # (emitter, op)
ROOTS = OpTable[Root]("code for CPUs")  # of ops that run where they stand, in order
RootUse = object


@dataclass(frozen=True, slots=True)
class Along:
    """An access along one axis of its tile.

    run: elements that lie side by side, or are the same one.
    step: elements from each to the next, if that is constant and small; else 0.
    """

    run: int = 1
    step: int = 0

    def cost(self, lanes: int) -> float:
        """The cost of one element, by vectors of lanes."""
        if self.run >= lanes:
            return 1 / lanes
        return min(GATHER, strided.cost(self.step, lanes) / lanes) if self.step else GATHER


EVERYWHERE = Along(1 << 30)  # along an axis that an access does not have


def is_root(op: Op) -> bool:
    """Whether an op runs where it stands, not where its result is used."""
    return op.name in ROOTS


def _cost(op: Op) -> int:
    """Vector instructions of one vector of an op's results, from registers."""
    if op.name in FUNCTIONS:
        return FUNCTIONS[op.name].cost
    return COSTS.get(op.name, MATHEMATICAL)


class Plan:
    """Decisions on the tiles of a function.

    disjoint: no array that is stored to shares memory with another.
    """

    def __init__(self, fn: Function, target: CpuTarget, disjoint: bool):
        self.function, self.target, self.disjoint = fn, target, disjoint
        self.infos: AxisInfos = axis_info(fn)
        self._origins = origins(fn)
        self._number: dict[Op, int] = {op: i for i, op in enumerate(walk(fn.body))}
        self._around: dict[Op, tuple[Op, ...]] = dict(_enclosing(fn.body, ()))
        self._uses = Counter(value for op in walk(fn.body) for value in op.operands)
        self._costs: dict[Value, int] = {}
        self._data: dict[Value, bool] = {}
        for op in walk(fn.body):
            self._measure(op)
        self._grouping = Grouping(self.affine, self._number, self.may_alias, is_root)
        self._groups = {op: group for group in self._grouping.of_region(fn.body)
                        for op in group} if disjoint else {}
        self._shared: set[Value] = set()
        self._last: dict[Value, int] = {}
        self._roots: dict[Value, set[RootUse]] = {}
        self._share(fn.body)
        self._early = dict(self._early_loads(fn.body, []))

    @cached_property
    def affine(self) -> AffineExpressions:
        """Integers and pointers as affine expressions of the indices of their tiles."""
        return AffineExpressions(self.function)

    # costs --------------------------------------------------------------------------------------
    def _measure(self, op: Op) -> None:
        for value in op.results:
            self._costs[value] = min(1 << 20, self._own_cost(op) + sum(
                self._costs.get(v, 0) for v in op.operands if v.type.shape
                and not is_root(op)))
            self._data[value] = op.opdef.has(READS) or is_root(op) or any(
                self._data.get(v, True) for v in op.operands if v.type.shape)

    def _own_cost(self, op: Op) -> int:
        cost = _cost(op)
        if cost == 0 or is_root(op):
            return 0
        if op.name == "load":
            return 2 if self._is_contiguous(op.pointer) else 16
        is_any_narrow = any(is_narrow(value.type.dtype) for value in op.operands)
        narrow = 4 * (len(op.operands) + 1) if is_any_narrow else 0
        return cost + narrow

    def _is_contiguous(self, pointer: Value) -> bool:
        wanted = [min(n, self.target.lanes(size_bytes(pointer.type.dtype.pointee)))
                  for n in pointer.type.shape]
        return all(n == 1 for n in wanted) or any(
            max(axis.contiguity, axis.constancy) >= n > 1
            for axis, n in zip(self.infos[pointer].axes, wanted))

    def is_free(self, value: Value) -> bool:
        """Whether an element costs nothing."""
        return self._costs.get(value, 1) == 0

    @cached_property
    def _indices(self) -> frozenset[Value]:
        return made_into(self.function)

    @cached_property
    def _clamped_indices(self) -> frozenset[Value]:
        """Indices, and what is one once it is clamped."""
        return made_into(self.function, CLAMPS)

    @cached_property
    def _counts(self) -> frozenset[Value]:
        return counts_of_elements(self.function)

    @cached_property
    def clamps(self) -> frozenset[Value]:
        """Clamps of indices, by one number each."""
        return frozenset(op.results[0] for op in walk(self.function.body) if op.name in CLAMPS
                         and op.results[0] in self._clamped_indices and clamped(op) is not None)

    @cached_property
    def made_of_clamps(self) -> frozenset[Value]:
        """Clamps, and what they are a part of."""
        found = set(self.clamps)
        for op in walk(self.function.body):
            if not is_root(op) and not found.isdisjoint(op.operands):
                found.update(op.results)
        return frozenset(found)

    def is_index(self, value: Value) -> bool:
        """Whether an integer is only an index: its arithmetic is assumed not to overflow."""
        return value in self._indices

    def is_count(self, value: Value) -> bool:
        """Whether an integer only counts elements from an address: accesses need no wrapping."""
        return value in self._counts

    def is_shared(self, value: Value) -> bool:
        """Whether a tile is kept in a buffer for several nests."""
        return value in self._shared

    def is_used(self, value: Value) -> bool:
        """Whether any op takes a value."""
        return bool(self._uses[value])

    def is_used_once(self, value: Value) -> bool:
        """Whether one op takes a value, once."""
        return self._uses[value] == 1

    def is_last_use(self, value: Value, op: Op) -> bool:
        """Whether an op, which runs once for each time that the value is made, alone reads it."""
        if self._uses[value] != 1:
            return False
        around = self._around[op]
        if value.owner is not None:
            return self._around[value.owner] == around
        return bool(around) and any(value in region.args for region in around[-1].regions)

    def is_eager(self, value: Value) -> bool:
        """Whether a tile must be computed where it stands: memory is read anew."""
        op = value.owner
        return op.name == "load" and bool(attribute(op, "volatile"))

    # sharing ------------------------------------------------------------------------------------
    def _share(self, region: Region) -> None:
        """Find, from the last op to the first, the nests that read each tile."""
        for op in reversed(region.ops):
            for inner in op.regions:
                self._share(inner)
            self._last_uses(op)
            if is_root(op):
                for value in op.operands:
                    self._read(value, op, {self.group_of(op)[-1]})
                continue
            for result in op.results:
                uses = self._roots.get(result, set())
                if (len(uses) > 1 and self._costs[result] >= MIN_SHARED_COST
                        and result.type.shape):
                    self._shared.add(result)
                    uses = {result}
                again = {(op, use) for use in uses} if op.name == "broadcast" else set()
                for value in op.operands:
                    self._read(value, op, uses | again)

    def _read(self, value: Value, user: Op, uses: set[RootUse]) -> None:
        known = self._roots.setdefault(value, set())
        known |= uses
        if self._deeper(value, user):
            known |= {(user, "in each iteration")}

    def _deeper(self, value: Value, user: Op) -> bool:
        """Whether a value is used in a loop that it is not defined in."""
        around = self._around[user]
        own = () if value.owner is None else self._around[value.owner]
        return any(op.name in ("for", "loop") for op in around[len(own):])

    def _last_uses(self, op: Op) -> None:
        """The last position at which each value may be read."""
        if is_root(op):
            position = self._number[op]
        else:
            position = max((self._last.get(v, -1) for v in op.results), default=-1)
        for value in op.operands:
            reached = position
            own = () if value.owner is None else self._around[value.owner]
            loops = [o for o in self._around[op][len(own):] if o.name in ("for", "loop")]
            if loops and position >= 0:  # until the loop ends
                reached = max(position, self._end_of(loops[0]))
            self._last[value] = max(self._last.get(value, -1), reached)

    def _end_of(self, op: Op) -> int:
        return max((self._number[o] for r in op.regions for o in walk(r)),
                   default=self._number[op])

    # memory -------------------------------------------------------------------------------------
    def _early_loads(self, region: Region, loads: list[Op]) -> Iterator[tuple[Op, list[Op]]]:
        """For every op that writes memory, the loads before it that must not be done after it."""
        loads = list(loads)
        for op in region.ops:
            if op.name == "load" and op.result.type.shape:
                loads.append(op)
            inner = [o for r in op.regions for o in walk(r)]
            written = [o for o in (op, *inner) if o.opdef.has(WRITES)]
            if written:
                early = [load for load in loads if self.must_precede(load, op, written)]
                if early:
                    yield op, early
            for r in op.regions:
                yield from self._early_loads(r, loads)

    def must_precede(self, load: Op, op: Op, written: Sequence[Op]) -> bool:
        """Whether a load before an op that writes must not be done after it."""
        is_used_after = self._last.get(load.result, -1) > self._number[op]
        for write in written:
            if write.name != "store" and attribute(write, "semantics") != "relaxed" and (
                    is_used_after):
                return True
            if self.may_alias(load.pointer, write.pointer) and (
                    is_used_after or not self._is_in_place(load, write)):
                return True
        return False

    def may_alias(self, one: Value, other: Value) -> bool:
        """Whether two pointers may point into one array."""
        if not self.disjoint:
            return True
        return not self._origins.get(one, frozenset()).isdisjoint(
            self._origins.get(other, frozenset()))

    def _is_in_place(self, load: Op, write: Op) -> bool:
        """Whether each element of the load is read just before the same element is written."""
        waiting = [(value, True) for value in write.operands]
        seen = set()
        while waiting:
            value, aligned = waiting.pop()
            if (value, aligned) in seen or value.owner is None or not value.type.shape:
                continue
            seen.add((value, aligned))
            owner = value.owner
            if owner is load and not (aligned and self._grouping.is_same_place(load, write)):
                return False
            if is_root(owner):
                continue
            moves = not owner.opdef.has(frozenset(("elementwise",))) and owner.name != "load"
            waiting += [(operand, aligned and not moves) for operand in owner.operands]
        return True

    def needed_before(self, op: Op) -> list[Value]:
        """Tiles to compute before an op: loads of what it writes, and what a loop reads often."""
        group = self.group_of(op)
        if len(group) > 1:  # a load that the nest does itself comes before what it stores
            return [load.result for store in group for load in self._early.get(store, ())
                    if op is group[-1] and self._last[load.result] > self._number[op]]
        loads = [load.result for load in self._early.get(op, ())]
        return loads + self._reached_inside(op) if op.name in ("for", "loop") else loads

    def group_of(self, op: Op) -> tuple[Op, ...]:
        """The stores that one nest does, where the last of them stands; of others, the op."""
        return self._groups.get(op, (op,))

    def interleaved(self, group: Sequence[Op]) -> list[tuple[Op, ...]]:
        """Stores of a group that write elements side by side, in their order."""
        return self._grouping.interleaved(group)

    def _reached_inside(self, loop: Op) -> list[Value]:
        """Shared tiles from before a loop that its iterations read."""
        outside = len(self._around[loop])
        found: dict[Value, None] = {}
        waiting = [v for region in loop.regions for o in walk(region) for v in o.operands]
        seen: set[Value] = set()
        while waiting:
            value = waiting.pop()
            if value in seen or value.owner is None or not value.type.shape:
                continue
            seen.add(value)
            if is_root(value.owner):
                continue
            if len(self._around[value.owner]) <= outside and loop not in self._around[
                    value.owner] and value in self._shared:
                found[value] = None
                continue
            waiting += value.owner.operands
        return list(found)

    # lanes --------------------------------------------------------------------------------------
    def lanes_of(self, values: Sequence[Value], kept: Container[Value], *,
                 reduced: int | None = None, excluded: int | None = None, to_rows: bool = False,
                 ) -> tuple[int | None, int]:
        """Axis and number of the lanes of a nest that computes tiles of one shape.

        kept: tiles that are in buffers already.
        reduced: the axis that the nest combines; combining lanes costs a little.
        excluded: an axis that the lanes cannot run along.
        to_rows: whether the nest also stores them to memory, in C order.
        """
        shape = values[0].type.shape
        accesses, compute, element_bytes = self.accesses(values, kept)
        if to_rows:
            accesses.append((*(Along() for _ in shape[1:]), Along(shape[-1])) if shape else ())
            element_bytes = max(element_bytes, *(_computed_bytes(v.type.dtype) for v in values))
        width = min(64, self.target.lanes(element_bytes))
        best = None
        for axis, extent in enumerate(shape):
            lanes = min(extent, width)
            if lanes == 1 or axis == excluded:
                continue
            cost = compute / lanes + sum(
                access[axis].cost(lanes) for access in accesses)
            if axis == reduced:
                cost += 2 * lanes.bit_length() / extent
            if best is None or cost <= best[0]:
                best = cost, axis, lanes
        return (None, 1) if best is None else (best[1], best[2])

    def accesses(self, values: Sequence[Value],
                 kept: Container[Value]) -> tuple[list[tuple[Along, ...]], int, int]:
        """Each access along each axis; cost of the rest; bytes of an element.

        Tiles that the nest keeps as it meets them are computed by others' choice of an axis: their
        operands count for the bytes alone.
        """
        shape, own_axes = values[0].type.shape, tuple(range(len(values[0].type.shape)))
        found: list[tuple[Along, ...]] = []
        compute, size = 1, 1
        waiting = [(value, own_axes, True) for value in values]
        seen = set()
        while waiting:
            value, axes, counts = waiting.pop()
            if {(value, counts), (value, True)} & seen or not value.type.shape:
                continue
            seen.add((value, counts))
            owner = value.owner
            is_computed = self._data.get(value, True) or value not in self._clamped_indices
            if is_computed and not value.type.is_pointer:
                size = max(size, _computed_bytes(value.type.dtype))
            if value.type.is_pointer:
                if counts:
                    found.append(self._along(value, axes, len(shape)))
                continue
            is_there = owner is None or is_root(owner) or value in kept
            if counts and (is_there or value in self._shared):
                last = tuple(Along(n if a == len(axes) - 1 else 1) for a, n in enumerate(
                    value.type.shape))
                found.append(_by_axis(last, axes, len(shape)))
                counts = False
            if is_there or value in self._shared and (axes, value.type.shape) != (own_axes, shape):
                continue
            compute += self._own_cost(owner) * counts
            waiting += [(operand, _operand_axes(owner, operand, axes), counts)
                        for operand in owner.operands]
        return found, compute, size

    def _along(self, pointer: Value, axes: tuple[int | None, ...], rank: int) -> tuple[
            Along, ...]:
        """An access along each axis of a nest; axes: the nest's, of the access."""
        address = self.affine[pointer]
        steps = [0] * len(axes)
        if isinstance(address, AffineExpression):
            steps = [step.number or 0 for step in address.steps]
        found = list(_by_axis([
            Along(max(axis.contiguity, axis.constancy), step if strided.is_small(step) else 0)
            for axis, step in zip(self.infos[pointer].axes, steps)], axes, rank))
        for axis in range(rank):
            if axis not in axes:  # repeated along it
                found[axis] = EVERYWHERE
        return tuple(found)


def _computed_bytes(dtype: DType | PointerType) -> int:
    """The size of an element in registers where it is computed."""
    return 4 if is_narrow(dtype) else size_bytes(dtype)


def _by_axis(own: Sequence[Along], axes: Sequence[int | None], rank: int) -> tuple[Along, ...]:
    found = [Along()] * rank
    for along, axis in zip(own, axes):
        if axis is not None:
            found[axis] = along
    return tuple(found)


def _operand_axes(op: Op, operand: Value, axes: tuple[int | None, ...]) -> tuple[
        int | None, ...]:
    """The nest's axis of each axis of an operand, given those of the result."""
    shape = operand.type.shape
    if op.name == "transpose":
        found: list[int | None] = [None] * len(shape)
        for axis, source in enumerate(op.attrs["axes"]):
            found[source] = axes[axis]
        return tuple(found)
    if op.name == "broadcast":
        wide = op.result.type.shape
        return tuple(None if n == 1 and m > 1 else axis for n, m, axis in zip(shape, wide, axes))
    if op.name == "join":
        return axes[:-1]
    if op.name == "split":
        return (*axes, None)
    if op.name == "flip":
        return tuple(None if a == op.attrs["axis"] else axis for a, axis in enumerate(axes))
    if op.name == "reshape":
        return _reshaped_axes(shape, op.result.type.shape, axes)
    return axes


def _reshaped_axes(shape: tuple[int, ...], wide: tuple[int, ...],
                   axes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Axes that a reshape leaves whole, and the innermost one."""
    own = [a for a, n in enumerate(shape) if n > 1]
    result = [a for a, n in enumerate(wide) if n > 1]
    found: list[int | None] = [None] * len(shape)
    if [shape[a] for a in own] == [wide[a] for a in result]:
        for a, b in zip(own, result):
            found[a] = axes[b]
    elif own and result:
        found[own[-1]] = axes[result[-1]]
    return tuple(found)


def _enclosing(region: Region, around: tuple[Op, ...]) -> Iterator[tuple[Op, tuple[Op, ...]]]:
    for op in region.ops:
        yield op, around
        for inner in op.regions:
            yield from _enclosing(inner, (*around, op))
