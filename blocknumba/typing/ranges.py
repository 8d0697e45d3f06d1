"""Int values that cannot be negative, so that no check of a lower bound is needed."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial

from blocknumba.tile_ir.folds.patterns import Answers
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.opdef import REARRANGES

_ALL = frozenset(("add", "mul", "floordiv", "truncdiv", "minimum", "hint", "shr"))
_ANY = frozenset(("maximum", "and"))
_PROGRAM = frozenset(("program_id", "num_programs"))
MAX_FACTOR = 1 << 13  # rows of a tile times the tiles of a group; hashes multiply by more
# whose result is at most x
_LESSENING = frozenset(("floordiv", "truncdiv", "mod", "truncmod", "shr", "cast", "hint"))
_OF_POSITIONS = frozenset(("add", "mul", "minimum", "maximum"))


def is_nonnegative(value: Value, known: Set[Value]) -> bool:
    """Whether an int scalar or tile is at least 0, as far as its ops show.

    known: region arguments and parameters that are.  Positions are taken not to overflow: their
    dtype is chosen so.
    """
    return Answers(partial(_is_nonnegative, known), False)(value)


def _is_nonnegative(known: Set[Value], value: Value, ask: Callable[[Value], bool]) -> bool:
    if value in known or value.type.dtype.kind == "uint":
        return True
    op = value.owner
    if op is None:
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
        return source.kind == "bool" or ask(op.x)
    if op.name == "mod":
        return ask(op.y)
    if op.name == "truncmod":
        return ask(op.x)
    if op.name == "select":
        return ask(op.x) and ask(op.y)
    if op.name == "reduce" and op.attrs["kind"] in ("sum", "max", "min", "prod"):
        return ask(op.x)
    if op.name in _ALL or op.opdef.has(REARRANGES):
        return all(map(ask, op.operands))
    return op.name in _ANY and any(map(ask, op.operands))


def is_position(value: Value, known: Set[Value]) -> bool:
    """Whether an int is a position, and no product of other numbers, which may wrap around.

    Positions are sums of programs, elements of arange and numbers that are known not to be
    negative, multiplied by extents of tiles: it takes 2**31 / MAX_FACTOR programs to wrap one.
    """
    return Answers(partial(_factor, known), None)(value) is not None


def _factor(known: Set[Value], value: Value,
            ask: Callable[[Value], int | None]) -> int | None:
    """Product of all that programs and elements are multiplied by in a value; None of others.

    MAX_FACTOR of a number that may be large: a small one may be added to it.
    """
    if value in known:
        return MAX_FACTOR
    op = value.owner
    if op is None:
        return None
    if op.name == "constant":
        return 1 if abs(op.attrs["value"]) <= MAX_FACTOR else MAX_FACTOR
    if op.name in _PROGRAM or op.name == "arange":
        return 1
    if op.name in _LESSENING or op.opdef.has(REARRANGES):
        return ask(op.x)
    if op.name not in _OF_POSITIONS:
        return None
    if op.name == "mul":
        x, y = op.x, op.y
        number, other = (constant_of(y), x) if constant_of(x) is None else (constant_of(x), y)
        factor = None if number is None else ask(other)
        product = None if factor is None else int(number) * factor
        return product if product is not None and 0 <= product <= MAX_FACTOR else None
    factors = [*map(ask, op.operands)]
    if op.name == "minimum":
        return min((f for f in factors if f is not None), default=None)
    if op.name == "add" and factors == [MAX_FACTOR, MAX_FACTOR]:
        return None
    return None if None in factors else max(factors)
