"""Folds of changes of dtype."""

from __future__ import annotations

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import filled, made_by
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops import cast as family
from blocknumba.tile_ir.ops import elementwise
from blocknumba.tile_ir.types import (
    BOOL,
    DType,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
)

# Bits of the significand, the hidden one included.  Source: IEEE 754, OCP FP8.
_SIGNIFICAND = {float64: 53, float32: 24, float16: 11, bfloat16: 8, float8_e4m3fn: 4,
                float8_e5m2: 3}
_WIDER = {float8_e4m3fn: {float16, bfloat16, float32, float64},
          float8_e5m2: {float16, bfloat16, float32, float64},
          float16: {float32, float64}, bfloat16: {float32, float64}, float32: {float64}}


def is_exact(source: DType, target: DType) -> bool:
    """Whether a cast keeps every value, so that it can be undone or skipped over."""
    if source == target or source.kind == BOOL:
        return True
    if source.is_float:
        return target in _WIDER.get(source, ())
    magnitude = source.bits - source.is_signed
    if target.is_float:
        return target in _SIGNIFICAND and magnitude <= _SIGNIFICAND[target]
    if target.kind == BOOL or source.is_signed > target.is_signed:
        return False
    return magnitude <= target.bits - target.is_signed


@family.cast.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A cast to the same dtype; a cast of a cast that lost nothing, or less than this one does."""
    (x,) = op.operands
    target = op.result.type.dtype
    if x.type.dtype == target:
        return x
    inner = made_by(x, "cast")
    if inner is None or attribute(op, "rounding") != "nearest":
        return None
    source, middle = inner.operands[0], x.type.dtype
    integers = (source.type.dtype.is_integer and middle.is_integer and target.is_integer)
    truncated = integers and target.bits <= middle.bits
    kept = is_exact(source.type.dtype, middle) and (
        not source.type.dtype.is_integer or not middle.is_float or target.is_float
        or target == source.type.dtype)
    if not truncated and not kept:
        return None
    return builder.emit(op.opdef, source, dtype=target.name)


@family.cast.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A number taken as a bool is whether it is not 0."""
    (x,) = op.operands
    if op.result.type.dtype.kind != BOOL or not x.type.dtype.is_integer:
        return None
    return builder.emit(elementwise.ne, x, filled(builder, x.type, 0))


@family.bitcast.fold
def _(builder: Builder, op: Op) -> Value | None:
    """The bits of the bits of x are the bits of x."""
    (x,) = op.operands
    if x.type.dtype == op.result.type.dtype:
        return x
    inner = made_by(x, "bitcast")
    return inner and builder.emit(op.opdef, inner.operands[0], dtype=op.result.type.dtype.name)
