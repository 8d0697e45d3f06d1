"""The pass that joins accesses to every second element with those to the elements between.

    %x = load %p                              %v = load %q : 64 x 256
    %y = load (%p + 1) : 64 x 128   becomes   %x, %y = split (reshape %v : 64 x 128 x 2)
    store %p, %c                              store %q, reshape (join %c, %s)
    store (%p + 1), %s

%p rises by 2 from element to element, so that no thread could take two of them at once; %q rises
by 1.  Numbers that are stored in pairs are such: complex ones, rotated neighbours, gates.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import stage
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.sampling import Runs, Sampler, is_arithmetic
from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.polynomial import ONE, Polynomial
from blocknumba.tile_ir.folds.patterns import filled
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import PURE, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.types import MAX_RANK
from blocknumba.tile_ir.ops.create import arange
from blocknumba.tile_ir.ops.memory import load, offset, store
from blocknumba.tile_ir.ops.shape import broadcast, join, reshape, split, transpose
from blocknumba.tile_ir.passes.contract import declared

TWO = Polynomial.constant(2)
MAX_PER_THREAD = 256  # elements of a joined tile: as many as a thread has registers

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two accesses that meet neighbours, each of which rises by 2 along an axis.

    first, second: by address.   region: where both are.
    """

    first: Op
    second: Op
    axis: int
    region: Region


@declared(reads=("ops",), writes=("ops",))
def join_accesses(fn: Function, options: LayoutOptions) -> Function:
    """Make one load of two whose elements alternate in memory, and one store of two.

    Loads are done at the place of the earlier one, stores at that of the later one; nothing that
    may meet them is between.  Loads that a dot reads from shared memory stay.
    """
    if sum(op.opdef in (load, store) and bool(op.pointer.type.shape) for op in walk(fn.body)) < 2:
        return fn
    places = _Finder(fn, options).places
    pointers: dict[tuple[Region, Value, int], Value] = {}
    loaded: dict[Op, Value] = {}

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
        pair, joins = places.get(op, (None, False))
        if pair is None:
            return None
        if not joins:
            return (loaded[op],) if op.opdef is load else ()
        key = pair.region, pair.first.pointer, pair.axis
        if key not in pointers:
            pointers[key] = _joined_pointers(rebuilder, *key[1:])
        joined = _Joined(rebuilder, pair, pointers[key])
        if op.opdef is store:
            joined.store()
            return ()
        loaded.update(zip((pair.first, pair.second), joined.loads(), strict=True))
        return (loaded[op],)

    return rebuild(fn, rewrite) if places else fn


class _Finder:
    """Finds the pairs.

    places: an access -> its pair, and whether the joined access is done in its place.
    """

    def __init__(self, fn: Function, options: LayoutOptions):
        self._infos, self._affine = AxisInfos(fn), AffineExpressions(fn)
        self._threads = options.threads
        self._staged = {op.x for op in walk(fn.body) if op.opdef is stage}
        self.places: dict[Op, tuple[_Pair, bool]] = {}
        self._region(fn.body)

    def _region(self, region: Region) -> None:
        waiting: list[Op] = []  # loads that later ones may join, or one store
        places: dict[Op, int] = {}
        for place, op in enumerate(region.ops):
            places[op] = place
            for inner in op.regions:
                self._region(inner)
            if self._is_candidate(op):
                waiting = [one for one in waiting if one.opdef is op.opdef]
                other = next((one for one in waiting if self._join(region, places, one, op)), None)
                if other is not None:
                    waiting.remove(other)
                else:
                    waiting = [op] if op.opdef is store else [*waiting, op]
            elif op.regions or not op.opdef.has(PURE):
                waiting = []

    def _is_candidate(self, op: Op) -> bool:
        """Whether it is an access with an element for each thread or more, and may be moved."""
        if op.opdef not in (load, store):
            return False
        pointers = op.pointer.type
        if not 1 <= pointers.size // self._threads <= MAX_PER_THREAD // 2 or (
                len(pointers.shape) == MAX_RANK):
            return False
        if op.opdef is store:
            return True
        is_filled = op.other is None or constant_of(op.other) is not None
        return is_filled and not attribute(op, "volatile") and op.result not in self._staged

    def _join(self, region: Region, places: dict[Op, int], earlier: Op, later: Op) -> bool:
        """Note a pair, if two accesses are one.   places: of the ops of the region so far."""
        if not _differ_in_places_only(earlier, later):
            return False
        for first, second in ((earlier, later), (later, earlier)):
            axis = self._axis(first, second)
            made = places.get(first.pointer.owner, -1)
            if axis is not None and (first.opdef is store or made < places[earlier]):
                pair = _Pair(first, second, axis, region)
                self.places[earlier] = pair, earlier.opdef is load
                self.places[later] = pair, earlier.opdef is store
                return True
        return False

    def _axis(self, first: Op, second: Op) -> int | None:
        """The axis along which second meets the elements between those of first; None without.

        First meets elements at even places only, as vectors of two must begin there, second at
        odd ones: of stores, too, neither meets what is the other's, whatever rows overlap.
        """
        one, other = (self._affine[op.pointer] for op in (first, second))
        if isinstance(one, str) or isinstance(other, str) or one.origin is not other.origin:
            return None
        between = other - one
        if between.base != ONE or any(between.steps) or TWO not in one.steps:
            return None
        axis = one.steps.index(TWO)
        aligned = 2 * first.pointer.type.dtype.pointee.bytes
        is_vector = self._infos[first.pointer].axes[axis].divisibility >= aligned
        return axis if is_vector and is_arithmetic(first.pointer, axis) else None


def _differ_in_places_only(one: Op, other: Op) -> bool:
    """Whether two accesses have all in common but the elements that they meet."""
    same = (one.mask is other.mask and one.attrs == other.attrs
            and one.pointer.type == other.pointer.type)
    if not same or one.opdef is store or one.other is None or other.other is None:
        return same and (one.opdef is store or one.other is other.other)
    return constant_of(one.other).item() == constant_of(other.other).item()


class _Joined:
    """Emits the joined access of a pair.   pointers: to the elements of both."""

    def __init__(self, rebuilder: Rebuilder, pair: _Pair, pointers: Value):
        self._rebuilder, self._emit, self._pair = rebuilder, rebuilder.builder.emit, pair
        self._pointers, self._wide = pointers, pointers.type.shape

    def loads(self) -> tuple[Value, Value]:
        """The tiles of both loads, that of the lower address first."""
        op, axis = self._pair.first, self._pair.axis
        operands = [self._pointers, *self._masks()]
        if op.other is not None:
            operands.append(filled(self._rebuilder.builder, op.other.type.shaped(self._wide),
                                   constant_of(op.other).item()))
        value = self._emit(load, *operands, **op.attrs)
        apart = self._emit(reshape, value, shape=self._apart(2))
        last = (*(one for one in range(len(self._wide) + 1) if one != axis + 1), axis + 1)
        return self._emit(split, self._emit(transpose, apart, axes=last))

    def store(self) -> None:
        """Emit both stores."""
        op, axis, rank = self._pair.first, self._pair.axis, len(self._wide)
        values = [self._rebuilder[one.value] for one in (op, self._pair.second)]
        order = (*range(axis + 1), rank, *range(axis + 1, rank))
        apart = self._emit(transpose, self._emit(join, *values), axes=order)
        value = self._emit(reshape, apart, shape=self._wide)
        self._emit(store, self._pointers, value, *self._masks(), **op.attrs)

    def _masks(self) -> tuple[Value, ...]:
        """The mask with each element twice; none without one."""
        mask = self._pair.first.mask
        if mask is None:
            return ()
        lone = self._emit(reshape, self._rebuilder[mask], shape=self._apart(1))
        twice = self._emit(broadcast, lone, shape=self._apart(2))
        return (self._emit(reshape, twice, shape=self._wide),)

    def _apart(self, extent: int) -> Shape:
        """The shape of one access, with an axis after that of the pair."""
        shape, axis = self._pair.first.pointer.type.shape, self._pair.axis + 1
        return (*shape[:axis], extent, *shape[axis:])


def _joined_pointers(rebuilder: Rebuilder, pointers: Value, axis: int) -> Value:
    """Pointers that rise by 1 along an axis, for some that rise by 2, and those between."""
    emit, shape = rebuilder.builder.emit, pointers.type.shape
    wide = _twice(shape, axis)
    lowest = Sampler(rebuilder).sample(pointers, Runs(axis, shape[axis]))
    lone = tuple(extent if one == axis else 1 for one, extent in enumerate(wide))
    places = emit(reshape, emit(arange, start=0, size=wide[axis]), shape=lone)
    return emit(offset, emit(broadcast, lowest, shape=wide), emit(broadcast, places, shape=wide))


def _twice(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 2 * shape[axis], *shape[axis + 1:])
