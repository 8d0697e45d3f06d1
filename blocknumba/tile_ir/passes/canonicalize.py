"""Canonicalisation: folds, simplification of loops, additions fused into dots."""

from __future__ import annotations

from blocknumba.tile_ir.folds.patterns import made_by, number
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.uses import Uses, carried, controls, is_loop, keep
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def canonicalize(fn: Function, _: object = None) -> Function:
    """Fold every op, and simplify loops: at most one iteration, constant loop-carried values."""
    return rebuild(fn, _simplified)


def _simplified(rebuilder: Rebuilder, op: Op) -> Values | None:
    if not is_loop(op):
        return None
    if op.name == "for" and _trip_count(rebuilder, op) == 1:
        return _single_iteration(rebuilder, op)
    if op.name == "for" and _is_remainder(*map(rebuilder.__getitem__, controls(op))):
        return _conditional_iteration(rebuilder, op)
    return _without_constants(rebuilder, op)


def _trip_count(rebuilder: Rebuilder, op: Op) -> int | None:
    """Number of iterations of a `for`, when it is known."""
    bounds = [number(rebuilder[value]) for value in controls(op)]
    return None if None in bounds or bounds[2] == 0 else len(range(*bounds))


def _single_iteration(rebuilder: Rebuilder, op: Op) -> Values:
    """The ops of a loop of exactly one iteration, without the loop."""
    (region,) = op.regions
    for arg, value in zip(region.args, (op.start, *op.initial), strict=True):
        rebuilder[arg] = rebuilder[value]
    rebuilder.ops(region.ops[:-1])
    return tuple(rebuilder.operands(region.terminator))


def _is_remainder(start: Value, stop: Value, step: Value) -> bool:
    """Whether a `for` starts at the last multiple of its step: one iteration or none."""
    size, product = number(step), made_by(start, "mul")
    if size is None or size < 1 or product is None or number(product.y) != size:
        return False
    quotient = product.x.owner
    if quotient is None or quotient.name not in ("shr", "floordiv") or quotient.x is not stop:
        return False
    if quotient.name == "shr":
        return number(quotient.y) == size.bit_length() - 1 and size.bit_count() == 1
    return number(quotient.y) == size


def _conditional_iteration(rebuilder: Rebuilder, op: Op) -> Values:
    """A loop of one iteration or none, as a branch."""
    builder, emit = rebuilder.builder, rebuilder.builder.emit
    initial = tuple(rebuilder[value] for value in op.initial)
    runs = emit(OPS["lt"], rebuilder[op.start], rebuilder[op.stop])
    with builder.region() as (once, _):
        emit(OPS["yield"], *_single_iteration(rebuilder, op))
    with builder.region() as (never, _):
        emit(OPS["yield"], *initial)
    types = tuple(value.type for value in initial)
    made = emit(OPS["if"], runs, regions=(once, never), result_types=types)
    return made if isinstance(made, tuple) else (made,)


def _without_constants(rebuilder: Rebuilder, op: Op) -> Values | None:
    """A loop without the loop-carried values that stay what they were at first."""
    values = carried(op)
    triples = list(zip(values.initial, values.args, values.following, strict=True))
    varies = [value is not arg and value is not first for first, arg, value in triples]
    if all(varies):
        return None
    for first, arg, _ in triples:
        rebuilder[arg] = rebuilder[first]
    kept = iter(keep(rebuilder, op, varies))
    return tuple(next(kept) if vary else rebuilder[first]
                 for vary, first in zip(varies, values.initial, strict=True))


@declared(reads=("ops",), writes=("ops",))
def accumulate_dots(fn: Function, _: object = None) -> Function:
    """Turn a @ b + c into one dot with accumulator c, where nothing else uses a @ b.

    Both are in one region: a dot before a loop stays there.
    The error bound of `dot` holds for the sum too.
    """
    if not any(op.name == "dot" for op in walk(fn.body)):
        return fn
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
