"""Values that a variable of a kernel can hold while the kernel is translated.

A tile or a scalar that exists at run time is a tile IR Value.  A value known at compile time is
itself: an int, a dtype, a function.  Anything made of parts (a tuple, a slice, an array, a span)
is a Structure or one of Python's own, whose parts are values again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import CellType, FunctionType

from blocknumba.errors import UnsupportedError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, PointerType, answer_no


class Structure:
    """A value made of other values.

    static: what of it is the same on all paths; parts: the values that it is made of.
    noun: what it is called in messages, with its article.
    """

    __slots__ = ()
    noun = "a structure"

    @property
    def static(self) -> tuple:
        raise NotImplementedError

    @property
    def parts(self) -> tuple:
        raise NotImplementedError

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Structure:
        """The structure with this static and these parts."""
        raise NotImplementedError

    @classmethod
    def joined_static(cls, a: tuple, b: tuple) -> tuple | None:
        """The static of a variable that has a or b; None if there is none."""
        return a if a == b else None


@dataclass(eq=False, frozen=True, slots=True)
class Number(Structure):
    """A Python int or float that is known at run time: an argument, a loop variable, an extent.

    Its dtype is weak, as that of a literal is.
    value: a scalar: int32, int64 or uint64 of an int, float64 of a float.
    """

    noun = "a number of run time"
    value: Value

    @property
    def dtype(self) -> DType:
        """The dtype in which it is kept."""
        return self.value.type.dtype

    @property
    def static(self) -> tuple:
        return ()

    @property
    def parts(self) -> tuple:
        return (self.value,)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Number:
        return cls(*parts)


@dataclass(eq=False, frozen=True, slots=True)
class Span(Structure):
    """size elements of one axis, from start on.

    start: int scalar; size: a power of two.
    """

    noun = "a span"
    start: Value
    size: int

    @property
    def static(self) -> tuple:
        return (self.size,)

    @property
    def parts(self) -> tuple:
        return (self.start,)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Span:
        return cls(parts[0], static[0])


class SlicedSpan(Span):
    """start : start + size, written as a slice: of an array a span, or a part of a view.

    start: an int, known or not; size: any.
    """

    noun = "a slice"
    __slots__ = ()


@dataclass(eq=False, frozen=True, slots=True)
class Array(Structure):
    """An array argument, or a view of one.

    name: of the argument; dtype: of the elements.
    wide: element offsets may not fit in 32 bits.
    pointer: to the first element.
    extents, strides: per axis, in elements; ints where they are known.
    view: the view of the tile IR that it is; None where none is made of the above yet.  It is no
        part: control flow carries what it is made of.
    """

    noun = "an array"
    name: str
    dtype: DType
    wide: bool
    pointer: Value
    extents: tuple[Value | int, ...]
    strides: tuple[Value | int, ...]
    view: Value | None = None

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.extents)

    @classmethod
    def joined_static(cls, a: tuple, b: tuple) -> tuple | None:
        if a[1] != b[1]:
            return None
        names = {*a[0].split(" or "), *b[0].split(" or ")}
        return (" or ".join(sorted(names)), a[1], a[2] or b[2])

    @property
    def static(self) -> tuple:
        return (self.name, self.dtype, self.wide)

    @property
    def parts(self) -> tuple:
        return (self.pointer, *self.extents, *self.strides)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Array:
        rank = len(parts) // 2
        return cls(*static, parts[0], parts[1:rank + 1], parts[rank + 1:])


@dataclass(eq=False, frozen=True, slots=True)
class Elements(Structure):
    """`array.at`: what is indexed to get a Reference."""

    noun = "array.at"
    array: Array

    @property
    def static(self) -> tuple:
        return ()

    @property
    def parts(self) -> tuple:
        return (self.array,)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Elements:
        return cls(*parts)


@dataclass(eq=False, frozen=True, slots=True)
class Reference(Structure):
    """Elements of an array that can be loaded or stored.

    index: one int, int tile or Span per axis.
    """

    noun = "a reference to elements of an array"
    array: Array
    index: tuple

    @property
    def static(self) -> tuple:
        return ()

    @property
    def parts(self) -> tuple:
        return (self.array, *self.index)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Reference:
        return cls(parts[0], parts[1:])


@dataclass(eq=False, frozen=True, slots=True)
class BlockPointer(Structure):
    """A box of an array, which can be moved.

    block_shape: extents of the box.   offsets: index of its first element, int scalars.
    """

    noun = "a block pointer"
    array: Array
    block_shape: tuple[int, ...]
    offsets: tuple[Value, ...]

    @property
    def reference(self) -> Reference:
        """The elements of the box."""
        return Reference(self.array, tuple(map(Span, self.offsets, self.block_shape)))

    @property
    def static(self) -> tuple:
        return (self.block_shape,)

    @property
    def parts(self) -> tuple:
        return (self.array, *self.offsets)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> BlockPointer:
        return cls(parts[0], static[0], parts[1:])


@dataclass(eq=False, frozen=True, slots=True)
class Descriptor(Structure):
    """A tensor descriptor: an array, and the shape of its boxes.

    padding: "zero" or "nan", for elements of a box outside of the array.
    """

    noun = "a tensor descriptor"
    array: Array
    block_shape: tuple[int, ...]
    padding: str

    @property
    def static(self) -> tuple:
        return (self.block_shape, self.padding)

    @property
    def parts(self) -> tuple:
        return (self.array,)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Descriptor:
        return cls(*parts, *static)


@dataclass(frozen=True, slots=True)
class LoopHints:
    """Hints of the user about a loop: attributes of the op `for`, or None."""

    num_stages: int | None = None
    unroll: int | None = None
    warp_specialize: bool | None = None

    @property
    def given(self) -> dict[str, int | bool]:
        """Those that are not None, by name."""
        named = {"num_stages": self.num_stages, "unroll": self.unroll,
                 "warp_specialize": self.warp_specialize}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(eq=False, frozen=True, slots=True)
class Iteration(Structure):
    """Items of a run-time loop: item(i) for i in range(start, stop, step).

    item: (context, iteration, i) -> the loop variable; extra: what it needs to make it.
    start, stop, step: int scalars of one dtype.
    """

    noun = "a range"
    item: Callable
    static_extra: tuple
    hints: LoopHints
    start: Value
    stop: Value
    step: Value
    extra: tuple = ()

    @property
    def static(self) -> tuple:
        return (self.item, self.static_extra, self.hints)

    @property
    def parts(self) -> tuple:
        return (self.start, self.stop, self.step, *self.extra)

    @classmethod
    def joined_static(cls, a: tuple, b: tuple) -> tuple | None:
        return (*a[:2], a[2] if a[2] == b[2] else LoopHints()) if a[:2] == b[:2] else None

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Iteration:
        return cls(*static, *parts[:3], parts[3:])


@dataclass(eq=False, frozen=True, slots=True)
class BoundMethod(Structure):
    """A function whose first argument is given."""

    noun = "a method"
    function: object
    receiver: object

    @property
    def static(self) -> tuple:
        return (self.function,)

    @property
    def parts(self) -> tuple:
        return (self.receiver,)

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> BoundMethod:
        return cls(*static, *parts)


@dataclass(eq=False, frozen=True, slots=True)
class Function(Structure):
    """A function that is defined in a kernel.

    nested: the function as it is written (typing/numba_ir/nested.py).
    kept: the values that it keeps.
    """

    noun = "a function that is chosen at run time"

    nested: object
    kept: tuple

    @property
    def static(self) -> tuple:
        return (self.nested,)

    @property
    def parts(self) -> tuple:
        return self.kept

    @classmethod
    def of(cls, static: tuple, parts: tuple) -> Function:
        return cls(*static, parts)

    def settled(self) -> FunctionType:
        """A function of its own, which can be called outside of the kernel.

        Errors: UnsupportedError where it reads values of run time, or variables that change.
        """
        nested, code = self.nested, self.nested.code
        if nested.cells or not all(map(is_constant, self.kept)):
            raise UnsupportedError(
                f"{code.co_name}: given a function that reads run-time values of the kernel around "
                "it, accepted one of its arguments and of constants",
                hint="pass what it needs as one more tile: bn.full_like(x, value)")
        kept = iter(self.kept)
        defaults = tuple(islice(kept, nested.defaults))
        keywords = dict(zip(nested.keywords, kept))
        values = dict(zip(nested.values, kept))
        cells = tuple(CellType(values[name]) for name in code.co_freevars)
        function = FunctionType(code, nested.globals, code.co_name, defaults, cells)
        function.__kwdefaults__ = keywords
        return function


@dataclass(frozen=True, slots=True)
class BlockType:
    """`tile.type` in a kernel, as Triton has it.   scalar: the type of an element."""

    scalar: DType | PointerType
    shape: tuple[int, ...]

    @property
    def element_ty(self) -> DType | PointerType:
        """The type of an element."""
        return self.scalar

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape


answer_no(BlockType)
BlockType.get_block_shapes.__compile_time__ = True


def number(scalar: Value | int) -> Number | int:
    """An int scalar as the Python int that it is to whoever writes a kernel; an int as it is."""
    return Number(scalar) if isinstance(scalar, Value) else scalar


def unwrapped(value: object) -> object:
    """The scalar that a number of run time is kept in; anything else as it is."""
    return value.value if isinstance(value, Number) else value


def is_structure(value: object) -> bool:
    """Whether a value is made of parts."""
    return isinstance(value, (Structure, tuple, slice))


def parts_of(value: object) -> tuple:
    """The parts of a structure, a tuple or a slice."""
    if isinstance(value, tuple):
        return tuple(value)
    if isinstance(value, slice):
        return (value.start, value.stop, value.step)
    return value.parts


def static_of(value: object) -> tuple:
    """The attributes of a structure that are not among its parts; none of tuples and slices."""
    return value.static if isinstance(value, Structure) else ()


def rebuild(kind: type, static: tuple, parts: tuple) -> object:
    """The structure, tuple or slice of these parts."""
    if kind is slice:
        return slice(*parts)
    if issubclass(kind, tuple):
        return kind(*parts) if hasattr(kind, "_fields") else tuple(parts)
    return kind.of(static, parts)


def is_constant(value: object) -> bool:
    """Whether a value is known at compile time, parts and all."""
    if isinstance(value, (Value, Structure)):
        return False
    return all(map(is_constant, parts_of(value))) if is_structure(value) else True


def leaves(value: object) -> Iterator[Value]:
    """The run-time values in a value, in order."""
    if isinstance(value, Value):
        yield value
    elif is_structure(value):
        for part in parts_of(value):
            yield from leaves(part)
