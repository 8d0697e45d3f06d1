"""Folds of ops that rearrange, repeat or reduce elements."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.tile_ir.folds.patterns import filled, is_counted, made_by, number, splatted, wrapped
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OPS, attribute
from blocknumba.tile_ir.ops import create, reduce, shape

Values = Value | tuple[Value, ...]

# their attributes are per axis of the operand's shape
_OF_ONE_SHAPE = ("hint",)


def _each(made: Values, function: Callable[[Value], Value]) -> Values:
    """function of the result, or of each result, of an op."""
    return tuple(map(function, made)) if isinstance(made, tuple) else function(made)


def before_splat(builder: Builder, op: Op) -> Values | None:
    """f(splat(x), splat(y)) is splat(f(x, y))."""
    splats = [made_by(value, "splat") for value in op.operands]
    if not splats or not all(splats):
        return None
    scalar = builder.emit(op.opdef, *(splat.x for splat in splats), **op.attrs)
    shape = op.results[0].type.shape
    return _each(scalar, lambda value: splatted(builder, value, shape))


def before_repeat(builder: Builder, op: Op) -> Values | None:
    """f(broadcast(x), broadcast(y), splat(z)) is broadcast(f(x, y, splat(z))); so for reshape.

    All x have one shape, and a reshape only adds axes of extent 1: it costs nothing, and rows
    become tiles as late as possible.
    """
    name, shape, whole = "", (), op.results[0].type.shape
    for value in op.operands:
        inner = value.owner
        if inner is None or inner.opdef.name not in ("broadcast", "reshape", "splat"):
            return None
        if inner.opdef.name != "splat":
            name, shape = inner.opdef.name, inner.x.type.shape
    if not shape or (name == "reshape" and not _adds_axes(shape, whole)):
        return None
    operands = []
    for value in op.operands:
        inner = value.owner
        source = inner.x
        if inner.opdef.name == "splat":
            operands.append(splatted(builder, source, shape))
        elif inner.opdef.name == name and source.type.shape == shape:
            operands.append(source)
        else:
            return None
    small = builder.emit(op.opdef, *operands, **op.attrs)
    return _each(small, lambda value: builder.emit(OPS[name], value, shape=whole))


def _adds_axes(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether two shapes are the same but for axes of extent 1, of which after has more."""
    kept = [extent for extent in after if extent > 1]
    return len(after) > len(before) and kept == [extent for extent in before if extent > 1]


for _opdef in list(OPS.values()):
    if _opdef.has(ELEMENTWISE) and _opdef.name not in _OF_ONE_SHAPE:
        _opdef.fold(before_splat)
        _opdef.fold(before_repeat)


# reductions of equal elements that return that element; a sum of floats is rounded on the way
_IDEMPOTENT = ("max", "min", "fmax", "fmin", "and", "or")


def of_same_shape(_: Builder, op: Op) -> Value | None:
    """A rearrangement to the shape that x has."""
    x = op.x
    return x if x.type.shape == op.result.type.shape else None


def of_splat(builder: Builder, op: Op) -> Value | None:
    """Equal elements rearranged are equal elements."""
    inner = made_by(op.x, "splat")
    return inner and splatted(builder, inner.x, op.result.type.shape)


def of_itself(builder: Builder, op: Op) -> Value | None:
    """A reshape of a reshape, or a broadcast of a broadcast, is one."""
    inner = made_by(op.x, op.name)
    return inner and builder.emit(op.opdef, inner.x, shape=op.result.type.shape)


for _opdef in (shape.splat, shape.broadcast, shape.reshape, shape.extract):
    _opdef.fold(of_same_shape)
for _opdef in (shape.broadcast, shape.reshape, shape.transpose, shape.flip, shape.extract):
    _opdef.fold(of_splat)
for _opdef in (shape.broadcast, shape.reshape):
    _opdef.fold(of_itself)


@create.arange.fold
def _(builder: Builder, op: Op) -> Value | None:
    """One element is a constant."""
    if attribute(op, "size") != 1:
        return None
    return filled(builder, op.result.type, attribute(op, "start"))


@shape.reshape.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A scalar with axes is a splat."""
    x = op.x
    return splatted(builder, x, op.result.type.shape) if x.type.is_scalar else None


@shape.transpose.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A transpose of a transpose is one; one that moves only axes of extent 1 is a reshape."""
    x, axes = op.x, attribute(op, "axes")
    if inner := made_by(x, "transpose"):
        before = attribute(inner, "axes")
        return builder.emit(op.opdef, inner.x, axes=tuple(before[axis] for axis in axes))
    moved = [axis for axis in axes if x.type.shape[axis] > 1]
    if moved != sorted(moved):
        return None
    return builder.emit(shape.reshape, x, shape=op.result.type.shape)


@shape.transpose.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A broadcast is transposed before it is repeated."""
    inner, axes = made_by(op.x, "broadcast"), attribute(op, "axes")
    if inner is None:
        return None
    small = builder.emit(op.opdef, inner.x, axes=axes)
    return builder.emit(shape.broadcast, small, shape=op.result.type.shape)


@shape.flip.fold
def _(_: Builder, op: Op) -> Value | None:
    """A flip of one element, or of a flip."""
    x, axis = op.x, attribute(op, "axis")
    inner = made_by(x, "flip")
    if inner and attribute(inner, "axis") == axis:
        return inner.x
    return x if x.type.shape[axis] == 1 else None


@shape.extract.fold
def _(builder: Builder, op: Op) -> Value | None:
    """An extract of an extract is one extract."""
    inner = made_by(op.x, "extract")
    if inner is None:
        return None
    starts = zip(attribute(inner, "starts"), attribute(op, "starts"), strict=True)
    return builder.emit(op.opdef, inner.x, starts=tuple(a + b for a, b in starts),
                        shape=op.result.type.shape)


@shape.split.fold
def _(builder: Builder, op: Op) -> tuple[Value, Value] | None:
    """The halves of what was joined; the halves of equal elements."""
    x = op.x
    if joined := made_by(x, "join"):
        return joined.operands
    if splat := made_by(x, "splat"):
        half = splatted(builder, splat.x, x.type.shape[:-1])
        return half, half
    return None


@shape.join.fold
def _(_: Builder, op: Op) -> Value | None:
    """The two halves of x, joined, are x."""
    x, y = op.x.owner, op.y.owner
    if x is None or x is not y or x.name != "split" or x.results != op.operands:
        return None
    return x.x


@reduce.reduce.fold
def _(builder: Builder, op: Op) -> Value | None:
    """Along an axis of extent 1 nothing is combined."""
    x, axis = op.x, attribute(op, "axis")
    if x.type.shape[axis] != 1:
        return None
    return builder.emit(shape.reshape, x, shape=op.result.type.shape)


@reduce.reduce.fold
def _(builder: Builder, op: Op) -> Value | None:
    """Of equal elements: the element, or, of integers, the element times how many there are."""
    x, kind = op.x, attribute(op, "kind")
    splat = made_by(x, "splat")
    if splat is None:
        return None
    if kind in _IDEMPOTENT:
        return splatted(builder, splat.x, op.result.type.shape)
    scalar = splat.x
    if kind != "sum" or not is_counted(x.type):
        return None
    count = wrapped(scalar.type.dtype, x.type.shape[attribute(op, "axis")])
    total = builder.emit(OPS["mul"], scalar, builder.constant(count, scalar.type.dtype))
    return splatted(builder, total, op.result.type.shape)


@reduce.arg_reduce.fold
def _(builder: Builder, op: Op) -> Value | None:
    """Of equal elements the first is chosen."""
    x = op.x
    same = x.type.shape[attribute(op, "axis")] == 1 or made_by(x, "splat") or number(x) is not None
    return filled(builder, op.result.type, 0) if same else None
