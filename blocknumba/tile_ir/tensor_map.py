"""Which box of an array the copy engine moves at a time."""

from __future__ import annotations

from dataclasses import dataclass

# Source: CUDA Driver API, cuTensorMapEncodeTiled
SIZE_BYTES, ALIGNMENT = 128, 64
MAX_RANK, MAX_BOX, MAX_EXTENT, STRIDE_LIMIT_BYTES = 5, 256, 2**32, 2**40
SWIZZLES = (0, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A box of an array, and how its elements lie in shared memory.

    axes: every axis of the array once, the contiguous one first; starts are given in this order.
    box: extents, one for each of `axes`.
    swizzle_bytes: the width of the rows whose 16-byte chunks are permuted; 0 permutes nothing.
    as_tf32: float32 elements are rounded to 11 significant bits on their way.
    relies_on: numbers that the kernel was given and that are extents or strides of the array.
    Source: CUDA Driver API, cuTensorMapEncodeTiled.
    """

    axes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    relies_on: tuple[str, ...] = ()
    as_tf32: bool = False

    def __post_init__(self):
        assert sorted(self.axes) == list(range(len(self.axes))), self
        assert 1 <= len(self.axes) <= MAX_RANK and len(self.box) == len(self.axes), self
        assert all(1 <= extent <= MAX_BOX for extent in self.box), self
        assert self.swizzle_bytes in SWIZZLES, self
