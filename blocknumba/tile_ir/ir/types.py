"""Types of tile IR values, and info on a kernel's arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from blocknumba.errors import BlockTypeError
from blocknumba.wording import did_you_mean, shown

MAX_RANK = 16  # of tiles and of arrays
BOOL, INT, UINT, FLOAT = "bool", "int", "uint", "float"


@dataclass(frozen=True, slots=True)
class DType:
    """The type of one element.

    name: NumPy's (or ml_dtypes') name, the one in IR text and in messages.
    kind: "bool", "int", "uint" or "float".
    bits: size in memory; a bool occupies 8.
    """

    name: str
    kind: str
    bits: int

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype of the same elements."""
        return _NUMPY[self.name]

    @property
    def bytes(self) -> int:
        """Size of one element in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == FLOAT

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; a bool is not an integer."""
        return self.kind in (INT, UINT)

    @property
    def is_signed(self) -> bool:
        return self.kind in (INT, FLOAT)

    @property
    def minimum(self) -> int:
        """The lowest value of an integer dtype (of a bool: 0)."""
        return -(1 << self.bits - 1) if self.kind == INT else 0

    @property
    def maximum(self) -> int:
        """The greatest value of an integer dtype (of a bool: 1)."""
        if self.kind == BOOL:
            return 1
        return (1 << self.bits - (self.kind == INT)) - 1

    @property
    def scalar(self) -> DType:
        """The dtype itself: of Triton's types, the one without a shape."""
        return self

    element_ty = scalar  # of Triton's pointers; under bn.jit the dtype of an array is its elements'

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of an element; 1 of a bool, though it takes a byte of memory."""
        return 1 if self.kind == BOOL else self.bits

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer, as primitive_bitwidth."""
        return self.primitive_bitwidth

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return self.bytes

    @property
    def fp_mantissa_width(self) -> int:
        """Bits of a float's fraction that memory holds."""
        return int(ml_dtypes.finfo(self.numpy).nmant)

    @property
    def exponent_bias(self) -> int:
        """The exponent that memory holds for 1.0."""
        return (1 << self.bits - 2 - self.fp_mantissa_width) - 1

    def is_floating(self) -> bool:
        return self.is_float

    def is_standard_floating(self) -> bool:
        return self.is_float and self.bits >= 16

    def is_fp8(self) -> bool:
        return self.is_float and self.bits == 8

    def is_int(self) -> bool:
        """Whether it is an integer or, as for Triton, a bool."""
        return not self.is_float

    def is_int_signed(self) -> bool:
        return self.kind == INT

    def is_int_unsigned(self) -> bool:
        return self.kind in (UINT, BOOL)

    def is_bool(self) -> bool:
        return self.kind == BOOL

    def is_ptr(self) -> bool:
        return False

    def is_block(self) -> bool:
        return False

    def is_void(self) -> bool:
        return False


bool_ = DType("bool", BOOL, 8)
int8, int16, int32, int64 = (DType(f"int{n}", INT, n) for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}", UINT, n) for n in (8, 16, 32, 64))
float16, float32, float64 = (DType(f"float{n}", FLOAT, n) for n in (16, 32, 64))
bfloat16 = DType("bfloat16", FLOAT, 16)
float8_e4m3fn = DType("float8_e4m3fn", FLOAT, 8)
float8_e5m2 = DType("float8_e5m2", FLOAT, 8)

DTYPES: dict[str, DType] = {d.name: d for d in (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2)}
SIGNED = frozenset((int8, int16, int32, int64))
UNSIGNED = frozenset((uint8, uint16, uint32, uint64))
INTEGERS = SIGNED | UNSIGNED
FLOATS = frozenset((float16, bfloat16, float32, float64))
NUMBERS = INTEGERS | FLOATS
ANY = NUMBERS | {bool_, float8_e4m3fn, float8_e5m2}

_NUMPY = {name: np.dtype(getattr(ml_dtypes, name, None) or name) for name in DTYPES}
_FROM_NUMPY = {dtype: DTYPES[name] for name, dtype in _NUMPY.items()}
# Triton's names of 8-bit floats
_ALIASES = {"fp8e4nv": float8_e4m3fn, "float8e4nv": float8_e4m3fn, "fp8e5": float8_e5m2,
            "float8e5": float8_e5m2}


def _declare_questions() -> None:
    """Define Triton's methods that ask for one dtype: is_fp16, is_int64 ..."""
    names = {"fp16": float16, "bf16": bfloat16, "fp32": float32, "fp64": float64,
             "fp8e4nv": float8_e4m3fn, "fp8e5": float8_e5m2, "int1": bool_,
             **{dtype.name: dtype for dtype in INTEGERS}}
    for name, wanted in names.items():
        def asks(self: DType, wanted: DType = wanted) -> bool:
            return self == wanted
        asks.__name__, asks.__doc__ = f"is_{name}", f"Whether it is {wanted}."
        setattr(DType, asks.__name__, asks)
    for name in questions():
        getattr(DType, name).__compile_time__ = True
    answer_no(PointerType)


def questions() -> list[str]:
    """The names of the methods that ask a type what it is."""
    return [name for name, method in vars(DType).items()
            if name.startswith("is_") and callable(method)]


def answer_no(kind: type) -> None:
    """Let a kind of types answer all questions: no, where it has no answer of its own."""
    for name in questions():
        answer = vars(kind).get(name) or _no(name)
        answer.__compile_time__ = True
        setattr(kind, name, answer)


def _no(name: str) -> Callable[[object], bool]:
    def asks(self: object) -> bool:
        return False

    asks.__name__, asks.__doc__ = name, "False: it is no dtype."
    return asks


def dtype_of(spelling: object) -> DType:
    """The dtype that a NumPy dtype, NumPy scalar type, ml_dtypes type or name spells.

    Names are NumPy's, or of 8-bit floats Triton's.

    Errors: BlockTypeError for anything that is not one of DTYPES.
    """
    if isinstance(spelling, DType):
        return spelling
    if isinstance(spelling, str) and spelling in _ALIASES:
        return _ALIASES[spelling]
    try:
        found = _FROM_NUMPY.get(np.dtype(spelling))
    except Exception:  # NumPy asks the object for its dtype, and that may raise anything
        found = None
    if not found or spelling is None:  # NumPy takes None for float64
        hint = did_you_mean(spelling, [*DTYPES, *_ALIASES]) if isinstance(spelling, str) else ""
        raise BlockTypeError(f"dtype: given {shown(spelling)}, accepted {', '.join(DTYPES)}",
                             hint=hint)
    return found


@dataclass(frozen=True, slots=True)
class PointerType:
    """A pointer to elements in global memory."""

    pointee: DType

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>"

    @property
    def element_ty(self) -> DType:
        """The dtype of the elements: Triton's name of it."""
        return self.pointee

    @property
    def scalar(self) -> PointerType:
        """The type itself: of Triton's types, the one without a shape."""
        return self

    def is_ptr(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ViewType:
    """A view: an array of some axes in global memory (see ops/views.py).  Only scalars have it.

    kind, is_integer, is_float: as of a DType, so that a view is no number to who asks.
    """

    element: DType
    rank: int

    kind = "view"
    is_integer = is_float = False

    def __str__(self) -> str:
        return f"view<{self.rank}x{self.element}>"


@dataclass(frozen=True, slots=True)
class TileType:
    """Type of a tile of elements; shape () is a scalar, equal in all threads of a program.

    dtype: of the elements; a PointerType makes a tile of pointers, a ViewType a view.
    shape: one power of two per axis.
    layout: which thread holds which element; None until gpu_layout assigns one.
    """

    dtype: DType | PointerType | ViewType
    shape: tuple[int, ...] = ()
    layout: object | None = None

    def __str__(self) -> str:
        if not self.shape:
            return str(self.dtype)
        layout = "" if self.layout is None else f", {self.layout}"
        return f"tile<{'x'.join(map(str, self.shape))}x{self.dtype}{layout}>"

    @property
    def spelling(self) -> str:
        """Extents and dtype, for messages: 128x64xfloat16."""
        return "x".join(map(str, (*self.shape, self.dtype)))

    @property
    def is_scalar(self) -> bool:
        return not self.shape

    @property
    def is_pointer(self) -> bool:
        return isinstance(self.dtype, PointerType)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def of(self, dtype: DType | PointerType) -> TileType:
        """The same tile with elements of another dtype."""
        return TileType(dtype, self.shape, self.layout)

    def shaped(self, shape: tuple[int, ...]) -> TileType:
        """The same elements' dtype in another shape; the layout is forgotten."""
        return TileType(self.dtype, tuple(shape))


@dataclass(frozen=True, slots=True)
class Box:
    """The boxes that a kernel reads and writes of an array that is given as a descriptor.

    shape: of each.  padding: "zero" or "nan", outside of the array.
    """

    shape: tuple[int, ...]
    padding: str = "zero"


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array of any rank from 0 to MAX_RANK in global memory.

    strides: per axis, in elements, when it is a compile-time constant (0 or 1), else None.
    extents: per axis, when it is a compile-time constant, else None.
    alignment: the address of the first element is a multiple of this many bytes.
    stride_divisibility, extent_divisibility: per axis, the value is a multiple of this.
    wide: element offsets may not fit in 32 bits.
    mappable: it has several axes, and a tensor map can describe it, whatever the box.
    box: the kernel is given a descriptor of the array.
    """

    dtype: DType
    strides: tuple[int | None, ...]
    extents: tuple[int | None, ...]
    alignment: int = 1
    stride_divisibility: tuple[int, ...] = ()
    extent_divisibility: tuple[int, ...] = ()
    wide: bool = False
    mappable: bool = False
    box: Box | None = None

    @property
    def rank(self) -> int:
        return len(self.strides)

    def __str__(self) -> str:
        """Its class, as code is made for it: float32[:*16, ::1]:16 of a matrix of aligned rows."""
        axes = [f"::{stride}" if stride is not None else f":*{divisor}"
                for stride, divisor in zip(self.strides, self.stride_divisibility)]
        wide = ", wide" * self.wide
        return f"{self.dtype}[{', '.join(axes)}]:{self.alignment}{wide}"


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number given at launch.

    value: when it is a compile-time constant of that dtype (an int equal to 1), else None.
    divisibility: the value is a multiple of this.
    minimum: the value is at least this; None when nothing is known.
    weak: it is a Python number, which takes the dtype of what it meets: an int of 32 or 64 bits,
        or a float64.
    """

    dtype: DType
    value: int | None = None
    divisibility: int = 1
    minimum: int | None = None
    weak: bool = False

    def __str__(self) -> str:
        """Its dtype; "float (float64)", "int (int32)" and the like where that is weak."""
        python = "float" if self.dtype.is_float else "int"
        return f"{python} ({self.dtype})" if self.weak else str(self.dtype)


Argument = ArrayArgument | ScalarArgument


_declare_questions()
