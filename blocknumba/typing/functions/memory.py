"""Loads, stores and atomics through pointers and references."""

from __future__ import annotations

import math
from collections.abc import Iterator

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, bool_, int32, int64, uint32
from blocknumba.typing import promotion
from blocknumba.typing.addressing import address, check_positions
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.function import BlockFunction, function
from blocknumba.typing.static_values import static, static_axes, static_choice
from blocknumba.typing.values import Array, BlockPointer, Reference, Span


@function
def load(context, pointer, mask=None, other=None, boundary_check=(), padding_option="",
         cache_modifier="", eviction_policy="", volatile=False):
    """The elements at pointer; where mask is false, other (0 when not given), unread.

    pointer: a pointer, a tile of pointers, `array.at[...]` or a block pointer; the latter two have
    bounds of their own, on every axis.
    mask: bool; other: converted to the elements' dtype; both are broadcast to the pointer.
    Without a mask all elements are read, and other is not used.
    padding_option: "zero" or "nan", instead of other.  boundary_check: accepted for Triton's
    kernels: block pointers are checked on all axes.

    Example:
    >>> @bn.jit
    ... def padded(x, out):
    ...     r = bn.span(0, 8)
    ...     out[r] = bn.load(x.at[r], other=-1)
    >>> out = np.zeros(8)
    >>> _ = padded[1](np.arange(5.0), out)
    >>> out
    array([ 0.,  1.,  2.,  3.,  4., -1., -1., -1.])
    """
    require_axes(context, "load", pointer, boundary_check)
    if padding_of("load", padding_option) == "nan":
        require(other is None, "load: given other and padding_option, accepted one of them")
        other = math.nan
    target, allowed = access(context, "load", pointer, mask)
    fallback = None
    if allowed is not None and other is not None:
        fallback = _element(context, "load: other", other, target)
    hints = _hints("load", cache=cache_modifier, eviction=eviction_policy, volatile=volatile)
    operands = [v for v in (target, allowed, fallback) if v is not None]
    if context.options.debug and fallback is not None:
        # a load without `other` is what debug looks for, and folds leave out one that is 0
        return context.emit("select", allowed, context.emit("load", *operands[:2], **hints),
                            fallback)
    return context.emit("load", *operands, **hints)


@function
def store(context, pointer, value, mask=None, boundary_check=(), cache_modifier="",
          eviction_policy=""):
    """Write value to pointer where mask is true.

    pointer, mask, boundary_check: as for load.  value: converted to the elements' dtype and
    broadcast.
    Errors: a value whose shape does not broadcast to the pointer's.

    Example:
    >>> @bn.jit
    ... def fill(out, n):
    ...     i = bn.arange(8)
    ...     bn.store(out + i, i * i, mask=i < n)
    >>> out = np.zeros(8, np.int32)
    >>> _ = fill[1](out, 5)
    >>> out
    array([ 0,  1,  4,  9, 16,  0,  0,  0], dtype=int32)
    """
    require_axes(context, "store", pointer, boundary_check)
    target, allowed = access(context, "store", pointer, mask)
    _require_writable(context, "store", target)
    operands = [target, _element(context, "store: value", value, target)]
    if allowed is not None:
        operands.append(allowed)
    context.emit("store", *operands, **_hints("store", cache=cache_modifier,
                                              eviction=eviction_policy))


@function
def atomic_cas(context, pointer, cmp, val, sem="acq_rel", scope="gpu", mask=None):
    """Replace the element at pointer by val if it equals cmp, bit by bit; give the old one.

    pointer, mask: as for load; where mask is false, or the element out of bounds, nothing is
    touched and the result is 0.  cmp, val: converted to the elements' dtype.

    Example:
    >>> @bn.jit
    ... def claim(owner):
    ...     bn.atomic_cas(owner.at[0], -1, bn.program_id(0))
    >>> owner = np.array([-1])
    >>> _ = claim[8](owner)
    >>> 0 <= owner[0] < 8
    np.True_
    """
    target, allowed = access(context, "atomic_cas", pointer, mask)
    _require_writable(context, "atomic_cas", target)
    operands = [target, *(_element(context, f"atomic_cas: {name}", operand, target)
                          for name, operand in (("cmp", cmp), ("val", val)))]
    if allowed is not None:
        operands.append(allowed)
    return context.emit("atomic_cas", *operands,
                        **_ordering(sem, scope))


def _ordering(sem: object, scope: object) -> dict[str, object]:
    """The attributes of an atomic's ordering; None is the default."""
    semantics, within = static("sem", sem), static("scope", scope)
    return {"semantics": "acq_rel" if semantics is None else semantics,
            "scope": "gpu" if within is None else within}


_INDEX_HINT = "an array and its indices are one argument: x.at[i]"


def _reference_hint(pointer: object) -> str:
    """A hint at how the elements of an access are named."""
    if isinstance(pointer, Value):
        return ("x[i] are their values; the elements themselves are x.at[i], or a pointer and "
                "offsets, x + offs")
    return "index the array: x.at[i], or add offsets to it: x + offs"


def access(context: Context, name: str, pointer: object,
           mask: object) -> tuple[Value, Value | None]:
    """The pointers of an access and the mask of those that may be followed, None for all."""
    bounds, positions = None, {}
    if isinstance(pointer, BlockPointer):
        pointer = pointer.reference
    if isinstance(pointer, Reference):
        target, bounds, positions = address(context, pointer)
    else:
        target = as_pointer(context, pointer)
    require(target is not None,
            "{}: given {}, accepted a pointer, a tile of pointers or array.at[...]", name,
            describe(pointer), hint=_reference_hint(pointer))
    if mask is None or mask is True:
        if positions:
            check_positions(context, pointer, positions, None)
        return target, bounds
    if isinstance(mask, Span):
        raise BlockTypeError(f"{name}: mask: given a span, accepted a tile of bools",
                             hint=_INDEX_HINT)
    given = context.value(mask, what=f"{name}: mask")
    require(given.type.dtype == bool_, "{}: mask must be bool, got {}", name, given.type,
            hint=_INDEX_HINT if isinstance(pointer, Array) else "compare: x != 0")
    if not target.type.shape and given.type.shape:
        raise BlockTypeError(f"{name}: mask {given.type} does not broadcast to a scalar pointer")
    allowed = context.broadcast_to(given, target.type.shape, f"{name}: mask")
    if positions:
        check_positions(context, pointer, positions, allowed)
    return target, allowed if bounds is None else context.emit("and", bounds, allowed)


def _require_writable(context: Context, name: str, pointer: Value) -> None:
    """Raise where a pointer may be of a parameter that is only read."""
    if context.read_only and any(root in context.read_only for root in _roots(pointer)):
        raise BlockTypeError(f"{name}: given a pointer of a parameter annotated with const, "
                             "accepted one that may be written through")


def _roots(pointer: Value) -> Iterator[Value]:
    """The pointers that one is made of by offsets and choices."""
    op = pointer.owner
    if op is None:
        yield pointer
    elif op.regions:
        number = op.results.index(pointer)
        for region in op.regions:
            if number < len(region.terminator.operands):
                yield from _roots(region.terminator.operands[number])
    else:
        for operand in op.operands:
            if operand.type.is_pointer:
                yield from _roots(operand)


def padding_of(name: str, option: object) -> str:
    """A padding option, "zero" where none is given.

    Errors: BlockValueError for another one.
    """
    return static_choice(f"{name}: padding_option", option, ("zero", "nan", "", None)) or "zero"


def require_axes(context: Context, name: str, pointer: object, boundary_check: object) -> None:
    """Raise unless boundary_check names axes of a block pointer, or nothing."""
    if boundary_check is None or boundary_check == ():
        return
    require(isinstance(pointer, BlockPointer), "{}: given boundary_check for {}, accepted for a "
            "block pointer", name, describe(pointer), hint="give a mask")
    static_axes(f"{name}: boundary_check", boundary_check, pointer.array.rank)


def as_pointer(context: Context, pointer: object) -> Value | None:
    """A pointer or tile of pointers: an array stands for the pointer to its first element."""
    if isinstance(pointer, Array):
        return pointer.pointer
    return pointer if isinstance(pointer, Value) and pointer.type.is_pointer else None


def move_pointer(context: Context, pointer: object, count: object,
                 backwards: bool = False) -> Value:
    """pointer + count, or pointer - count, in elements.

    Errors: a count that is not an integer.
    """
    base = as_pointer(context, pointer)
    symbol = "-" if backwards else "+"
    require(promotion.is_number(count) and promotion.result_dtype((count,)).is_integer,
            "{}: given {} and {}, accepted tiles and numbers, or a pointer and ints", symbol,
            describe(pointer), describe(count), hint=loading_hint(pointer))
    offset = context.value(count, what=symbol)
    offset = context.cast(offset, _offset_dtype(offset.type.dtype))
    if backwards:
        offset = context.emit("neg", offset)
    return context.emit("offset", *context.broadcast_together([base, offset], "pointer arithmetic"))


def _offset_dtype(dtype: DType) -> DType:
    if dtype.bits == 64 or dtype == uint32:
        return int64
    return int32


def _element(context: Context, what: str, operand: object, target: Value) -> Value:
    """operand as elements of what target points to."""
    dtype = target.type.dtype.pointee
    if not promotion.is_number(operand):
        raise BlockTypeError(f"{what}: given {describe(operand)}, accepted a tile or a number",
                             hint=loading_hint(operand))
    if isinstance(operand, float) and promotion.is_literal(operand):
        value = context.constant(operand, dtype) if dtype.is_float else (
            context.cast(context.constant(operand, promotion.weak_dtype(operand)), dtype))
    elif isinstance(operand, int) and dtype == bool_:
        value = context.constant(bool(operand), bool_)
    else:
        value = context.value(operand, dtype, what)
    if value.type.shape and not target.type.shape:
        raise BlockTypeError(f"{what}: given {describe(operand)}, accepted a scalar",
                             hint="one element is named: index with a span, or add offsets to "
                                  "the pointer")
    return context.broadcast_to(value, target.type.shape, what)


def _hints(name: str, **hints: object) -> dict[str, object]:
    """Compile-time options of an access; those left at their default are not written."""
    chosen = {key: static(f"{name}: {key}", value) for key, value in hints.items()}
    return {key: value for key, value in chosen.items() if value}


def _atomic(name: str, kind: str, doc: str, example: tuple[str, str]) -> BlockFunction:
    """example: the first value of a counter, and what it is in the end."""
    def rule(context, pointer, val, mask=None, sem="acq_rel", scope="gpu"):
        target, allowed = access(context, name, pointer, mask)
        _require_writable(context, name, target)
        operands = [target, _element(context, f"{name}: val", val, target)]
        if allowed is not None:
            operands.append(allowed)
        return context.emit("atomic_rmw", *operands, kind=kind, **_ordering(sem, scope))

    first, last = example
    rule.__doc__ = f"""{doc}; give the old one.

    pointer, mask: as for load; where mask is false, or the element out of bounds, nothing is
    touched and the result is 0.  val: converted to the elements' dtype.

    Example:
    >>> @bn.jit
    ... def count(counter):
    ...     bn.{name}(counter.at[0], 3)
    >>> counter = np.array([{first}])
    >>> _ = count[4](counter)  # four programs
    >>> counter
    array([{last}])"""
    return BlockFunction(rule, name)


ATOMICS = {f"atomic_{name}": _atomic(f"atomic_{name}", kind, doc, example)
           for name, kind, doc, example in (
    ("add", "add", "Add val to the element at pointer", ("0", "12")),
    ("max", "max", "Raise the element at pointer to at least val", ("1", "3")),
    ("min", "min", "Lower the element at pointer to at most val", ("5", "3")),
    ("and", "and", "Clear the bits that are not in val of the element at pointer", ("6", "2")),
    ("or", "or", "Set the bits of val in the element at pointer", ("4", "7")),
    ("xor", "xor", "Flip the bits of val in the element at pointer", ("5", "5")),
    ("xchg", "exchange", "Replace the element at pointer by val", ("5", "3")),
)}
