"""Fusion of additions into the accumulators of dots."""

from __future__ import annotations

from blocknumba.tile_ir.folds.patterns import made_by, number
from blocknumba.tile_ir.ir.function import Function, Op, Value
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def accumulate_dots(fn: Function, _: object = None) -> Function:
    """Turn a @ b + c into one dot with accumulator c, where nothing else uses a @ b.

    Both are in one region: a dot before a loop stays there.
    The error bound of `dot` holds for the sum too.
    """
    uses = Uses(fn)

    def rewrite(rebuilder: Rebuilder, op: Op) -> Values | None:
        if op.name != "add":
            return None
        for value, other in ((op.x, op.y), (op.y, op.x)):
            dot = _dot_on_zeros(value)
            if dot is None or len(uses.users(value)) > 1:
                continue
            if uses.regions(dot)[0] is uses.regions(op)[0]:
                operands = map(rebuilder.__getitem__, (dot.a, dot.b, other))
                return (rebuilder.builder.emit(dot.opdef, *operands, **dot.attrs),)
        return None

    return rebuild(fn, rewrite)


def _dot_on_zeros(value: Value) -> Op | None:
    """The dot that defines a value, if its accumulator is zero."""
    dot = made_by(value, "dot")
    return dot if dot is not None and number(dot.acc) == 0 else None
