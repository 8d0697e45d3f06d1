"""Block pointers and tensor descriptors: Triton's boxes of an array that need not be an argument.

Both are an array, made of a pointer, a shape and strides, and the shape of a box in it.  A box is
read and written as `array.at[spans]` is: within the bounds of the array on every axis.
"""

from __future__ import annotations

import math

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    bfloat16, float16, float32, int32, int64, uint32, uint64,
)
from blocknumba.typing.arrays import position_dtype
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.function import BlockFunction, function
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.functions.memory import ATOMICS, as_pointer, load, padding_of, store
from blocknumba.typing.functions.spans import position
from blocknumba.typing.static_values import static_shape
from blocknumba.typing.values import (
    Array, BlockPointer, Descriptor, Reference, Span, is_constant, unwrapped,
)


@function
def make_block_ptr(context, base, shape, strides, offsets, block_shape, order=()):
    """A box of an array: bn.load and bn.store take it, bn.advance moves it.

    base: an array or a pointer, to the first element.  shape, strides, offsets: tuples of ints, in
    elements, at run time; block_shape: powers of two.  order: accepted for Triton's kernels.
    What of the box lies outside of the shape reads as 0 and is not written, with and without
    boundary_check.

    Example:
    >>> @bn.jit
    ... def corner(x, out, rows, columns):
    ...     box = bn.make_block_ptr(x, (rows, columns), (columns, 1), (1, 1), (2, 2))
    ...     out[bn.span(0, 2), bn.span(0, 2)] = bn.load(box)
    >>> out = np.zeros((2, 2), int)
    >>> _ = corner[1](np.arange(9).reshape(3, 3), out, 3, 3)
    >>> out
    array([[4, 5],
           [7, 8]])
    """
    name = "make_block_ptr"
    array = _array(context, name, base, shape, strides)
    sizes = _sizes(name, array, block_shape)
    return BlockPointer(array, sizes, _starts(context, name, array, offsets))


@function
def advance(context, base, offsets):
    """A block pointer moved by a tuple of ints, in elements.

    Example:
    >>> @bn.jit
    ... def pairs(x, out, n):
    ...     box = bn.make_block_ptr(x, (n,), (1,), (0,), (2,))
    ...     for i in range(0, n, 2):
    ...         out[i // 2] = bn.sum(bn.load(box))
    ...         box = bn.advance(box, (2,))
    >>> out = np.zeros(3, int)
    >>> _ = pairs[1](np.arange(6), out, 6)
    >>> out
    array([1, 5, 9])
    """
    require(isinstance(base, BlockPointer), "advance: given {}, accepted a block pointer",
            describe(base))
    moves = _starts(context, "advance", base.array, offsets)
    moved = tuple(binary(context, "add", *pair) for pair in zip(base.offsets, moves))
    return BlockPointer(base.array, base.block_shape, moved)


@function
def make_tensor_descriptor(context, base, shape, strides, block_shape, padding_option="zero"):
    """An array whose boxes of one shape are loaded and stored: d.load(offsets), d.store(...).

    base: an array or a pointer, to the first element.  shape, strides: tuples of ints, in
    elements, at run time; block_shape: powers of two.
    padding_option: "zero", or "nan", for the elements of a box that lie outside of the shape.

    Example:
    >>> @bn.jit
    ... def corner(x, out, rows, columns):
    ...     box = bn.make_tensor_descriptor(x, (rows, columns), (columns, 1), (2, 2))
    ...     out[bn.span(0, 2), bn.span(0, 2)] = box.load((1, 1))
    >>> out = np.zeros((2, 2), int)
    >>> _ = corner[1](np.arange(9).reshape(3, 3), out, 3, 3)
    >>> out
    array([[4, 5],
           [7, 8]])
    """
    name = "make_tensor_descriptor"
    array = _array(context, name, base, shape, strides)
    return Descriptor(array, _sizes(name, array, block_shape), padding_of(name, padding_option))


@function
def load_tensor_descriptor(context, desc, offsets):
    """The box of a tensor descriptor at a tuple of offsets, in elements: desc.load(offsets).

    Example:
    >>> @bn.jit
    ... def last(x, out, n):
    ...     box = bn.make_tensor_descriptor(x, (n,), (1,), (4,))
    ...     out[bn.span(0, 4)] = bn.load_tensor_descriptor(box, (n - 2,))
    >>> out = np.ones(4, int)
    >>> _ = last[1](np.arange(6), out, 6)
    >>> out
    array([4, 5, 0, 0])
    """
    box = _box(context, "load_tensor_descriptor", desc, offsets)
    return load.rule(context, box, padding_option=desc.padding)


@function
def store_tensor_descriptor(context, desc, offsets, value):
    """Write value to the box of a tensor descriptor at offsets: desc.store(offsets, value).

    Example:
    >>> @bn.jit
    ... def last(x, n):
    ...     box = bn.make_tensor_descriptor(x, (n,), (1,), (4,))
    ...     bn.store_tensor_descriptor(box, (n - 2,), bn.ones((4,)))
    >>> x = np.zeros(6, np.float32)
    >>> _ = last[1](x, 6)
    >>> x
    array([0., 0., 0., 0., 1., 1.], dtype=float32)
    """
    store.rule(context, _box(context, "store_tensor_descriptor", desc, offsets), value)


@function
def gather_tensor_descriptor(context, desc, x_offsets, y_offset):
    """Rows of an array of two axes, (N, columns of the box): desc.gather(x_offsets, y_offset).

    x_offsets: a tile of N ints, the rows.   y_offset: an int, the first column.
    Elements outside of the array are those of the descriptor's padding.
    """
    rows, inside = _rows(context, "gather_tensor_descriptor", desc, x_offsets, y_offset)
    other = math.nan if desc.padding == "nan" else None
    return load.rule(context, rows, mask=inside, other=other)


@function
def scatter_tensor_descriptor(context, desc, value, x_offsets, y_offset):
    """Write the rows of value: desc.scatter(value, x_offsets, y_offset).

    value: (N, columns of the box); of rows that are written twice one stays.
    x_offsets, y_offset: as for gather; elements outside of the array are not written.
    """
    rows, inside = _rows(context, "scatter_tensor_descriptor", desc, x_offsets, y_offset)
    store.rule(context, rows, value, mask=inside)


def _rows(context: Context, name: str, desc: object, x_offsets: object,
          y_offset: object) -> tuple[Reference, Value]:
    """Rows of a descriptor's array, and which of them are in it, (N, 1)."""
    require(isinstance(desc, Descriptor), "{}: given {}, accepted a tensor descriptor", name,
            describe(desc))
    require(desc.array.rank == 2, "{}: given a descriptor of {} axes, accepted one of 2", name,
            desc.array.rank)
    rows = x_offsets
    require(isinstance(rows, Value) and len(rows.type.shape) == 1 and rows.type.dtype.is_integer,
            "{}: x_offsets: given {}, accepted a tile of ints with one axis", name, describe(rows),
            hint=loading_hint(rows))
    rows = context.cast(rows, position_dtype(context, rows.type.dtype))
    last = context.value(desc.array.extents[0], rows.type.dtype)
    inside = context.emit("and", binary(context, "ge", rows, 0), binary(context, "lt", rows, last))
    columns = Span(position(context, unwrapped(y_offset)), desc.block_shape[1])
    return (Reference(desc.array, (rows, columns)),
            context.emit("reshape", inside, shape=(rows.type.size, 1)))


_WORDS = (int32, uint32, int64, uint64)
# dtypes of atomics on boxes.  Source: PTX ISA, cp.reduce.async.bulk.tensor
_ATOMIC_DTYPES = {"atomic_add": (int32, uint32, uint64, float16, bfloat16, float32),
                  **{f"atomic_{name}": _WORDS for name in ("max", "min", "and", "or", "xor")}}


def _atomic(name: str, atomic: BlockFunction) -> BlockFunction:
    accepted = _ATOMIC_DTYPES[name]

    def rule(context, desc, offsets, value):
        box = _box(context, f"descriptor.{name}", desc, offsets)
        require(box.array.dtype in accepted, "descriptor.{}: given an array of {}, accepted {}",
                name, box.array.dtype, ", ".join(map(str, accepted)))
        atomic.rule(context, box, value)

    rule.__doc__ = (f"{name} of each element of a box at offsets: desc.{name}(offsets, value).\n\n"
                    "Elements outside of the array are left as they are.")
    return BlockFunction(rule, f"descriptor.{name}")


METHODS = {"load": load_tensor_descriptor, "store": store_tensor_descriptor,
           "gather": gather_tensor_descriptor, "scatter": scatter_tensor_descriptor,
           **{name: _atomic(name, ATOMICS[name]) for name in _ATOMIC_DTYPES}}


def _box(context: Context, name: str, desc: object, offsets: object) -> BlockPointer:
    require(isinstance(desc, Descriptor), "{}: given {}, accepted a tensor descriptor", name,
            describe(desc))
    return BlockPointer(desc.array, desc.block_shape, _starts(context, name, desc.array, offsets))


def _array(context: Context, name: str, base: object, shape: object, strides: object) -> Array:
    """The array that a pointer, a shape and strides make."""
    pointer = as_pointer(context, base)
    require(pointer is not None and pointer.type.is_scalar, "{}: given {} as base, accepted an "
            "array or a pointer", name, describe(base))
    extents, steps = (_ints(context, f"{name}: {what}", given)
                      for what, given in (("shape", shape), ("strides", strides)))
    require(len(extents) == len(steps), "{}: given {} extents and {} strides", name, len(extents),
            len(steps))
    wide = any(isinstance(n, Value) and n.type.dtype == int64 for n in (*extents, *steps))
    name_of_array = base.name if isinstance(base, Array) else "the array"
    return Array(name_of_array, pointer.type.dtype.pointee,
                 wide or isinstance(base, Array) and base.wide, pointer, extents, steps)


def _ints(context: Context, what: str, given: object) -> tuple[Value | int, ...]:
    """Ints of an array's size: those of compile time as they are."""
    require(isinstance(given, tuple), "{}: given {}, accepted a tuple of ints", what,
            describe(given))
    return tuple(n if is_constant(n) and isinstance(n, int)
                 else position(context, n) for n in map(unwrapped, given))


def _sizes(name: str, array: Array, block_shape: object) -> tuple[int, ...]:
    sizes = static_shape(f"{name}: block_shape", block_shape)
    require(len(sizes) == array.rank, "{}: given a block_shape of {} axes for an array of {}", name,
            len(sizes), array.rank)
    return sizes


def _starts(context: Context, name: str, array: Array, offsets: object) -> tuple[Value, ...]:
    """Offsets as positions, one for each axis."""
    require(isinstance(offsets, tuple) and len(offsets) == array.rank,
            "{}: given {} as offsets, accepted {} ints", name, describe(offsets), array.rank)
    return tuple(position(context, unwrapped(offset)) for offset in offsets)
