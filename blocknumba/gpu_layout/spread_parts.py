"""Which parts of which tiles a block computes, where a program is spread over several.

Every product is spread by its rows.  So a tile that is computed from a product is there in parts
alone; one that a product is computed from is made in parts, whole, or both, as it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.spread_axes import (
    ROWS,
    Axis,
    NotSpread,
    axes_of_operands,
    axis_of_result,
)
from blocknumba.tile_ir.carried import carried, controls, is_loop
from blocknumba.tile_ir.ir import Function, Op, Region, Value, walk
from blocknumba.tile_ir.opdef import EFFECT, TERMINATOR, WRITES
from blocknumba.tile_ir.ops.debug import print_
from blocknumba.tile_ir.ops.dot import dot


@dataclass(frozen=True, slots=True)
class Parts:
    """What a block computes.

    axes: per value that is needed, the axes along which its parts lie, None for the whole.
    writes: per op that writes, the axis of what it writes.
    """

    axes: Mapping[Value, tuple[Axis, ...]]
    writes: Mapping[Op, int]

    def axis(self, value: Value) -> Axis:
        """The axis of a value that a loop carries, or that a branch yields."""
        (axis,) = self.axes[value]
        return axis


def parts_of(fn: Function) -> Parts:
    """The parts that a block of a program computes.

    Errors: NotSpread.
    """
    search = _Search(fn, products_in_parts(fn))
    search.run()
    return Parts({value: tuple(axes) for value, axes in search.wanted.items()}, search.writes)


# forwards: what is computed from a product -----------------------------------------------------
def products_in_parts(fn: Function) -> dict[Value, int]:
    """Per value that is computed from products, the axis along which its parts lie.

    Errors: NotSpread.
    """
    found: dict[Value, int] = {}
    known = -1
    while known < len(found):  # until no loop carries more
        known = len(found)
        _forwards(fn.body, found)
    return found


def _forwards(region: Region, found: dict[Value, int]) -> None:
    for op in region.ops:
        for inner in op.regions:
            _forwards(inner, found)
        given = {place: found[v] for place, v in enumerate(op.operands) if v in found}
        if is_loop(op):
            own = carried(op)
            for arg, result, *sources in zip(own.args, op.results, own.initial, own.following,
                                             strict=True):
                _join(found, (arg, result), sources)
        elif op.regions:
            yields = [inner.terminator.operands for inner in op.regions]
            for result, *sources in zip(op.results, *yields, strict=True):
                _join(found, (result,), sources)
        elif op.opdef is dot:
            if given:
                axis_of_result(op, given)
            _note(found, op.result, len(op.result.type.shape) + ROWS)
        elif given and not op.opdef.has(TERMINATOR):
            axis = axis_of_result(op, given)
            for result in op.results:
                _note(found, result, axis)


def _join(found: dict[Value, int], values: Iterable[Value], sources: Iterable[Value]) -> None:
    for source in sources:
        if source in found:
            for value in values:
                _note(found, value, found[source])


def _note(found: dict[Value, int], value: Value, axis: int) -> None:
    if found.setdefault(value, axis) != axis:
        raise NotSpread(f"{value.hint or 'a tile'} has parts along two axes")


# backwards: what that needs --------------------------------------------------------------------
class _Search:
    """Finds all that the effects of a function need."""

    def __init__(self, fn: Function, products: Mapping[Value, int]):
        self._fn = fn
        self._products = products
        self._handed: dict[Value, tuple[Value, ...]] = {}  # with it, or to it
        self._waiting: list[tuple[Value, Axis]] = []
        self.wanted: dict[Value, dict[Axis, None]] = {}
        self.writes: dict[Op, int] = {}

    def run(self) -> None:
        """Fill wanted and writes."""
        loops = []
        for op in walk(self._fn.body):
            if is_loop(op):
                loops.append(op)
                self._want(controls(op), None)
                self._note_carried(op)
            elif op.regions:
                self._want(op.operands, None)
                yields = [inner.terminator.operands for inner in op.regions]
                self._handed.update(zip(op.results, zip(*yields, strict=True), strict=True))
            elif op.opdef.has(WRITES):
                self._want_written(op)
            elif op.opdef is print_:
                raise NotSpread("every block would print")
            elif op.opdef.has(EFFECT):
                self._want(op.operands, None)
        self._drain()
        for loop in loops:  # what nobody needs is carried all the same
            for result in loop.results:
                if result not in self.wanted:
                    self._want((result,), self._products.get(result))
                    self._drain()

    def _note_carried(self, loop: Op) -> None:
        own = carried(loop)
        for together in zip(own.initial, own.args, own.following, loop.results, strict=True):
            _, arg, _, result = together
            self._handed[arg] = self._handed[result] = together

    def _want_written(self, op: Op) -> None:
        given = {place: self._products[value] for place, value in enumerate(op.operands)
                 if value in self._products}
        if not given:
            raise NotSpread(f"{op.name} is not of a product: every block would do it")
        axis = self.writes[op] = axis_of_result(op, given)
        for value, part in zip(op.operands, axes_of_operands(op, axis), strict=True):
            self._want((value,), part)

    def _want(self, values: Iterable[Value], axis: Axis) -> None:
        for value in values:
            if self._products.get(value, axis) != axis:
                raise NotSpread(f"{value.hint or 'a tile'} is needed whole")
            axes = self.wanted.setdefault(value, {})
            if axis not in axes:
                if axes and value in self._handed:
                    raise NotSpread(f"{value.hint or 'a tile'} is carried whole and in parts")
                axes[axis] = None
                self._waiting.append((value, axis))

    def _drain(self) -> None:
        while self._waiting:
            value, axis = self._waiting.pop()
            op = value.owner
            if value in self._handed:
                self._want(self._handed[value], axis)
            elif op is not None and axis is None:
                self._want(op.operands, None)
            elif op is not None:
                for operand, part in zip(op.operands, axes_of_operands(op, axis), strict=True):
                    self._want((operand,), part)
