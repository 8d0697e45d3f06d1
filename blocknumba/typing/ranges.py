"""Int values that cannot be negative, so that no check of a lower bound is needed."""

from __future__ import annotations

from collections.abc import Set

from blocknumba.tile_ir.ir.function import Value

_ALL = frozenset(("add", "mul", "floordiv", "truncdiv", "minimum", "splat", "broadcast", "reshape",
                  "transpose", "hint", "shr"))
_ANY = frozenset(("maximum", "and"))
_PROGRAM = frozenset(("program_id", "num_programs"))
_MAX_DEPTH = 24


def is_nonnegative(value: Value, known: Set[Value], depth: int = 0) -> bool:
    """Whether an int scalar or tile is at least 0, as far as its ops show.

    known: region arguments and parameters that are.  Positions are taken not to overflow: their
    dtype is chosen so.
    """
    if value in known or value.type.dtype.kind == "uint":
        return True
    op = value.owner
    if op is None or depth > _MAX_DEPTH:
        return False
    if op.name == "constant":
        return op.attrs["value"] >= 0
    if op.name in _PROGRAM:
        return True
    if op.name == "arange":
        return op.attrs["start"] >= 0
    if op.name == "cast":
        source, target = op.x.type.dtype, value.type.dtype
        if source.is_float or source.bits > target.bits - (source.is_signed < target.is_signed):
            return False
        return source.kind == "bool" or is_nonnegative(op.x, known, depth + 1)
    if op.name == "mod":
        return is_nonnegative(op.y, known, depth + 1)
    if op.name == "truncmod":
        return is_nonnegative(op.x, known, depth + 1)
    if op.name == "select":
        return all(is_nonnegative(v, known, depth + 1) for v in (op.x, op.y))
    if op.name == "reduce" and op.attrs["kind"] in ("sum", "max", "min", "prod"):
        return is_nonnegative(op.x, known, depth + 1)
    if op.name in _ALL:
        return all(is_nonnegative(v, known, depth + 1) for v in op.operands)
    return op.name in _ANY and any(is_nonnegative(v, known, depth + 1) for v in op.operands)
