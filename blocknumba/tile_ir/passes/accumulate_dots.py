"""The pass that adds products of matrices up where they are made."""

from __future__ import annotations

from blocknumba.tile_ir.folds.patterns import made_by, number
from blocknumba.tile_ir.ir.function import Function, Op, Value
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def accumulate_dots(fn: Function, _: object = None) -> Function:
    """a @ b + c is one dot, with c for its accumulator, where nothing else uses the product.

    It is so in one region only: a product that is made before a loop stays there.
    What `dot` promises of its error holds for the sum too.
    """
    uses = Uses(fn)

    def rewrite(rebuilder: Rebuilder, op: Op) -> Values | None:
        if op.name != "add":
            return None
        for product, other in ((op.x, op.y), (op.y, op.x)):
            dot = _bare_product(product)
            if dot is None or len(uses.users(product)) > 1:
                continue
            if uses.regions(dot)[0] is uses.regions(op)[0]:
                operands = map(rebuilder.__getitem__, (dot.a, dot.b, other))
                return (rebuilder.builder.emit(dot.opdef, *operands, **dot.attrs),)
        return None

    return rebuild(fn, rewrite)


def _bare_product(value: Value) -> Op | None:
    """The dot that made a value, if it was added to zeros."""
    dot = made_by(value, "dot")
    return dot if dot is not None and number(dot.acc) == 0 else None
