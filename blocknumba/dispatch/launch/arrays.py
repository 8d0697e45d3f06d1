"""Array arguments of every library, read into one ArrayInfo."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.dispatch.launch.driver import find_driver, host_pointer, require_driver
from blocknumba.errors import (
    BlockError, BlockTypeError, BlockValueError, LaunchError, require,
)
from blocknumba.tile_ir.ir.types import DTYPES, MAX_RANK, Box, DType, dtype_of
from blocknumba.wording import shortened, shown

LEGACY_STREAM = 0
ADDRESSES = 1 << 47  # bytes: what x86 and Arm give a process


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """An array argument of one launch.

    shape, strides: per axis, in elements.  An axis of length 1 has the stride of a contiguous
        array, whatever the library says.
    pointer: address of the first element; may be 0 for an empty array.
    device: ordinal of the GPU that holds the memory; None for host memory.
    readonly: the library forbids stores.
    owner: keeps the memory alive.
    stream: stream of the producer's pending work, if the producer names one; else None.
    box: of a descriptor of the array; else None.
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    device: int | None
    readonly: bool
    owner: object
    stream: int | None = None
    box: Box | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_aligned(self) -> bool:
        """Whether elements are where the processor wants them; others are copied for a launch."""
        return self.pointer % self.dtype.bytes == 0 or not self.size

    def offsets(self) -> tuple[int, int]:
        """Minimum and maximum offset of an element from the first, in elements."""
        reach = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides)]
        return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)

    def byte_range(self) -> tuple[int, int]:
        """The addresses of the first byte and of the byte after the last; equal when empty."""
        if not self.size:
            return self.pointer, self.pointer
        low, high = self.offsets()
        return (self.pointer + low * self.dtype.bytes,
                self.pointer + (high + 1) * self.dtype.bytes)


def array_info(value: object, where: str) -> ArrayInfo | None:
    """Information on an array of any library; None for a value that is not an array.

    where: the kernel and the argument, for messages.
    Errors: BlockTypeError for a dtype, rank or kind of memory that a kernel cannot use;
    BlockValueError for elements on a GPU that are not aligned.
    """
    library = library_of(type(value))
    if library is not None:
        info = library.read(value, where)
    elif (library := _protocol_of(value)) is not None:
        info = _read_by_protocol(library, value, where)
    else:
        return None
    require(len(info.shape) <= MAX_RANK, "{}: given an array of rank {}, accepted 0 to {}", where,
            len(info.shape), MAX_RANK)
    require(info.device is None or info.is_aligned,
            "{}: given {} elements at address {:#x}, accepted addresses that are multiples of {}",
            where, info.dtype, info.pointer, info.dtype.bytes, error=BlockValueError,
            hint="pass a copy")
    strides = _canonical_strides(info.shape, info.strides)
    return info if strides == info.strides else replace(info, strides=strides)


def _read_by_protocol(library: Library, value: object, where: str) -> ArrayInfo:
    """Information on an array of an unknown library, which may break its own protocol."""
    try:
        return library.read(value, where)
    except BlockError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BlockTypeError(f"{where}: given {shown(value)}, whose {library.name} cannot be read: "
                             f"{shortened(reason)}") from error


def host_view(info: ArrayInfo, pointer: int | None = None,
              owner: object | None = None) -> np.ndarray:
    """The NumPy array of the same elements; for host memory, or for a copy at pointer."""
    strides = tuple([stride * info.dtype.bytes for stride in info.strides])
    if pointer is None and type(info.owner) is np.ndarray and info.owner.strides == strides:
        return info.owner
    address = info.pointer if pointer is None else pointer
    low, high = info.offsets() if info.size else (0, -1)
    interface = {"data": (address + low * info.dtype.bytes, info.readonly),
                 "shape": ((high - low + 1) * info.dtype.bytes,), "typestr": "|u1", "version": 3}
    if not info.size:
        return np.empty(info.shape, info.dtype.numpy)
    memory = np.asarray(_Memory(interface, info.owner if owner is None else owner))
    return np.ndarray(info.shape, info.dtype.numpy, memory, -low * info.dtype.bytes, strides)


@dataclass(frozen=True, slots=True)
class _Memory:
    """A range of host bytes that NumPy can look at, kept alive by its owner."""

    __array_interface__: dict
    owner: object


@dataclass(frozen=True, slots=True)
class Library:
    """Access to the arrays of one library.

    read: (value, where) -> ArrayInfo, without the checks that all libraries share.
    pointer, shape, strides, dtype, device: source text for generated functions, with {0} for the
        array.  Strides are in the library's own unit.  All are empty for a library whose arrays
        are always read through `read`.
    key: source text of everything that a launch depends on except the address.
    marks: three values by which an array is recognised cheaply.
    differs: source text of a test whether an array's key may differ from that of an array with
        the marks {1}, {2} and {3}; empty if no test is cheaper than comparing keys.
    """

    name: str
    read: Callable[[object, str], ArrayInfo]
    pointer: str = ""
    shape: str = "{0}.shape"
    strides: str = "{0}.strides"
    dtype: str = "{0}.dtype"
    device: str = ""
    key: str = "{0}.dtype, {0}.shape, {0}.strides"
    differs: str = "{0}.dtype is not {1} or {0}.shape != {2} or {0}.strides != {3}"
    marks: Callable[[object], tuple] = operator.attrgetter("dtype", "shape", "strides")

    @property
    def is_fast(self) -> bool:
        """Whether generated launchers can read its arrays."""
        return bool(self.pointer)


@functools.cache
def library_of(cls: type) -> Library | None:
    """The library whose arrays are of a class; None for arrays of libraries we do not know."""
    for module, name, library in _CLASSES:
        # a user's array exists only if its module was imported: never import it ourselves
        found = getattr(sys.modules.get(module), name, None)
        if found is not None and issubclass(cls, found):
            return library
    return None


def _protocol_of(value: object) -> Library | None:
    """Protocol of an array of an unknown library; None for a value that is not an array."""
    if hasattr(value, "__cuda_array_interface__"):
        return _CUDA_ARRAY_INTERFACE
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _DLPACK
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _ADDRESS
    return None


def _read_numpy(value: np.ndarray, where: str) -> ArrayInfo:
    require(not isinstance(value, np.ma.MaskedArray),
            "{}: given a masked array, accepted a plain one", where, hint="use x.filled(0)")
    dtype = _dtype(value.dtype, where)
    return ArrayInfo(dtype, value.shape, _in_elements(value.shape, value.strides, dtype, where),
                      host_pointer(value), None, not value.flags.writeable, value)


def _read_cupy(value: object, where: str) -> ArrayInfo:
    dtype = _dtype(value.dtype, where)
    return ArrayInfo(dtype, value.shape, _in_elements(value.shape, value.strides, dtype, where),
                      value.data.ptr, value.data.device_id, False, value)


def _marks_of_cupy(value: object) -> tuple:
    """dtype, length and None of a contiguous vector, for CuPy makes its shape anew each time;
    dtype, anything, and shape and strides of other arrays."""
    contiguous = value._c_contiguous
    if contiguous and value.ndim == 1:
        return value.dtype, len(value), None
    return value.dtype, 0, (value.shape, None if contiguous else value.strides)


def _read_numba(value: object, where: str) -> ArrayInfo:
    dtype = _dtype(value.dtype, where)
    pointer = value.device_ctypes_pointer.value or 0
    return ArrayInfo(dtype, value.shape, _in_elements(value.shape, value.strides, dtype, where),
                      pointer, require_driver(where).pointer_device(pointer), False, value)


def _read_torch(value: object, where: str) -> ArrayInfo:
    torch = sys.modules["torch"]
    require(value.layout == torch.strided, "{}: given a tensor of layout {}, accepted strided",
            where, value.layout)
    require(value.device.type in ("cpu", "cuda"),
            "{}: given a tensor on device {}, accepted cpu and cuda", where, value.device)
    require(not value.is_neg(), "{}: given a tensor with the negative bit set", where,
            hint="use x.resolve_neg()")
    name = str(value.dtype).removeprefix("torch.")
    require(name in DTYPES, "{}: given a tensor of {}, accepted {}", where, name,
            ", ".join(DTYPES))
    device = value.device.index if value.device.type == "cuda" else None
    return ArrayInfo(DTYPES[name], tuple(value.shape), tuple(value.stride()),
                     _address(value, where), device, False, value)


def _address(tensor: object, where: str) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError as error:  # of one that stands for others, as under vmap
        reason, *_ = str(error).splitlines()
        raise BlockTypeError(f"{where}: given a tensor without memory of its own: {reason}",
                             hint="launch in a function under @blocknumba.torch.op") from None


def _read_wrapper(value: object, where: str) -> ArrayInfo:
    """A tensor that is read as one of another dtype; flat where an element's size differs."""
    info, dtype = array_info(value.base, where), _dtype_of_any(value.dtype, where)
    if dtype.bytes == info.dtype.bytes:
        return replace(info, dtype=dtype)
    size = info.size * info.dtype.bytes // dtype.bytes
    return replace(info, dtype=dtype, shape=(size,), strides=(1,))


def _read_address(value: object, where: str) -> ArrayInfo:
    """An object that says where its elements are, as libraries' own views of tensors do.

    One without a shape is a pointer: a vector as long as addresses reach.
    """
    dtype, pointer = _dtype_of_any(value.dtype, where), int(value.data_ptr())
    shape = tuple(map(int, getattr(value, "shape", (ADDRESSES // dtype.bytes,))))
    strides = tuple(map(int, value.stride())) if hasattr(value, "stride") else None
    place, driver = getattr(value, "device", None), find_driver()
    device = None
    if driver is not None and getattr(place, "type", place) != "cpu":
        try:
            device = driver.pointer_device(pointer)
        except LaunchError:  # no address that CUDA knows
            require(place is None, "{}: given an address on device {}, which is none of CUDA's",
                    where, place)
    return ArrayInfo(dtype, shape, contiguous_strides(shape) if strides is None else strides,
                     pointer, device, False, value)


def _read_descriptor(value: object, where: str) -> ArrayInfo:
    """An array given as a descriptor, whose shape and strides are its own."""
    return replace(array_info(value.base, where), shape=tuple(map(int, value.shape)),
                   strides=tuple(map(int, value.strides)),
                   box=Box(tuple(map(int, value.block_shape)), value.padding))


def _read_mock(value: object, where: str) -> ArrayInfo:
    shape = tuple(value.shape)
    return ArrayInfo(_dtype_of_any(value.dtype, where), shape, contiguous_strides(shape), 0, None,
                     False, value)


def _dtype_of_any(dtype: object, where: str) -> DType:
    """The dtype that one of any library is, or of the language."""
    if isinstance(dtype, DType):
        return dtype
    name = str(dtype).removeprefix("torch.")
    return DTYPES[name] if name in DTYPES else _dtype(np.dtype(dtype), where)


def _read_cuda_array_interface(value: object, where: str) -> ArrayInfo:
    """Source: Numba, 'CUDA Array Interface (Version 3)'."""
    interface = value.__cuda_array_interface__
    require(interface.get("mask") is None, "{}: given a masked array, accepted a plain one", where)
    typestr = interface["typestr"]
    hint = "pass it through DLPack" if typestr[1:2] == "V" else ""
    dtype = _dtype(np.dtype(typestr), where, hint)
    shape = tuple(interface["shape"])
    pointer, readonly = interface["data"]
    strides = interface.get("strides")
    strides = (contiguous_strides(shape) if strides is None
               else _in_elements(shape, strides, dtype, where))
    return ArrayInfo(dtype, shape, strides, pointer or 0,
                      require_driver(where).pointer_device(pointer or 0), bool(readonly), value,
                      interface.get("stream"))


def _read_dlpack(value: object, where: str) -> ArrayInfo:
    found = read_dlpack(value, where)
    stream = None if found.device is None else LEGACY_STREAM
    return ArrayInfo(found.dtype, found.shape, found.strides, found.pointer, found.device,
                      found.readonly, (value, found.capsule), stream)


# what to pass instead of arrays of other kinds of dtypes
_INSTEAD = {"c": "pass its parts, x.real and x.imag", "O": "use x.astype of a dtype of numbers",
            "M": "use x.view(np.int64)", "m": "use x.view(np.int64)",
            **dict.fromkeys("US", "pass numbers: np.unique(x, return_inverse=True) makes them"),
            "f": "use x.astype(np.float64)"}


def _dtype(dtype: np.dtype, where: str, hint: str = "") -> DType:
    try:
        return dtype_of(dtype)
    except BlockTypeError:
        if not dtype.isnative:
            hint = f"use x.astype({dtype.newbyteorder('=').name!r})"
        elif dtype.names:
            hint = f"pass a field of it, x[{dtype.names[0]!r}]"
        elif dtype.kind in _INSTEAD:
            hint = _INSTEAD[dtype.kind]
        raise BlockTypeError(f"{where}: given an array of {dtype}, accepted {', '.join(DTYPES)}",
                             hint=hint) from None


def _in_elements(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType,
                 where: str) -> tuple[int, ...]:
    """Byte strides in elements; those of axes that are never stepped along do not matter."""
    for axis, (extent, stride) in enumerate(zip(shape, strides)):
        require(stride % dtype.bytes == 0 or extent <= 1 or 0 in shape,
                "{}: given a stride of {} bytes along axis {}, accepted multiples of {} ({})",
                where, stride, axis, dtype.bytes, dtype, error=BlockValueError, hint="pass a copy")
    return tuple(stride // dtype.bytes for stride in strides)


def _canonical_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with those of axes of length 1 replaced by what contiguity would make them.

    An empty array is contiguous.
    """
    if 0 in shape:
        return contiguous_strides(shape)
    canonical, step = [], 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        stride = step if extent == 1 else stride
        canonical.append(stride)
        step = (abs(stride) or step) * extent
    return tuple(reversed(canonical))


_NUMPY = Library("numpy", _read_numpy)
# of launches on the CPU; a read-only array is looked up by its key each time
HOST_NUMPY = Library(
    "numpy", _read_numpy, pointer="{0}.ctypes.data",
    key="{0}.dtype, {0}.shape, {0}.strides, {0}.flags.writeable",
    differs="{0}.dtype is not {1} or {0}.shape != {2} or {0}.strides != {3} "
            "or not {0}.flags.writeable")
_CUPY = Library(
    "cupy", _read_cupy, "{0}.data.ptr", device="{0}.data.device_id",
    key="{0}.dtype, {0}.shape, {0}._c_contiguous or {0}.strides", marks=_marks_of_cupy,
    differs="{0}.dtype is not {1} or ("
            "({0}.ndim != 1 or _len({0}) != {2} or not {0}._c_contiguous) if {3} is None else "
            "({0}.shape, None if {0}._c_contiguous else {0}.strides) != {3})")
# the array's own device_ctypes_pointer is a property in Python; an empty array has no gpu_data
_NUMBA = Library("numba", _read_numba,
                 "{0}.gpu_data is not None and {0}.gpu_data.device_ctypes_pointer.value or 0")
# get_device is -1 for tensors on the host, and the cheapest to ask
_TORCH = Library("torch", _read_torch, "{0}.data_ptr()", strides="{0}.stride()",
                 device="{0}.get_device()", differs="",
                 key="{0}.dtype, {0}.shape, {0}.stride(), {0}.get_device(), "
                     "{0}.requires_grad and _is_grad_enabled()")
_CUDA_ARRAY_INTERFACE = Library("cuda_array_interface", _read_cuda_array_interface)
_DLPACK, _ADDRESS = Library("dlpack", _read_dlpack), Library("data_ptr", _read_address)
_WRAPPER, _MOCK = Library("wrapper", _read_wrapper), Library("mock", _read_mock)
_DESCRIPTOR = Library("descriptor", _read_descriptor)

# in this order: Numba's mapped arrays are NumPy arrays too
_CLASSES = (("numba.cuda.cudadrv.devicearray", "DeviceNDArray", _NUMBA),
            ("cupy", "ndarray", _CUPY),
            ("torch", "Tensor", _TORCH),
            ("numpy", "ndarray", _NUMPY),
            ("blocknumba.triton.runtime.tensors", "TensorWrapper", _WRAPPER),
            ("blocknumba.triton.runtime.tensors", "MockTensor", _MOCK),
            ("blocknumba.triton.tools.tensor_descriptor", "TensorDescriptor", _DESCRIPTOR))


CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY

# DLDataTypeCode -> the prefix of our dtype's name
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_SPECIAL = {(6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


@dataclass(frozen=True, slots=True)
class DLPackArray:
    """Contents of a DLPack capsule.

    strides: in elements.
    device: ordinal, or None for host memory.
    capsule: keeps the memory alive; it frees itself, since nobody takes it over.
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    device: int | None
    readonly: bool
    capsule: object


def read_dlpack(value: object, where: str) -> DLPackArray:
    """Read an object that has __dlpack__.

    where: the kernel and the argument, for messages.
    Errors: BlockTypeError for a device or a dtype that a kernel cannot use.
    """
    device_type, device_id = value.__dlpack_device__()
    require(device_type in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED),
            "{}: given memory of DLPack device type {}, accepted CPU and CUDA memory", where,
            int(device_type))
    capsule = _export(value, on_device=device_type in (CUDA, CUDA_MANAGED))
    tensor, readonly = _tensor_of(capsule)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = (tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides
               else contiguous_strides(shape))
    on_device = device_type in (CUDA, CUDA_MANAGED)
    return DLPackArray(_dtype_of(tensor, where), shape, strides,
                       (tensor.data or 0) + tensor.byte_offset, device_id if on_device else None,
                       readonly, capsule)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a C-contiguous array; a zero extent counts as one."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _export(value: object, on_device: bool) -> object:
    # stream 1, the legacy default stream, orders the producer's work before launches there;
    # launches on other streams wait for it (see dispatch/launch/streams.py)
    arguments = {"stream": 1} if on_device else {}
    try:
        return value.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        return value.__dlpack__(**arguments)  # a producer from before DLPack 1.0


def _tensor_of(capsule: object) -> tuple[_Tensor, bool]:
    """The tensor in a capsule, and whether it is read-only."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.restype, is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    if is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
        return managed.tensor, bool(managed.flags & READ_ONLY)
    return _Tensor.from_address(pointer_of(capsule, b"dltensor")), False


def _dtype_of(tensor: _Tensor, where: str) -> DType:
    name = _SPECIAL.get((tensor.code, tensor.bits),
                        f"{_KINDS.get(tensor.code, '?')}{tensor.bits}")
    if tensor.lanes != 1 or name not in DTYPES:
        raise BlockTypeError(f"{where}: given DLPack type code {tensor.code} of {tensor.bits} "
                             f"bits and {tensor.lanes} lanes, accepted {', '.join(DTYPES)}")
    return DTYPES[name]
