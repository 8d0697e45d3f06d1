"""The folding builder: the only place where ops are made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager

import numpy as np

from blocknumba.errors import UNKNOWN, BlockError, Loc, UnsupportedError
from blocknumba.tile_ir.ir.function import Op, OpDef, Region, Value
from blocknumba.tile_ir.ir.opdef import OPS, PURE, REARRANGES
from blocknumba.tile_ir.ir.types import DType, TileType

MAX_NESTING = 100  # of regions: each takes seven calls of Python in a pass, of which 1000 fit


class Builder:
    """Appends ops to a region, simplifying each as it is made.

    loc: given to every op that is emitted.
    folding: when false ops are kept as written (the parser, exact re-emission).
    """

    def __init__(self, folding: bool = True):
        self.folding = folding
        self.loc: Loc = UNKNOWN
        self._ops: list[Op] = []
        self._depth = 0

    def emit(self, opdef: OpDef, *operands: Value, regions: Sequence[Region] = (), hint: str = "",
             types: tuple[TileType, ...] | None = None, **attrs) -> Value | tuple[Value, ...]:
        """Append an op; returns its result, or the tuple of them when there is not exactly one.

        types: overrides the type rule where a pass has assigned layouts; dtype and shape must
        be those of the rule.
        Errors: BlockTypeError of the op's type rule, located at self.loc.
        """
        op = self.make(opdef, operands, regions, hint, types, attrs)
        values = self._folded_or_appended(op)
        return values[0] if len(values) == 1 else values

    def emit_again(self, op: Op, operands: tuple[Value, ...],
                   regions: tuple[Region, ...] = ()) -> tuple[Value, ...]:
        """Append a copy of an op with other operands and regions; returns its results.

        Attributes, location and the types of results stay, so nothing is inferred or checked.
        """
        self.loc = op.loc
        copy = Op(op.opdef, operands, op.attrs, (), regions, op.loc)
        copy.results = tuple([Value(value.type, copy) for value in op.results])
        return self._folded_or_appended(copy)

    def constant(self, value: bool | int | float, dtype: DType) -> Value:
        """Append a scalar constant; value must be one of dtype's values."""
        return self.emit(OPS["constant"], value=value, dtype=dtype.name)

    def make(self, opdef: OpDef, operands: Sequence[Value], regions: Sequence[Region], hint: str,
             types: tuple[TileType, ...] | None, attrs: dict) -> Op:
        """An op that is typed but not appended."""
        count = len(operands)
        assert opdef.required <= count and (opdef.variadic or count <= len(opdef.operands)), (
            f"{opdef.name}: {count} operands")
        assert attrs.keys() <= opdef.attribute_names, f"{opdef.name}: attributes {sorted(attrs)}"
        if types is None:
            types = self._infer(opdef, operands, attrs)
        op = Op(opdef, tuple(operands), attrs, (), tuple(regions), self.loc)
        op.results = tuple([Value(t, op, hint) for t in types])
        return op

    def append(self, op: Op) -> None:
        """Append an op made elsewhere as it is."""
        self._ops.append(op)

    @contextmanager
    def region(self, *arg_types: TileType, hints: Sequence[str] = ()):
        """A nested region: `with builder.region(t) as (region, args): ...` fills region.ops.

        Errors: UnsupportedError for regions too deep in each other.
        """
        if self._depth >= MAX_NESTING:
            raise UnsupportedError(
                f"given more than {MAX_NESTING} branches and loops in each other", loc=self.loc,
                hint="all that follows a break or a return is in a branch of its own, in a loop "
                     "that is unrolled in each iteration: use range, or fewer conditions")
        outer, self._ops = self._ops, []
        self._depth += 1
        args = tuple(Value(t, None, hints[i] if i < len(hints) else "")
                     for i, t in enumerate(arg_types))
        region = Region(args, ())
        try:
            yield region, args
            region.ops = tuple(self._ops)
        finally:
            self._ops = outer
            self._depth -= 1

    def _infer(self, opdef: OpDef, operands: Sequence[Value], attrs: dict) -> tuple[TileType, ...]:
        try:
            types = opdef.infer(*(value.type for value in operands), **attrs)
        except BlockError as error:
            raise error.at(self.loc) from None
        if types is None:
            return ()
        return types if isinstance(types, tuple) else (types,)

    def _folded_or_appended(self, op: Op) -> tuple[Value, ...]:
        """The results of an op, or what it folds to."""
        folded = self._fold(op) if self.folding else None
        if folded is not None:
            return folded if isinstance(folded, tuple) else (folded,)
        self._ops.append(op)
        return op.results

    def _fold(self, op: Op) -> Value | tuple[Value, ...] | None:
        if op.results and op.results[0].type.layout is not None:
            return None  # folds infer types, and would forget layouts
        value = fold_constants(self, op)
        if value is not None:
            return value
        for fold in op.opdef.folds:
            if (value := fold(self, op)) is not None:
                return value
        return None


def rearranged_from(value: Value) -> Value:
    """The value whose elements, all of them, a value has, repeated or along other axes."""
    while value.owner is not None and value.owner.opdef.has(REARRANGES):
        value = value.owner.x
    return value


def constant_of(value: Value) -> object | None:
    """The NumPy scalar that a scalar or splat value is known to be, or None."""
    op = rearranged_from(value).owner
    if op is None or op.name != "constant":
        return None
    return op.opdef.evaluate(**op.attrs)[0]


def fold_constants(builder: Builder, op: Op) -> Value | None:
    """A pure scalar op of constants as a constant; None for other ops."""
    if len(op.results) != 1 or op.regions or not op.operands:
        return None
    if not op.opdef.has(PURE) or op.opdef.evaluate is None:
        return None
    if op.results[0].type.shape or op.results[0].type.is_pointer:
        return None
    values = []
    for operand in op.operands:
        value = None if operand.type.shape else constant_of(operand)
        if value is None:
            return None
        values.append(value)
    with np.errstate(all="ignore"):
        result = op.opdef.evaluate(*(value.reshape(1) for value in values), **op.attrs)
    return builder.constant(result[0].item(), op.result.type.dtype)
