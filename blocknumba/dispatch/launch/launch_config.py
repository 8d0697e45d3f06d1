"""Launch configurations: the structures that cuLaunchKernelEx reads."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

# Source: CUDA Driver API, CUlaunchAttributeID
_CLUSTER_DIMENSION, _COOPERATIVE, _PROGRAMMATIC_STREAM_SERIALIZATION = 4, 2, 6
_VALUE_WORDS = 16


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Configuration that all launches of a kernel share.

    threads, shared_bytes: of a block.
    cluster: blocks of a program, along the first axis.
    is_cooperative: all blocks are resident at the same time, or the launch fails.
    is_dependent: it may begin while the kernel before it in the stream still runs.
    """

    threads: int
    shared_bytes: int = 0
    cluster: int = 1
    is_cooperative: bool = False
    is_dependent: bool = False

    @property
    def attributes(self) -> dict[int, tuple[int, ...]]:
        """The launch attributes by id, as the 32-bit words of their values."""
        wanted = {_CLUSTER_DIMENSION: (self.cluster, 1, 1) if self.cluster > 1 else (),
                  _COOPERATIVE: (1,) if self.is_cooperative else (),
                  _PROGRAMMATIC_STREAM_SERIALIZATION: (1,) if self.is_dependent else ()}
        return {number: words for number, words in wanted.items() if words}


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_uint), ("padding", ctypes.c_uint),
                ("value", ctypes.c_uint * _VALUE_WORDS)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig; its grid is in blocks."""

    _fields_ = [("x_blocks", ctypes.c_uint), ("y_blocks", ctypes.c_uint),
                ("z_blocks", ctypes.c_uint), ("threads", ctypes.c_uint * 3),
                ("shared_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(_Attribute)), ("attribute_count", ctypes.c_uint)]

    @classmethod
    def of(cls, shape: LaunchShape) -> LaunchConfig:
        """The configuration of a kernel's launches, of one program on the legacy stream."""
        wanted = shape.attributes
        attributes = (_Attribute * len(wanted))(*[
            _Attribute(number, 0, words) for number, words in wanted.items()])
        return cls(shape.cluster, 1, 1, (shape.threads, 1, 1), shape.shared_bytes, 0, attributes,
                   len(wanted))
