"""Specialisations: the properties of a call that compiled code depends on, the code cache's key."""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import (
    BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodDescriptorType, ModuleType,
    WrapperDescriptorType,
)

import numpy as np

from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.signature import ScalarInfo, Signature
from blocknumba.dispatch.tiles.auto import Auto
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS
from blocknumba.tile_ir.ir.tensor_map import MAX_EXTENT, MAX_RANK, STRIDE_LIMIT_BYTES
from blocknumba.tile_ir.ir.types import Argument, ArrayArgument, ScalarArgument, int32
from blocknumba.wording import shown

ALIGNMENT = 16  # bytes: the widest access of one thread that every target has
DIVISIBILITY = 16  # elements: enough for a 16-byte access of any dtype; smaller powers count too
TILE_DIVISIBILITY = 256  # of what remainders are taken by: enough for the extents of most tiles
STRIDES = 0, 1  # that code is made for, on every device
# on the CPU also those of records and of reversed arrays: whole vectors and shuffles
CLOSE_STRIDES = *range(2, 10), 12, 16, -1, -2, -3, -4
# int32 offsets are exact up to 2**31 - 1; a tile may reach past the last element
NARROW_OFFSETS = 2**31 - 2**20
_MADE_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE, which few classes of C have
_OF_C = (MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType)


@dataclass(frozen=True, slots=True)
class Specialization:
    """Everything that one compilation of a kernel depends on; hashable.

    arguments: (name, known attributes) of the arguments that exist at run time.
    constants: (name, frozen value) of the others.
    captured: (path, frozen value) of the globals and closure variables that the code reads.
    options: compile options.
    target: the GPU; None for the CPU.
    processor: the CPU that native code is for; None for a GPU and for the interpreter.
    disjoint: no array that is stored to shares memory with another; checked by the launch.
    numbers_describe: the scalar arguments describe arrays that tensor maps can encode.  The
        launch has checked this for the maps that the code uses.
    """

    arguments: tuple[tuple[str, Argument], ...]
    constants: tuple[tuple[str, Hashable], ...]
    captured: tuple[tuple[str, Hashable], ...]
    options: Options
    target: Target | None
    disjoint: bool = False
    numbers_describe: bool = True
    processor: str | None = None


def processor_of(options: Options) -> str | None:
    """The CPU that a kernel is compiled for; None for the interpreter."""
    if options.interpret or options.debug or SETTINGS.interpret:
        return None
    # here and not above: launches on a GPU need no llvmlite
    from blocknumba.cpu_lower.target import host
    return str(host())


def arguments_of(signature: Signature, infos: Mapping[str, ArrayInfo | ScalarInfo],
                 on_host: bool = False) -> tuple[tuple[str, Argument], ...]:
    """Attributes of the run-time arguments that compiled code may rely on, by name.

    on_host: the code runs on the CPU.
    """
    formals = {formal.name: formal for formal in signature.formals}
    return tuple((name, argument_of(info, formals[name].is_divisor, on_host)
                  if formals[name].is_specialized or isinstance(info, ArrayInfo)
                  else ScalarArgument(info.dtype, weak=info.weak))
                 for name, info in infos.items())


def argument_of(info: ArrayInfo | ScalarInfo, is_divisor: bool = False,
                on_host: bool = False) -> Argument:
    """Attributes of an argument that compiled code may rely on.

    is_divisor: the kernel takes remainders by it, so larger powers of two are worth knowing.
    on_host: the code runs on the CPU.
    """
    if isinstance(info, ArrayInfo):
        return _array_argument(info, STRIDES + CLOSE_STRIDES if on_host else STRIDES)
    if not info.weak or info.dtype.is_float:
        return ScalarArgument(info.dtype, weak=info.weak)
    value = int(info.value)
    if value == 1:
        return ScalarArgument(info.dtype, value=1, weak=True)
    if is_divisor and 0 < value <= int32.maximum:
        return ScalarArgument(info.dtype, None, _divisibility(value, TILE_DIVISIBILITY), 1,
                              weak=True)
    return ScalarArgument(info.dtype, divisibility=_divisibility(value), weak=True)


def are_disjoint(arrays: Iterable[ArrayInfo]) -> bool:
    """Whether no two arrays share memory; strided arrays that interleave count as sharing."""
    ranges = sorted(array.byte_range() for array in arrays if array.size)
    return all(high <= low for (_, high), (low, _) in zip(ranges, ranges[1:]))


def stores_are_apart(arrays: Mapping[str, ArrayInfo], stored: Collection[str]) -> bool:
    """Whether no array that is stored to shares memory with another; others may."""
    ranges = {name: array.byte_range() for name, array in arrays.items() if array.size}
    return all(high <= other_low or other_high <= low
               for (name, (low, high)), (other, (other_low, other_high))
               in itertools.combinations(ranges.items(), 2) if name in stored or other in stored)


class Same:
    """Key of an object by identity."""

    __slots__ = ("_value",)

    def __init__(self, value: object):
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def freeze(value: object, where: str) -> Hashable:
    """A key that is equal for equal constants of equal types, and for those only.

    Unlike ==, it tells 1 from True and 1.0, and 0.0 from -0.0, and NaN is equal to itself.
    where: the kernel and the parameter, for messages.
    Errors: BlockTypeError for a value that cannot be a constant.
    """
    return _frozen(value, where, lambda own: (type(own), own))


def frozen_constants(signature: Signature,
                     constants: Mapping[str, object]) -> tuple[tuple[str, Hashable], ...]:
    """Names and keys of the constants that code is made for.

    Errors: BlockTypeError for a value that cannot be a constant; BlockValueError for bn.auto.
    """
    found = []
    for name, value in constants.items():
        where = f"{signature.kernel}: argument {signature.called(name)}"
        require(type(value) is not Auto, "{}: given bn.auto, which only a launch from Python "
                "replaces", where, error=BlockValueError, hint="pass an int")
        found.append((name, freeze(value, where)))
    return tuple(found)


def identify(value: object, where: str) -> Hashable:
    """A key that is equal for constants of which everything that a kernel may read is equal.

    Unlike freeze, it tells objects of a user's classes apart that are equal, as their attributes
    need not be: by their attributes where objects are compared by what they hold, else by which
    object it is.
    """
    return _frozen(value, where, _of_object)


def is_identified(cls: type) -> bool:
    """Whether identify tells an object of a class apart by which one it is."""
    known = cls.__module__.partition(".")[0] in ("builtins", "blocknumba", "numpy")
    return not (known or issubclass(cls, (tuple, float, enum.Enum)) or _is_compared(cls))


def _of_object(value: object) -> Hashable:
    cls = type(value)
    if is_identified(cls):
        return Same(value)
    if _is_compared(cls):
        attributes = vars(value)
        return cls, *attributes, *map(_attribute, attributes.values())
    return cls, value


def _attribute(value: object) -> Hashable:
    """The key of an attribute; of mutable objects which it is, as they may hold each other."""
    cls = type(value)
    if cls.__hash__ is None or _is_compared(cls) and not _is_frozen(cls):
        return Same(value)
    try:
        return _frozen(value, "", _of_object)
    except BlockTypeError:  # a tuple of what has no hash
        return Same(value)


def _is_frozen(cls: type) -> bool:
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


@functools.cache
def _is_compared(cls: type) -> bool:
    """Whether objects of a class are compared by what they hold, all of which vars() knows."""
    return (cls.__eq__ is not object.__eq__ and cls.__dictoffset__ != 0 and is_transparent(cls)
            and not any(vars(base).get("__slots__") for base in cls.__mro__))


def is_transparent(cls: type) -> bool:
    """Whether all that is in an object of a class are its attributes: no class is written in C."""
    return all(base is object or base.__flags__ & _MADE_BY_PYTHON and not any(
        isinstance(member, _OF_C) for name, member in vars(base).items()
        if name not in ("__dict__", "__weakref__")) for base in cls.__mro__)


def _frozen(value: object, where: str, of_object: Callable[[object], Hashable]) -> Hashable:
    """of_object: the key of a value that is none of NumPy, no tuple and no function."""
    if isinstance(value, float):
        return type(value), float.hex(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return type(value), value.dtype.str, value.dtype.name, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return type(value), tuple(_frozen(item, where, of_object) for item in value)
    if isinstance(value, (type, FunctionType, BuiltinFunctionType, ModuleType)):
        return value
    if isinstance(value, (complex, range, frozenset)):  # 0.0 and True are equal to others in them
        fields = (value if isinstance(value, frozenset) else (value.real, value.imag)
                 if isinstance(value, complex) else (value.start, value.stop, value.step))
        kind = frozenset if isinstance(value, frozenset) else tuple
        return type(value), kind(_frozen(item, where, of_object) for item in fields)
    try:
        hash(value)
    except TypeError:
        raise BlockTypeError(
            f"{where}: given {shown(value)}, accepted hashable constants",
            hint="pass a tuple" if isinstance(value, (list, set)) else
            "pass a named tuple or a frozen dataclass" if isinstance(value, dict) else
            "") from None
    return of_object(value)


def constant_text(key: Hashable) -> str:
    """The constant that has a key of frozen_constants, as text."""
    match key:
        case type() as cls, str(digits) if issubclass(cls, float):
            return repr(float.fromhex(digits))
        case type(), str(dtype), str(), tuple(shape), bytes(data):
            return shown(np.frombuffer(data, dtype).reshape(shape))
        case type(), (tuple() | frozenset()) as items:
            return f"({', '.join(map(constant_text, items))})"
        case type(), value:
            return repr(value)
    return getattr(key, "__qualname__", None) or str(key)


def integer_class(value: int) -> int:
    """A small int, equal for ints with the same specialisation.

    Only for ints beyond 32 bits: the generated launcher handles the others itself.  -1 beyond
    64 bits, which no plan is made for.
    """
    if not -(2**63) <= value < 2**64:
        return -1
    return (DIVISIBILITY if value < 2**63 else 2 * DIVISIBILITY) + _divisibility(value)


def _array_argument(info: ArrayInfo, known_strides: Collection[int]) -> ArrayArgument:
    low, high = info.offsets()
    wide = (low < -NARROW_OFFSETS or high > NARROW_OFFSETS
            or any(extent > NARROW_OFFSETS for extent in info.shape))
    aligned = info.pointer % ALIGNMENT == 0
    return ArrayArgument(
        info.dtype,
        strides=tuple(stride if stride in known_strides else None for stride in info.strides),
        extents=(None,) * len(info.shape),
        alignment=ALIGNMENT if aligned else info.dtype.bytes,
        stride_divisibility=tuple(map(_divisibility, info.strides)),
        # of an axis along which vectors lie, for their masks; what is known besides is of no use
        extent_divisibility=tuple(_divisibility(extent) if stride == 1 else 1
                                  for extent, stride in zip(info.shape, info.strides)),
        wide=wide, mappable=_is_mappable(info), box=info.box)


def _is_mappable(info: ArrayInfo) -> bool:
    """Whether a tensor map can describe an array of several axes to TMA.

    Strides of 0 count as not: the driver's documentation says nothing of them.
    Source: CUDA Driver API, cuTensorMapEncodeTiled.
    """
    strides_bytes = [stride * info.dtype.bytes for stride in info.strides if stride != 1]
    return (2 <= len(info.shape) <= MAX_RANK and 1 in info.strides
            and info.pointer % ALIGNMENT == 0
            and all(1 <= extent <= MAX_EXTENT for extent in info.shape)
            and all(0 < stride < STRIDE_LIMIT_BYTES and stride % ALIGNMENT == 0
                    for stride in strides_bytes))


def _divisibility(value: int, maximum: int = DIVISIBILITY) -> int:
    """The largest power of two that divides value, at most maximum, which is one too."""
    return value & -value & maximum - 1 or maximum
