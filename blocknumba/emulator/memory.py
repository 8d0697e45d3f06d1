"""The bytes that a kernel can address: global arrays, and flat buffers for the other spaces."""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass, field

import numpy as np

from blocknumba.emulator.errors import AccessError
from blocknumba.emulator.tensor_map import TensorMap, encode

# Generic addresses.  The emulator's choice: any split of the 64-bit space is as good.
LOCAL_WINDOW = 1 << 44
SHARED_WINDOW = 1 << 45
PARAMETER_WINDOW = 1 << 46
_GLOBAL_BASE = 7 << 44
_REGION_SHIFT = 44
REGIONS = {LOCAL_WINDOW >> _REGION_SHIFT: "local", SHARED_WINDOW >> _REGION_SHIFT: "shared",
           PARAMETER_WINDOW >> _REGION_SHIFT: "param"}
WINDOWS = {"local": LOCAL_WINDOW, "shared": SHARED_WINDOW, "param": PARAMETER_WINDOW}
_ALLOCATION_ALIGNMENT = 256  # CUDA Programming Guide, "Device Memory Accesses"
_GUARD_BYTES = 1 << 20  # between arrays, so that a small overrun hits nothing
_SIZES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def region_of(address: int) -> str:
    """The space that a generic address lies in."""
    return REGIONS.get(address >> _REGION_SHIFT, "global")


class Bytes:
    """A buffer that is gathered from and scattered to by arrays of byte offsets."""

    __slots__ = ("data", "views")

    def __init__(self, data: np.ndarray):
        self.data = data
        self.views = {size: data[:len(data) // size * size].view(dtype)
                      for size, dtype in _SIZES.items()}

    @classmethod
    def zeros(cls, size: int) -> Bytes:
        """A buffer of at least size bytes."""
        return cls(np.zeros((size + 15) // 16 * 16, np.uint8))

    def gather(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """The elements of size bytes at these offsets, multiples of size."""
        return self.views[size][offsets >> (size.bit_length() - 1)]

    def scatter(self, offsets: np.ndarray, size: int, values: np.ndarray) -> None:
        """Write elements of size bytes; of two to one offset, the later stays."""
        self.views[size][offsets >> (size.bit_length() - 1)] = values


@dataclass(eq=False, slots=True)
class Segment:
    """One allocation in global memory.

    base: address of its first byte.   low, high: the offsets that may be accessed, half-open.
    """

    name: str
    base: int
    bytes: Bytes
    low: int
    high: int
    writable: bool = True
    owner: object = field(default=None, repr=False)


class GlobalMemory:
    """Host arrays at device addresses; kernels read and write them in place.

    tensor_maps: those that kernels refer to, by the number that their bytes hold.
    """

    def __init__(self) -> None:
        self.tensor_maps: list[TensorMap] = []
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._by_owner: dict[int, Segment] = {}
        self._next = _GLOBAL_BASE

    def map(self, array: np.ndarray, name: str = "") -> int:
        """The device address of an array's first element.

        Views of one array share its allocation; only what was mapped may be accessed.
        """
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        segment = self._by_owner.get(id(root))
        first, last = np.lib.array_utils.byte_bounds(array)
        start = np.lib.array_utils.byte_bounds(root)[0]
        if segment is None:
            segment = self._allocate(root, name or f"array of {array.dtype}")
            segment.low, segment.high = first - start, last - start
            segment.writable = array.flags.writeable
        segment.low = min(segment.low, first - start)
        segment.high = max(segment.high, last - start)
        segment.writable = segment.writable or array.flags.writeable
        return segment.base + array.__array_interface__["data"][0] - start

    def place(self, tensor_map: TensorMap) -> bytes:
        """The bytes by which a kernel refers to a tensor map, and its array mapped."""
        self.map(tensor_map.array)
        self.tensor_maps.append(tensor_map)
        return encode(len(self.tensor_maps) - 1)

    def bytes_from(self, address: int) -> np.ndarray | None:
        """The bytes from an address to the last that may be accessed; None where there are none."""
        segment = self.find(address, address + 1)
        if segment is None:
            return None
        return segment.bytes.data[address - segment.base:segment.high]

    def _allocate(self, root: np.ndarray, name: str) -> Segment:
        start, end = np.lib.array_utils.byte_bounds(root)
        data = np.lib.stride_tricks.as_strided(
            np.frombuffer(_bytes_at(root, start, end), np.uint8), (end - start,), (1,))
        segment = Segment(name, self._next, Bytes(data), 0, end - start, owner=root)
        self._segments.append(segment)
        self._bases.append(segment.base)
        self._by_owner[id(root)] = segment
        size = end - start + _GUARD_BYTES
        self._next += (size + _ALLOCATION_ALIGNMENT - 1) // _ALLOCATION_ALIGNMENT * (
            _ALLOCATION_ALIGNMENT)
        return segment

    def find(self, first: int, last: int) -> Segment | None:
        """The allocation that holds all bytes from first up to last, or None."""
        index = bisect.bisect_right(self._bases, first) - 1
        if index < 0:
            return None
        segment = self._segments[index]
        inside = segment.base + segment.low <= first and last <= segment.base + segment.high
        return segment if inside else None

    def nearest(self, address: int) -> str:
        """Text: an address relative to the closest allocation below it."""
        index = bisect.bisect_right(self._bases, address) - 1
        if index < 0:
            return "no array is there"
        segment = self._segments[index]
        size, offset = segment.high - segment.low, address - segment.base - segment.low
        if offset >= 0:
            return f"byte {offset} of the {segment.name}, which has {size} bytes"
        return f"{-offset} bytes before the {segment.name}"

    def segments_of(self, addresses: np.ndarray, size: int) -> list[tuple[Segment, np.ndarray]]:
        """The allocations that accesses of size bytes hit, each with the accesses that hit it.

        Errors: AccessError for the first access that hits none.
        """
        indices = np.searchsorted(self._bases, addresses, "right") - 1
        found = []
        for index in np.unique(indices):
            chosen = indices == index
            low, high = int(addresses[chosen].min()), int(addresses[chosen].max()) + size
            segment = self.find(low, high)
            if segment is None:
                bad = next(one for one in addresses.tolist() if self.find(one, one + size) is None)
                raise AccessError(
                    f"global access of {size} bytes at {bad:#x}: out of bounds ("
                    f"{self.nearest(bad)})")
            found.append((segment, chosen))
        return found


def _bytes_at(root: np.ndarray, start: int, end: int) -> object:
    """The memory of an array, strided or not, as a buffer."""
    if root.flags.c_contiguous:
        return memoryview(root.reshape(-1).view(np.uint8)) if root.size else b""
    return (ctypes.c_uint8 * (end - start)).from_address(start)
