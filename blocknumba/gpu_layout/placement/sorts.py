"""Plans of sorting networks: which elements are compared, and where they lie meanwhile.

A network has wires, one for each index along the axis.  A step compares the elements on two wires
whose numbers differ by the xor with a mask, everywhere at once; the lesser one goes to the lower
wire.  Sorted runs of 2**k wires are merged by the mask 2**(k+1) - 1, which reverses the second
run, and by 2**(k-1), ..., 2, 1:

    wires     0 1 2 3 4 5 6 7
    runs      a a a a b b b b      sorted
    mask 7    0-7 1-6 2-5 3-4      each half: all of its elements are below those of the other
    mask 2    0-2 1-3 4-6 5-7
    mask 1    0-1 2-3 4-5 6-7      sorted

Wire 0 may begin anywhere, so the lowest bits of a wire, which most steps compare, are registers of
a thread; then come lanes, then warps.  For steps across warps elements change places with those
of other registers, once for all such steps of a merge; wires of a second run are renamed then, so
that one bit is compared at a time.

Where only the least 2**m elements are wanted, runs of 2**m wires are sorted.  Of two runs, one of
them reversed, the lesser elements are kept, and are merged to a run again.

Source: Batcher, "Sorting Networks and Their Applications"; Knuth, volume 3, 5.3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import (
    LANE, LANE_BITS, REGISTER, WARP, FreeBits, dims_of, from_columns, log2, shape_of, warp_count,
    within_warps,
)
from blocknumba.gpu_layout.placement.scans import axis_bits, is_ordered

COMPARE, KEEP, TAKE = "compare", "keep", "take"
# Issue slots of a step per element: a minimum or maximum; an exchange, a comparison and a choice.
REGISTER_SLOTS, LANE_SLOTS = 1, 3
MOVE_SLOTS = 6  # of an element through shared memory

Step = tuple[str, int]  # what to do, and the mask on packed indices
Place = tuple[str, int]  # a bit of the register, lane or warp number


@dataclass(frozen=True, slots=True)
class SortPhase:
    """Steps within warps.

    is_moved: whether the tile is converted to `wires` before; else its registers are renamed.
    wires: packed index -> wire, where elements lie before the steps.
    steps: (COMPARE, mask): the lesser element to the lower wire;
        (KEEP, mask): the lesser element to the lower wire, whose highest bit is dropped, and with
        it the other element;
        (TAKE, mask): the highest wires, those that have the only bit of the mask, are dropped.
    layout: of the result.
    """

    is_moved: bool
    wires: LinearLayout
    steps: tuple[Step, ...]
    layout: LinearLayout


def can_sort(layout: LinearLayout, axis: int) -> bool:
    """Whether warps that share an axis can change places with registers and lanes along it."""
    if not is_ordered(layout, axis):
        return False
    register, lane, warp = _places(layout, axis)
    return len(warp) <= len(register) + len(lane)


def sorting_layout(shape: tuple[int, ...], axis: int, num_warps: int) -> LinearLayout:
    """The layout in which sorting costs least: of an axis as much as possible in one thread."""
    others = tuple(other for other in reversed(range(len(shape))) if other != axis)
    free, warp_bits = FreeBits(shape), log2(num_warps)
    register = free.take((axis,), max(0, len(free) - LANE_BITS - warp_bits))
    lane = free.take((axis, *others), LANE_BITS)
    warp = free.take((*others, axis), warp_bits)
    register += free.take((axis, *others), len(free))
    lane += (0,) * (LANE_BITS - len(lane))
    warp += (0,) * (warp_bits - len(warp))
    layout = from_columns(shape, register, lane, warp)
    return layout if can_sort(layout, axis) else within_warps(shape, axis, num_warps)


def preferred_for_sorting(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout to sort in, of a tile in some layout, which it is moved from if that pays."""
    best = sorting_layout(shape_of(layout), axis, warp_count(layout))
    if not can_sort(layout, axis):
        return best
    pays = _sorting_slots(best, axis) + MOVE_SLOTS < _sorting_slots(layout, axis)
    return best if pays else layout


def _sorting_slots(layout: LinearLayout, axis: int) -> int:
    """Issue slots of sorting, of one element."""
    register, lane, warp = map(len, _places(layout, axis))
    bits = register + lane + warp
    inside = sum((bits - bit) * (REGISTER_SLOTS if bit < register else LANE_SLOTS)
                 for bit in range(register + lane))
    across = sum(2 * MOVE_SLOTS + (level + 1) * REGISTER_SLOTS for level in range(warp))
    return inside + across


@lru_cache(maxsize=1024)
def sort_plan(layout: LinearLayout, axis: int, kept: int) -> tuple[SortPhase, ...]:
    """The phases of sorting a tile in a layout that can_sort, of which `kept` are returned.

    The layout of the last phase is the result's.
    """
    places, inside = _places(layout, axis), sum(map(len, _places(layout, axis)[:2]))
    bits = kept.bit_length() - 1
    if bits < sum(map(len, places)) and bits <= inside:
        return tuple(_selection(layout, axis, bits))
    phases = list(_sorting(layout, axis))
    if bits < sum(map(len, places)):
        phases.append(_taken(phases[-1].layout, axis, bits))
    return tuple(phases)


def _places(layout: LinearLayout, axis: int) -> tuple[list[Place], ...]:
    """The bits of the registers, lanes and warps along an axis."""
    first, bits = axis_bits(layout, axis)
    mask = (1 << bits) - 1 << first
    return tuple([(dim, bit) for bit, column in enumerate(layout[dim]) if column & mask]
                 for dim in (REGISTER, LANE, WARP))


def _wired(layout: LinearLayout, axis: int, order: list[Place]) -> LinearLayout:
    """A layout with its bits along an axis named anew: wire bit i is order[i]."""
    first, _ = axis_bits(layout, axis)
    for wire, (dim, bit) in enumerate(order):
        layout = _with_column(layout, dim, bit, 1 << first + wire)
    return layout


def _with_column(layout: LinearLayout, dim: str, bit: int, column: int) -> LinearLayout:
    columns = list(layout[dim])
    columns[bit] = column
    return layout.with_columns(dim, tuple(columns))


def _merge(level: int) -> list[int]:
    """The masks that merge two runs of 2**level wires."""
    return [(2 << level) - 1, *_halves(level)]


def _halves(level: int) -> list[int]:
    """The masks that sort 2**level wires after the first step of a merge."""
    return [1 << bit for bit in reversed(range(level))]


def _sorting(layout: LinearLayout, axis: int) -> Iterator[SortPhase]:
    """The phases of sorting all elements."""
    first, _ = axis_bits(layout, axis)
    register, lane, warp = _places(layout, axis)
    order = register + lane + warp
    inside = len(register) + len(lane)
    wires = _wired(layout, axis, order)

    def steps(masks: list[int]) -> tuple[Step, ...]:
        return tuple((COMPARE, mask << first) for mask in masks)
    pending, is_moved = [mask for level in range(inside) for mask in _merge(level)], False
    for level in range(inside, len(order)):
        yield SortPhase(is_moved, wires, steps(pending), _reversed_runs(wires, first, level))
        # the places of the highest registers and lanes go to warps
        crossing = level - inside + 1
        taken = (register[::-1] + lane[::-1])[:crossing]
        swapped = list(order)
        for number, place in enumerate(taken):
            own = order.index(place)
            swapped[own], swapped[inside + number] = order[inside + number], place
        away = _wired(layout, axis, swapped)
        masks = [1 << bit for bit in range(level, inside - 1, -1)]
        yield SortPhase(True, away, steps(masks), away)
        pending, is_moved = _halves(inside), True
    yield SortPhase(is_moved, wires, steps(pending), wires)


def _reversed_runs(wires: LinearLayout, first: int, level: int) -> LinearLayout:
    """The layout after wires were renamed: of each second run of 2**level ones, in reverse."""
    columns = tuple(column | (1 << level) - 1 << first if column == 1 << first + level else column
                    for column in wires.columns)
    return LinearLayout(wires.ins, wires.outs, columns)


def _selection(layout: LinearLayout, axis: int, bits: int) -> Iterator[SortPhase]:
    """The phases of sorting of which 2**bits elements are kept, which a warp can hold."""
    first, _ = axis_bits(layout, axis)
    register, lane, warp = _places(layout, axis)
    inner = _registers_of_runs(len(register), len(lane), bits)
    run = register[:inner] + lane[:bits - inner]
    # registers last: they go first, which leaves fewer of them
    dropped = lane[bits - inner:] + register[inner:]
    wires = _wired(layout, axis, run + warp + dropped)
    steps: list[Step] = [(COMPARE, mask << first)
                         for level in range(bits) for mask in _merge(level)]
    steps += _kept(first, bits, range(bits + len(warp), bits + len(warp) + len(dropped)))
    shape = shape_of(layout)

    def shortened(wires: LinearLayout, count: int) -> LinearLayout:
        return _dropped(wires, axis, (*shape[:axis], 1 << count, *shape[axis + 1:]))
    left = shortened(wires, bits + len(warp))
    yield SortPhase(False, wires, tuple(steps), left)
    if not warp:
        return
    # every warp gets all runs: in lanes that hold copies, then in further registers
    idle = [bit for bit, column in enumerate(left[LANE]) if not column]
    gathered = left
    for number, (_, bit) in enumerate(warp):
        column = 1 << first + bits + number
        gathered = _with_column(gathered, WARP, bit, 0)
        if number < len(idle):
            gathered = _with_column(gathered, LANE, idle[number], column)
        else:
            gathered = gathered.with_columns(REGISTER, (*gathered[REGISTER], column))
    yield SortPhase(True, gathered, tuple(_kept(first, bits, range(bits, bits + len(warp)))),
                    shortened(gathered, bits))


def _kept(first: int, bits: int, wires: range) -> list[Step]:
    """Steps that drop wire bits, the highest one first, each followed by a merge."""
    found: list[Step] = []
    for wire in reversed(wires):
        found.append((KEEP, (1 << wire | (1 << bits) - 1) << first))
        found += [(COMPARE, mask << first) for mask in _halves(bits)]
    return found


def _dropped(wires: LinearLayout, axis: int, shape: tuple[int, ...]) -> LinearLayout:
    """A layout after the highest wires of an axis were dropped; threads of theirs hold copies."""
    first, bits = axis_bits(wires, axis)
    left = shape[axis].bit_length() - 1
    gone = (1 << bits) - (1 << left) << first
    low = (1 << first + left) - 1

    def moved(column: int) -> int:
        return 0 if column & gone else column & low | (column >> first + bits) << first + left
    register = tuple(moved(column) for column in wires[REGISTER] if not column & gone)
    lane, warp = (tuple(map(moved, wires[dim])) for dim in (LANE, WARP))
    ins = ((REGISTER, len(register)), (LANE, len(lane)), (WARP, len(warp)))
    return LinearLayout(ins, dims_of(shape), register + lane + warp)


def _registers_of_runs(registers: int, lanes: int, bits: int) -> int:
    """The bits of a run that are registers, for the fewest issue slots; the others are lanes."""
    fitting = range(max(0, bits - lanes), min(registers, bits) + 1)
    return min(fitting, key=lambda inner: _slots(registers, lanes, bits, inner))


def _slots(registers: int, lanes: int, bits: int, inner: int) -> float:
    costs = [REGISTER_SLOTS if bit < inner else LANE_SLOTS for bit in range(bits)]
    elements = 1 << registers
    total = float(elements * sum((bits - bit) * cost for bit, cost in enumerate(costs)))
    of_pair = 1 + (bits > inner)
    for _ in range(registers - inner):
        elements //= 2
        total += elements * (of_pair + sum(costs))
    return total + (lanes - bits + inner) * elements * (LANE_SLOTS - 1 + sum(costs))


def _taken(layout: LinearLayout, axis: int, bits: int) -> SortPhase:
    """The phase that leaves the lowest of sorted elements, of which warps hold the highest bits."""
    first, extent = axis_bits(layout, axis)
    wires, steps = layout, []
    for wire in range(bits, extent):
        column = 1 << first + wire
        (dim, bit), = [place for place in _places(layout, axis)[2]
                       if layout[WARP][place[1]] == column]
        wires = _with_column(wires, dim, bit, 0)
        wires = wires.with_columns(REGISTER, (*wires[REGISTER], column))
        steps.insert(0, (TAKE, column))
    shape = shape_of(layout)
    return SortPhase(True, wires, tuple(steps),
                     _dropped(wires, axis, (*shape[:axis], 1 << bits, *shape[axis + 1:])))
