"""Arrays of given elements that lie in many ways in memory, with room around them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# of the axes in memory, from outside: "c" and "offset" by one element are contiguous; "permuted"
# has any order, "pitched" gaps between rows, "broadcast" one row for all of axis 0; axes of one
# element of a "far" one have strides of 64 bits
LAYOUTS = ("c", "f", "permuted", "strided", "pitched", "reversed", "flipped", "offset", "readonly",
           "broadcast", "far")
FAR_BYTES = 1 << 40
READ_ONLY = ("readonly", "broadcast")
ROOM = 64  # elements before and after, so that an aligned array stays aligned


@dataclass(frozen=True)
class Placed:
    """An array in its place.   base: the memory, of one axis; view: the array."""

    base: np.ndarray
    view: np.ndarray

    def around(self) -> np.ndarray:
        """The bytes of the memory, zero where the array is."""
        inside = np.zeros(self.base.size, bool)
        start = (self.view.__array_interface__["data"][0]
                 - self.base.__array_interface__["data"][0]) // self.base.itemsize
        offsets = np.asarray(start)
        for extent, stride in zip(self.view.shape, self.view.strides):
            offsets = offsets[..., None] + np.arange(extent) * (stride // self.base.itemsize)
        inside[offsets.reshape(-1)] = True
        found = self.base.copy().view(np.uint8).reshape(self.base.size, -1)
        found[inside] = 0
        return found


def placed(values: np.ndarray, layout: str, seed: int) -> Placed:
    """An array of these elements that lies so; there is garbage around it."""
    random = np.random.default_rng(seed)
    rank = values.ndim
    order = list(range(rank))
    if layout == "f":
        order = order[::-1]
    elif layout == "permuted":
        order = [int(axis) for axis in random.permutation(rank)]
    extents = list(values.shape)
    if layout == "strided" and rank:
        extents[-1] *= 2
    elif layout == "pitched":
        extents[1:] = [extent + 3 for extent in extents[1:]]
    elif layout == "broadcast" and rank:
        extents[0] = min(extents[0], 1)
    count = math.prod(extents)
    base = random.integers(0, 256, (count + 2 * ROOM) * values.itemsize, np.uint8).view(
        values.dtype)
    start = ROOM + (layout == "offset")
    inner = base[start:start + count].reshape([extents[axis] for axis in order])
    view = inner.transpose(np.argsort(order)) if rank else inner
    view = _cut(view, values.shape, layout)
    if layout == "broadcast" and rank:
        view[...] = values[:1]
        view = np.broadcast_to(view, values.shape)
    else:
        view[...] = values
    if layout in READ_ONLY:
        view.flags.writeable = False
    return Placed(base, view)


def _cut(view: np.ndarray, shape: tuple[int, ...], layout: str) -> np.ndarray:
    """The part of an array in memory that has this shape, in the order of the layout."""
    if layout == "strided" and view.ndim:
        return view[..., ::2]
    if layout == "reversed" and view.ndim:
        return view[..., ::-1]
    if layout == "flipped" and view.ndim:
        return view[::-1]
    if layout == "pitched":
        return view[tuple(slice(extent) for extent in shape)]
    if layout == "far":
        strides = [FAR_BYTES if extent == 1 else stride
                   for extent, stride in zip(view.shape, view.strides)]
        # as_strided does not know the dtypes of ml_dtypes
        number = np.dtype(f"u{view.itemsize}")
        return np.lib.stride_tricks.as_strided(view.view(number), strides=strides).view(view.dtype)
    return view


def repeated(values: np.ndarray, layout: str) -> np.ndarray:
    """The elements that an array of such a layout can have."""
    if layout == "broadcast" and values.ndim:
        return np.broadcast_to(values[:1], values.shape).copy()
    return values
