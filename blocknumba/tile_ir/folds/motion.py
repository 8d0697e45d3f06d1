"""Folds that compute before elements are repeated: scalars once, rows before they are broadcast."""

from __future__ import annotations

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import made_by, splatted
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import ELEMENTWISE, OPS

# what they promise is per axis of the shape that they are given
_OF_ONE_SHAPE = ("hint",)


def before_splat(builder: Builder, op: Op) -> Value | None:
    """f(splat(x), splat(y)) is splat(f(x, y))."""
    splats = [made_by(value, "splat") for value in op.operands]
    if not splats or not all(splats):
        return None
    scalar = builder.emit(op.opdef, *(splat.operands[0] for splat in splats), **op.attrs)
    return splatted(builder, scalar, op.result.type.shape)


def before_repeat(builder: Builder, op: Op) -> Value | None:
    """f(broadcast(x), broadcast(y), splat(z)) is broadcast(f(x, y, splat(z))); so for reshape.

    All x have one shape, and a reshape only adds axes of extent 1 (what it costs is nothing,
    and rows become tiles as late as possible).
    """
    name, shape = "", ()
    for value in op.operands:
        inner = value.owner
        if inner is None or inner.opdef.name not in ("broadcast", "reshape", "splat"):
            return None
        if inner.opdef.name != "splat":
            name, shape = inner.opdef.name, inner.operands[0].type.shape
    if not shape or (name == "reshape" and not _adds_axes(shape, op.result.type.shape)):
        return None
    operands = []
    for value in op.operands:
        inner = value.owner
        source = inner.operands[0]
        if inner.opdef.name == "splat":
            operands.append(splatted(builder, source, shape))
        elif inner.opdef.name == name and source.type.shape == shape:
            operands.append(source)
        else:
            return None
    small = builder.emit(op.opdef, *operands, **op.attrs)
    return builder.emit(OPS[name], small, shape=op.result.type.shape)


def _adds_axes(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether two shapes are the same but for axes of extent 1, of which after has more."""
    kept = [extent for extent in after if extent > 1]
    return len(after) > len(before) and kept == [extent for extent in before if extent > 1]


for _opdef in list(OPS.values()):
    if _opdef.has(ELEMENTWISE) and _opdef.name not in _OF_ONE_SHAPE:
        _opdef.fold(before_splat)
        _opdef.fold(before_repeat)
