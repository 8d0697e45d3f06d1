"""Arithmetic in float64 and quotients in int64 are done in less, where every bit stays.

    cast(cast(i, float64) * cast(x, float64), float16)   ->   cast(i, float16) * x,   0 <= i < 16

NumPy's promotion asks for such float64 when integers of 32 bits meet small floats.  Both operands
are numbers of the narrow dtype, of p bits, and float64 has 2 p + 2 bits and more: then rounding to
float64 first changes no sum, difference, product or quotient.
Source: Figueroa, When is double rounding innocuous?, ACM SIGNUM Newsletter 30, 1995.

    truncmod(cast(program, int64), cast(n, int64))   ->   cast(truncmod(program, n), int64)

A quotient or a remainder in int64 of numbers that fit into int32 is one of int32, but for the least
one by -1. In 64 bits it takes a hundred instructions. So is one of elements that matter only where
a mask says that they fit: of the other elements it may be anything.

    load (x + at // n), at < size      at: int64, size: int32
"""

from __future__ import annotations

from blocknumba.tile_ir.analysis.ranges import Range, Ranges
from blocknumba.tile_ir.folds.arithmetic import is_exact
from blocknumba.tile_ir.folds.patterns import conjuncts, filled, number
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, REARRANGES, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.types import DType, bfloat16, float16, float32, float64, int32, int64
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.memory import load, store
from blocknumba.tile_ir.passes.contract import declared

_ROUNDED_ONCE = ("add", "sub", "mul", "div")
_QUOTIENTS = ("floordiv", "mod", "truncdiv", "truncmod")
_NARROW = (float32, float16, bfloat16)  # 2 p + 2 bits of each are at most the 53 of float64


@declared(reads=("ops",), writes=("ops",))
def narrow_arithmetic(fn: Function, _: object = None) -> Function:
    """Do in the dtype of a result what float64 was taken for, and in int32 what int64 was."""
    if not any(_is_rounded(op) or _is_wide_quotient(op) for op in walk(fn.body)):
        return fn
    return rebuild(fn, _Narrowing(fn))


class _Narrowing:
    """The rewrite; knows the ranges of the old values."""

    def __init__(self, fn: Function):
        self._ranges, self._uses = Ranges(fn), Uses(fn)

    def __call__(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        if _is_wide_quotient(op):
            return self._quotient(rebuilder, op)
        if not _is_rounded(op):
            return None
        wide, dtype = op.x.owner, op.result.type.dtype
        if not all(self._is_of(value, dtype) for value in wide.operands):
            return None
        operands = (_narrowed(rebuilder, value, dtype) for value in wide.operands)
        return (rebuilder.builder.emit(wide.opdef, *operands),)

    def _quotient(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        """In int32, if both operands fit and no quotient is that of the least number by -1."""
        least, greatest = int32.minimum, int32.maximum
        ranges = [self._ranges[value] for value in op.operands]
        if ranges[0].high > greatest and self._matters_below(op, greatest):
            ranges[0] = Range(ranges[0].low, greatest)
        if not all(least <= range_.low and range_.high <= greatest for range_ in ranges):
            return None
        if ranges[0].low == least and ranges[1].low <= -1 <= ranges[1].high:
            return None
        builder = rebuilder.builder
        operands = (builder.emit(cast, rebuilder[value], dtype="int32") for value in op.operands)
        return (builder.emit(cast, builder.emit(op.opdef, *operands, **op.attrs), dtype="int64"),)

    def _matters_below(self, op: Op, greatest: int) -> bool:
        """Whether the elements of a quotient matter only where its dividend is no greater."""
        tests = {test.result for test in self._uses.users(op.x)
                 if test.name in ("lt", "le") and test.x is op.x
                 and self._ranges[test.y].high <= greatest}
        seen, waiting = set(), [op.result] if tests else []
        while waiting:
            for user in self._uses.users(waiting.pop()):
                if user in seen:
                    continue
                seen.add(user)
                if user.opdef.has(ELEMENTWISE):
                    waiting += user.results
                elif user.opdef not in (load, store) or user.mask is None or (
                        tests.isdisjoint(conjuncts(user.mask))):
                    return False
        return bool(seen)

    def _is_of(self, value: Value, dtype: DType) -> bool:
        """Whether every element of a float64 value is a number of a narrow dtype."""
        known, op = number(value), value.owner
        if known is not None:
            return float(dtype.numpy.type(known)) == known
        if op is None:
            return False
        if op.opdef.has(REARRANGES):
            return self._is_of(op.x, dtype)
        if op.name != "cast":
            return False
        source = op.x.type.dtype
        if is_exact(source, dtype):
            return True
        if not source.is_integer:
            return False
        range_, greatest = self._ranges[op.x], 1 << dtype.fp_mantissa_width + 1
        return -greatest <= range_.low and range_.high <= greatest


def _is_wide_quotient(op: Op) -> bool:
    return op.name in _QUOTIENTS and op.result.type.dtype == int64


def _is_rounded(op: Op) -> bool:
    """Whether it rounds plain arithmetic in float64, to nearest, to a narrow dtype."""
    if op.name != "cast" or op.result.type.dtype not in _NARROW or op.x.type.dtype != float64:
        return False
    wide = op.x.owner
    return (attribute(op, "rounding") == "nearest" and wide is not None
            and wide.name in _ROUNDED_ONCE and not any(wide.attrs.values()))


def _narrowed(rebuilder: Rebuilder, value: Value, dtype: DType) -> Value:
    """The same elements in a narrow dtype, made of what the float64 ones were made of."""
    builder, known, op = rebuilder.builder, number(value), value.owner
    if known is not None:
        return filled(builder, value.type.of(dtype), known)
    if op.name == "cast":
        return builder.emit(op.opdef, rebuilder[op.x], dtype=dtype.name)
    return builder.emit(op.opdef, _narrowed(rebuilder, op.x, dtype), **op.attrs)
