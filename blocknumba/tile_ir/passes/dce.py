"""Dead code elimination."""

from __future__ import annotations

from itertools import compress

from blocknumba.tile_ir.analysis.liveness import Liveness, liveness, must_run
from blocknumba.tile_ir.carried import carried, is_loop, keep
from blocknumba.tile_ir.ir import Function, Op, Region, Value
from blocknumba.tile_ir.opdef import TERMINATOR
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.rebuild import Rebuilder, Values


@declared(reads=("ops",), writes=("ops",))
def dce(fn: Function, _: object = None) -> Function:
    """Remove ops, carried values, results of branches and parameters that nothing needs."""
    live = liveness(fn)
    rebuilder = Rebuilder(lambda rebuilder, op: _needed(rebuilder, op, live), folding=False)
    kept = [arg in live.values for arg in fn.body.args]
    args = tuple(compress(fn.body.args, kept))
    with rebuilder.builder.region(*(a.type for a in args), hints=[a.hint for a in args]) as (
            body, new_args):
        for old, new in zip(args, new_args, strict=True):
            rebuilder[old] = new
        rebuilder.ops(fn.body.ops)
    return Function(fn.name, tuple(compress(fn.parameters, kept)), body, fn.loc)


def _needed(rebuilder: Rebuilder, op: Op, live: Liveness) -> Values | None:
    """Nothing of a dead op; of a live one with regions, the results that are live."""
    if op.opdef.has(TERMINATOR):
        return None
    if not op.regions:
        used = must_run(op) or not live.values.isdisjoint(op.results)
        return None if used else op.results
    if op not in live.ops:
        return op.results
    if is_loop(op):
        values = zip(op.results, carried(op).args, strict=True)
        kept = [result in live.values or arg in live.values for result, arg in values]
        return _spread(op, kept, keep(rebuilder, op, kept))
    if op.name != "if":
        return None
    kept = [result in live.values for result in op.results]
    return _spread(op, kept, _choice(rebuilder, op, kept))


def _spread(op: Op, kept: list[bool], results: Values) -> Values:
    """Results for all of an op's; those that are dead stand for themselves."""
    live = iter(results)
    return tuple(next(live) if keep_ else old
                 for keep_, old in zip(kept, op.results, strict=True))


def _choice(rebuilder: Rebuilder, op: Op, kept: list[bool]) -> Values:
    """An `if` with some of its results."""
    regions = [_yielding(rebuilder, region, kept) for region in op.regions]
    types = tuple(value.type for value in compress(op.results, kept))
    rebuilder.builder.loc = op.loc
    made = rebuilder.builder.emit(op.opdef, *rebuilder.operands(op), regions=regions, types=types,
                                  **{**op.attrs, "result_types": types})
    return made if isinstance(made, tuple) else (made,)


def _yielding(rebuilder: Rebuilder, region: Region, kept: list[bool]) -> Region:
    """A region of an `if` that yields some of its values."""
    with rebuilder.builder.region() as (copy, _):
        rebuilder.ops(region.ops[:-1])
        values: tuple[Value, ...] = tuple(compress(region.terminator.operands, kept))
        rebuilder.builder.emit(region.terminator.opdef, *(rebuilder[value] for value in values))
    return copy
