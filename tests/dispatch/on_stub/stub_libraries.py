"""CuPy and Torch as far as a launch sees them, with memory that the stub driver can read."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import numpy as np


DEVICES = int(os.environ.get("STUB_DEVICES", "1"))  # that the stub driver has


@dataclass
class _Pointer:
    ptr: int
    device_id: int


class CupyArray:
    """cupy.ndarray: a copy of a NumPy array in device memory."""

    def __init__(self, array: np.ndarray, device: int = 0, offset: int = 0):
        memory = np.empty(array.nbytes + 512, np.uint8)
        start = -memory.ctypes.data % 256 + offset
        self.host = np.ndarray(array.shape, array.dtype, memory, start,
                               None if array.flags.c_contiguous else array.strides)
        self.host[...] = array
        self.data = _Pointer(self.host.ctypes.data, device)

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)
    strides = property(lambda self: self.host.strides)
    _c_contiguous = property(lambda self: self.host.flags.c_contiguous)
    ndim = property(lambda self: self.host.ndim)
    __cuda_array_interface__ = property(lambda self: None)

    def __len__(self) -> int:
        return len(self.host)


@dataclass(frozen=True)
class _Device:
    type: str
    index: int | None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class TorchTensor:
    """torch.Tensor: a copy of a NumPy array on the CPU or on a GPU."""

    layout = "strided"
    requires_grad = False

    def __init__(self, array: np.ndarray, device: int | None = 0):
        self.host = array.copy(order="K")
        self.device = _Device("cpu" if device is None else "cuda", device)
        self.dtype = _Dtype(array.dtype.name)
        self.version = 0

    shape = property(lambda self: self.host.shape)
    is_cuda = property(lambda self: self.device.type == "cuda")

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.host.itemsize for stride in self.host.strides)

    def get_device(self) -> int:
        return -1 if self.device.index is None else self.device.index

    def data_ptr(self) -> int:
        return self.host.ctypes.data

    def is_inference(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False


@dataclass(frozen=True)
class _Dtype:
    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


# what the libraries say their current streams are
CURRENT = SimpleNamespace(cupy=0, torch=0)


class InterfaceArray:
    """An array of a library that we do not know, with __cuda_array_interface__."""

    def __init__(self, array: np.ndarray, stream: int | None = None, readonly: bool = False,
                 **changes: object):
        self.host = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "strides": array.strides,
            "data": (array.ctypes.data if array.size else 0, readonly), "stream": stream,
            "version": 3} | changes


def install() -> None:
    """Make them the libraries of this process."""
    cupy, torch = ModuleType("cupy"), ModuleType("torch")
    cupy.ndarray = CupyArray
    cupy.cuda = SimpleNamespace(get_current_stream=lambda device=-1: SimpleNamespace(ptr=CURRENT.cupy))
    torch.Tensor, torch.strided = TorchTensor, "strided"
    torch.is_grad_enabled = lambda: True
    torch.autograd = SimpleNamespace(graph=SimpleNamespace(
        increment_version=lambda tensor: setattr(tensor, "version", tensor.version + 1)))
    torch.cuda = SimpleNamespace(is_initialized=lambda: True)
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: CURRENT.torch + device)
    sys.modules |= {"cupy": cupy, "torch": torch}
