"""Pass: the view of which an access by pointers touches elements, found from its addresses.

    %p = offset %x, 64 * %b * %s + i * %s + j    i, j: index in the tile
    %m = 64 * %b + i < %n                        %s, %n: known at launch

    %v = view %x, %n, %s {extents=(None, 2147483648), strides=(None, 1)}
    %q, %inside = raised_elements %p, %m, %v, 64 * %b, 0 {sizes=(64, 32), nonnegative=(True, True)}

What reads views alone, as the plan of TMA does, then knows kernels that compute addresses too.  The
pass adds ops and changes none, and `lower_raised` takes them out again: an access that nobody needs
the view of is as if there were none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from blocknumba.tile_ir.analysis.boxes import Box, Boxes, BoxAxis, Line, Matcher
from blocknumba.tile_ir.analysis.decompositions import decompositions
from blocknumba.tile_ir.analysis.polynomial import Polynomial
from blocknumba.tile_ir.folds.patterns import filled, number
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.remarks import NOT_RAISED, Remark
from blocknumba.tile_ir.ir.tensor_map import UNBOUNDED
from blocknumba.tile_ir.ir.types import TileType, bool_, int64
from blocknumba.tile_ir.ops.memory import load, store
from blocknumba.tile_ir.ops.views import elements_of, raised_elements, view
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.dce import dce


@declared(reads=("ops",), writes=("ops",))
def raise_pointers(fn: Function, _: object = None) -> Function:
    """Say of loads and stores by pointers which elements of which view they touch."""
    return raised(fn, list(filter(is_by_pointers, walk(fn.body))))


def is_by_pointers(op: Op) -> bool:
    """Whether an op is a load or a store of a tile at addresses that are of no view."""
    return op.opdef in (load, store) and bool(op.pointer.type.shape) and (
        elements_of(op.pointer) is None)


def raised(fn: Function, accesses: Collection[Op]) -> Function:
    """The function with views for accesses by pointers, and remarks on those that have none."""
    if not accesses:
        return fn
    raising = _Raising(fn, accesses)
    return rebuild(fn, raising, folding=False).remarked(raising.remarks)


def lower_raised(fn: Function) -> Function:
    """The function with the pointers and the masks that were raised, and without their views."""
    return dce(rebuild(fn, _pointers_again, folding=False))


def _pointers_again(rebuilder: Rebuilder, op: Op) -> Values | None:
    """The rewrite of raised elements; a mask that was made for them is dropped."""
    if op.opdef is raised_elements:
        return rebuilder[op.pointer], rebuilder[op.inside]
    made = elements_of(op.pointer) if op.opdef in (load, store) else None
    if made is None or made.opdef is not raised_elements:
        return None
    if op.mask is not made.results[1] or number(made.inside) is not True:
        return None
    values = (op.value,) if op.opdef is store else ()
    emitted = rebuilder.builder.emit(op.opdef, *map(rebuilder.__getitem__, (op.pointer, *values)),
                                     **op.attrs)
    return (emitted,) if op.results else ()


class _Raising:
    """The rewrite of accesses that are boxes."""

    def __init__(self, fn: Function, accesses: Iterable[Op]):
        self.remarks: list[Remark] = []
        self._boxes, self._accesses = Boxes(fn), frozenset(accesses)

    def __call__(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        if op not in self._accesses:
            return None
        box = self._boxes.box_of(op, _guesses)
        if isinstance(box, str):
            self.remarks.append(Remark.of(NOT_RAISED, op.loc, kind=op.name, reason=box))
            return None
        pointer, inside = _elements(rebuilder, op, box)
        if op.opdef is store:
            rebuilder.builder.emit(store, pointer, rebuilder[op.value], inside, **op.attrs)
            return ()
        return (rebuilder.builder.emit(load, pointer, inside, **op.attrs),)


def _guesses(matcher: Matcher, lines: list[Line]) -> Iterator[list[Line]]:
    """The axes of the array, guessed from the address of a tile's first element."""
    expressions, origin = matcher.expressions, matcher.expression.origin
    return decompositions(lines, matcher.expression.base, expressions.parameters[origin].argument,
                          expressions.parameter)


def _elements(rebuilder: Rebuilder, op: Op, box: Box) -> Values:
    """The pointers and the mask of an access, as those of elements of a view.

    The axes of the view: those of the tile, then those that scalars index.  Along an axis of extent
    1 that no array has, there is one element.
    """
    builder, shape = rebuilder.builder, op.pointer.type.shape
    of_tile = {axis.tile_axis: axis for axis in box.axes}
    axes = [of_tile.get(number) for number in range(len(shape))]
    axes += [axis for axis in box.axes if axis.tile_axis is None]
    extents = [_extent(axis) for axis in axes]
    strides = [Polynomial() if axis is None else axis.line.stride for axis in axes]
    made = builder.emit(
        view, rebuilder[box.base],
        *(size.emit(rebuilder, int64) for size in (*extents, *strides) if size.number is None),
        extents=tuple(size.number for size in extents),
        strides=tuple(size.number for size in strides), wide=True)
    indices = [_start(axis).emit(rebuilder, int64) for axis in axes]
    return builder.emit(
        raised_elements, rebuilder[op.pointer], _mask(builder, op, rebuilder), made, *indices,
        sizes=(*shape, *(None,) * (len(axes) - len(shape))),
        nonnegative=tuple(axis is None or not axis.checked for axis in axes))


def _extent(axis: BoxAxis | None) -> Polynomial:
    if axis is None:
        return Polynomial.constant(1)
    return Polynomial.constant(UNBOUNDED) if axis.line.bound is None else axis.line.bound


def _start(axis: BoxAxis | None) -> Polynomial:
    return Polynomial() if axis is None else axis.start


def _mask(builder: Builder, op: Op, rebuilder: Rebuilder) -> Value:
    if op.mask is not None:
        return rebuilder[op.mask]
    return filled(builder, TileType(bool_, op.pointer.type.shape), True)
