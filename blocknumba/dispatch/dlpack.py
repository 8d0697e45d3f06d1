"""Reading arrays through DLPack, for those that offer nothing else.

Source: dmlc/dlpack, include/dlpack/dlpack.h, version 1.1.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.types import DTYPES, DType

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY

# DLDataTypeCode -> the first part of our dtype's name
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
    """What a DLPack capsule says.

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
    # launches on other streams wait for it (see dispatch/streams.py)
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
