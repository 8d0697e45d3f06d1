"""Classes of triton.language: what annotations name, and what isinstance asks in a kernel."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, PointerType, dtype_of
from blocknumba.typing.function import MustUse
from blocknumba.typing.triton.functions import ALL_NAN, NO_NAN
from blocknumba.typing.values import Array, BlockType, Descriptor

_SHORT = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
          "int1": "bool", "i1": "bool", "u1": "bool",
          **{f"{short}{bits}": f"{long}{bits}" for short, long in (("i", "int"), ("u", "uint"))
             for bits in (8, 16, 32, 64)}}


class tensor:  # noqa: N801 - Triton's name
    """A tile or a scalar of a kernel: `isinstance(x, tl.tensor)` tells it from a constexpr."""

    stands_for = (Value, Array)


class tensor_descriptor:  # noqa: N801 - Triton's name
    """A tensor descriptor of a kernel, for `isinstance(x, tl.tensor_descriptor)`."""

    stands_for = Descriptor




class _DTypes(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (DType, PointerType, BlockType))

    def __call__(cls, name: str) -> DType:
        return dtype_of(_SHORT.get(name, name))


class dtype(metaclass=_DTypes):  # noqa: N801 - Triton's name
    """A dtype: `tl.dtype("fp16")` is tl.float16; all dtypes are its instances."""

    SINT_TYPES = ["int8", "int16", "int32", "int64"]
    UINT_TYPES = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES = ["fp8e4nv", "fp8e5", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]


class _Pointers(_DTypes):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, PointerType)

    def __call__(cls, element_ty: DType, address_space: int = 1, const: bool = False):
        return PointerType(dtype_of(element_ty))


class pointer_type(metaclass=_Pointers):  # noqa: N801 - Triton's name
    """A pointer to elements: `tl.pointer_type(tl.float16)`.   const: accepted."""


class _Blocks(_DTypes):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, BlockType)

    def __call__(cls, element_ty: DType, shape: tuple[int, ...]) -> BlockType:
        return BlockType(element_ty, tuple(shape))


class block_type(metaclass=_Blocks):  # noqa: N801 - Triton's name
    """A type of tiles: `tl.block_type(tl.float16, (16, 16))`."""


def str_to_ty(name: str, c: object = None) -> DType | PointerType:
    """The type of an argument by its name in signatures: "i32", "*fp16"."""
    return PointerType(dtype(name[1:])) if name.startswith("*") else dtype(name)


@dataclass(frozen=True)
class ForeignDType:
    """A dtype of other hardware: a name that code may list, and that no tile can have."""

    name: str
    primitive_bitwidth = 8

    def __repr__(self) -> str:
        return self.name


float8e4b15, float8e4b8, float8e5b16 = map(ForeignDType, (
    "float8e4b15", "float8e4b8", "float8e5b16"))


class PropagateNan:
    """Whether maximum and minimum are NaN where one operand is."""

    NONE, ALL = NO_NAN, ALL_NAN


class const:  # noqa: N801 - Triton's name
    """An annotation of pointers that are only read."""


class void:  # noqa: N801 - Triton's name
    """The type of no value."""


def constexpr_function(function):
    """Make a function that kernels call with constexprs and that Python runs, at compile time.

    Example:
    >>> @triton.constexpr_function
    ... def half(n):
    ...     return n // 2
    >>> @triton.jit
    ... def fill(x, SIZE: tl.constexpr):
    ...     tl.store(x + tl.arange(0, half(SIZE)), 7)
    >>> x = np.zeros(4, np.int32)
    >>> _ = fill[(1,)](x, 4)
    >>> x
    array([7, 7, 0, 0], dtype=int32)
    """
    if not callable(function):
        raise BlockTypeError(f"constexpr_function: given {function!r}, accepted a function")
    function.__compile_time__ = True
    return function


def must_use_result(function: object, hint: str = "") -> object:
    """Mark a function whose result a kernel must use, as `@must_use_result` or with a hint.

    Example:
    >>> @triton.must_use_result
    ... def square(x):
    ...     return x * x
    >>> square(3)
    9
    """
    if not callable(function):
        return lambda marked: must_use_result(marked, function if isinstance(function, str) else "")
    with suppress(AttributeError):  # functions of the language take no mark
        function.__must_use__ = MustUse(hint)
    return function


pi32_t = PointerType(dtype_of("int32"))

for _marker in (dtype, pointer_type, block_type, str_to_ty):
    _marker.__compile_time__ = True
