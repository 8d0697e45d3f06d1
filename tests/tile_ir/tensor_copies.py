"""Accesses that are boxes, replaced by what a tensor copy does: the oracle of the analysis.

The functions have views: what they access by pointers was raised.
"""

from __future__ import annotations

from blocknumba.tile_ir.analysis.boxes import Box, Boxes
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.remarks import NOT_RAISED
from blocknumba.tile_ir.ir.tensor_map import UNBOUNDED, Number, Product
from blocknumba.tile_ir.ir.types import bool_, int32, int64
from blocknumba.tile_ir.passes.raise_pointers import raise_pointers


def accesses(fn: Function) -> list[Op]:
    """The loads and stores of tiles, in order."""
    return [op for op in walk(fn.body)
            if op.name in ("load", "store") and op.operands[0].type.shape]


def box_or_reason(fn: Function, number: int) -> Box | str:
    """The box of an access by its number, or why it has none; those by pointers are raised."""
    fn = raise_pointers(fn)
    access = accesses(fn)[number]
    reasons = [remark.reason for remark in fn.remarks if remark.topic == NOT_RAISED
               and (remark.details["kind"], remark.loc) == (access.name, access.loc)]
    return reasons[0] if reasons else Boxes(fn).box_of(access)


def with_copies(fn: Function) -> Function:
    """The function with every box accessed by its description alone."""
    return rebuild(fn, _Copies(fn))


class _Copies:
    """A rewrite: an element is touched where each of its coordinates is inside of the array."""

    def __init__(self, fn: Function):
        self._boxes = Boxes(fn)
        self._numbers = {Number(parameter.kind, parameter.argument, parameter.axis): arg
                         for parameter, arg in zip(fn.parameters, fn.body.args, strict=True)}

    def __call__(self, rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
        box = self._boxes.box_of(op) if op.name in ("load", "store") else ""
        if isinstance(box, str):
            return None
        pointer, inside = self._elements(rebuilder, box, op.operands[0].type.shape)
        if op.name == "load":
            return (rebuilder.builder.emit(op.opdef, pointer, inside),)
        rebuilder.builder.emit(op.opdef, pointer, rebuilder[op.operands[1]], inside)
        return ()

    def _elements(self, rebuilder: Rebuilder, box: Box, shape: tuple[int, ...],
                  ) -> tuple[Value, Value]:
        """Pointers to the elements of a box, and which of them are inside of the array."""
        emit = rebuilder.builder.emit

        def tile(scalar: Value) -> Value:
            return emit(OPS["splat"], scalar, shape=shape)

        offset = tile(rebuilder.builder.constant(0, int64))
        inside = tile(rebuilder.builder.constant(True, bool_))
        for axis in box.axes:
            start = axis.emit_start(rebuilder)
            assert start.type.dtype == int32 and start.type.is_scalar
            index = tile(emit(OPS["cast"], start, dtype="int64"))
            if axis.tile_axis is not None:
                index = emit(OPS["add"], index, self._indices(rebuilder, axis.tile_axis, shape))
            bound = (rebuilder.builder.constant(UNBOUNDED, int64) if axis.bound is None
                     else self._number(rebuilder, axis.bound))
            zero = tile(rebuilder.builder.constant(0, int64))
            for condition in (emit(OPS["ge"], index, zero), emit(OPS["lt"], index, tile(bound))):
                inside = emit(OPS["and"], inside, condition)
            step = emit(OPS["mul"], index, tile(self._number(rebuilder, axis.stride)))
            offset = emit(OPS["add"], offset, step)
        return emit(OPS["offset"], tile(rebuilder[box.base]), offset), inside

    @staticmethod
    def _indices(rebuilder: Rebuilder, axis: int, shape: tuple[int, ...]) -> Value:
        emit = rebuilder.builder.emit
        indices = emit(OPS["cast"], emit(OPS["arange"], start=0, size=shape[axis]), dtype="int64")
        alone = tuple(extent if i == axis else 1 for i, extent in enumerate(shape))
        return emit(OPS["broadcast"], emit(OPS["reshape"], indices, shape=alone), shape=shape)

    def _number(self, rebuilder: Rebuilder, product: Product) -> Value:
        """A number known at launch."""
        emit = rebuilder.builder.emit
        total = rebuilder.builder.constant(product.factor, int64)
        for number in product.numbers:
            factor = emit(OPS["cast"], rebuilder[self._numbers[number]], dtype="int64")
            total = emit(OPS["mul"], total, factor)
        return total


def described(box: Box | str) -> list[str] | str:
    """A box in words: 'tile axis:extent * stride < bound' per axis."""
    if isinstance(box, str):
        return box
    return [f"{'-' if axis.tile_axis is None else axis.tile_axis}:{axis.extent} "
            f"* {axis.stride} < {axis.bound or 'any'}" for axis in box.axes]
