"""Tensor maps: a global array, a box of it, and the swizzle of the box in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import BlockValueError, require

SIZE = 128  # bytes of a tensor map; CUDA Driver API, CUtensorMap
_SIGNATURE = b"emulated tensormap"
_MAXIMUM_RANK, _MAXIMUM_BOX = 5, 256  # CUDA Driver API, cuTensorMapEncodeTiled
_ALIGNMENT = 16


@dataclass(frozen=True, eq=False, slots=True)
class TensorMap:
    """A tiled tensor map, as cuTensorMapEncodeTiled makes them.

    array: the global array; its last axis is the innermost, contiguous one.
    box: extents of the box, in the order of the array's axes.
    swizzle: bytes of the pattern: 0, 32, 64 or 128.
    fill_nan: out-of-bounds elements are NaN instead of 0.
    as_tf32: float32 elements are rounded to tf32, to nearest, when they are loaded.
    held_bytes: memory from the first element on, where the array may reach beyond it.
    """

    array: np.ndarray
    box: tuple[int, ...]
    swizzle: int = 0
    fill_nan: bool = False
    as_tf32: bool = False
    held_bytes: int | None = None

    def __post_init__(self):
        array, box = self.array, self.box
        require(1 <= array.ndim <= _MAXIMUM_RANK, "TensorMap: given {} axes, accepted 1 to {}",
                array.ndim, _MAXIMUM_RANK, error=BlockValueError)
        require(len(box) == array.ndim and all(1 <= extent <= _MAXIMUM_BOX for extent in box),
                "TensorMap: given the box {}, accepted {} extents of 1 to {}", box, array.ndim,
                _MAXIMUM_BOX, error=BlockValueError)
        require(array.strides[-1] == array.itemsize,
                "TensorMap: given the strides {}, accepted a contiguous last axis", array.strides,
                error=BlockValueError)
        require(all(stride % _ALIGNMENT == 0 for stride in array.strides[:-1]),
                "TensorMap: given the strides {}, accepted multiples of {} bytes", array.strides,
                _ALIGNMENT, error=BlockValueError)
        inner = box[-1] * array.itemsize
        require(inner % _ALIGNMENT == 0, "TensorMap: given {} bytes on the last axis of the box, "
                "accepted a multiple of {}", inner, _ALIGNMENT, error=BlockValueError)
        require(self.swizzle in (0, 32, 64, 128) and (not self.swizzle or inner <= self.swizzle),
                "TensorMap: given a swizzle of {} for {} bytes, accepted 0, 32, 64 or 128 that "
                "hold them", self.swizzle, inner, error=BlockValueError)

    @property
    def size(self) -> int:
        """Bytes of the box in shared memory."""
        return int(np.prod(self.box)) * self.array.itemsize

    def window(self, start: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The slices of the array inside a box, and the same elements as slices of the box.

        start: in the order of the array's axes; may be negative or beyond the end.
        """
        inside, in_box = [], []
        for begin, extent, size in zip(start, self.box, self.array.shape):
            low, high = max(begin, 0), min(begin + extent, size)
            high = max(high, low)
            inside.append(slice(low, high))
            in_box.append(slice(low - begin, high - begin))
        self._require_held(inside)
        return tuple(inside), tuple(in_box)

    def _require_held(self, inside: list[slice]) -> None:
        if self.held_bytes is None or any(axis.start == axis.stop for axis in inside):
            return
        last = sum((axis.stop - 1) * stride for axis, stride in zip(inside, self.array.strides))
        require(last < self.held_bytes, "TensorMap: given the elements {} of memory that ends "
                "before them", inside, error=BlockValueError)

    def _require_whole(self, inside: slice, in_box: slice) -> None:
        """A store is cut off at whole 16 bytes: it writes the rest of them behind a row."""
        is_cut = inside.start < inside.stop and in_box.stop < self.box[-1]
        require(not is_cut or inside.stop * self.array.itemsize % _ALIGNMENT == 0,
                "TensorMap: given a store to rows of {} bytes, accepted rows that end at multiples "
                "of {}: it writes behind them", inside.stop * self.array.itemsize, _ALIGNMENT,
                error=BlockValueError)

    def load(self, start: tuple[int, ...]) -> np.ndarray:
        """The box at start as bytes, filled where it is out of bounds."""
        fill = np.zeros(1, self.array.dtype)
        if self.fill_nan:
            fill = np.full(1, np.nan).astype(self.array.dtype)
        box = np.empty(self.box, self.array.dtype)
        box[...] = fill
        inside, in_box = self.window(start)
        box[in_box] = rounded_to_tf32(self.array[inside]) if self.as_tf32 else self.array[inside]
        return box.reshape(-1).view(np.uint8)

    def store(self, start: tuple[int, ...], octets: np.ndarray, combine: np.ufunc | None) -> None:
        """Write the bytes of a box at start, what is out of bounds not; or combine with them."""
        box = octets.view(self.array.dtype).reshape(self.box)
        inside, in_box = self.window(start)
        if combine is None:
            self._require_whole(inside[-1], in_box[-1])
            self.array[inside] = box[in_box]
        else:
            self.array[inside] = combine(self.array[inside], box[in_box])


def rounded_to_tf32(values: np.ndarray) -> np.ndarray:
    """float32 with 11 significant bits: to nearest even, as an H100 does; NaN, infinities stay."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = bits >> np.uint32(13) & np.uint32(1)
    rounded = (bits + np.uint32((1 << 12) - 1) + odd) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded, bits).astype(np.uint32).view(np.float32)


def encode(index: int) -> bytes:
    """The bytes that stand for the tensor map of a number."""
    return (_SIGNATURE + index.to_bytes(8, "little")).ljust(SIZE, b"\0")


def decode(octets: bytes) -> int | None:
    """The number of the tensor map that bytes stand for, or None."""
    if not octets.startswith(_SIGNATURE):
        return None
    return int.from_bytes(octets[len(_SIGNATURE):len(_SIGNATURE) + 8], "little")


def swizzled(offsets: np.ndarray, swizzle: int) -> np.ndarray:
    """Byte offsets in shared memory, as a swizzle permutes them.

    The 16-byte chunk within the pattern is combined with the number of the 128-byte row.
    Source: PTX ISA, "Swizzling Modes".
    """
    if not swizzle:
        return offsets
    rows = swizzle // 16 - 1
    return offsets ^ ((offsets >> 7 & rows) << 4)


# ---- maps that a kernel makes ---------------------------------------------------------------
# The fields that tensormap.replace sets, in the bytes of a map; set: a bit for each that was;
# fenced: fence.proxy.tensormap made it one that TMA may use.
_FIELDS = np.dtype([
    ("global_address", "<u8"), ("global_stride", "<u8", _MAXIMUM_RANK - 1),
    ("global_dim", "<u4", _MAXIMUM_RANK), ("box_dim", "<u4", _MAXIMUM_RANK),
    ("element_stride", "<u4", _MAXIMUM_RANK), ("set", "<u4"), ("rank", "u1"), ("elemtype", "u1"),
    ("interleave_layout", "u1"), ("swizzle_mode", "u1"), ("fill_mode", "u1"), ("fenced", "u1")])
_OF_AXES = ("global_stride", "global_dim", "box_dim", "element_stride")
_WHOLE = ("global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
# PTX ISA, "tensormap.replace": .elemtype, of which tf32 is loaded as float32; .swizzle_mode
_ELEMENTS = {0: "u1", 1: "u2", 2: "u4", 3: "i4", 4: "u8", 5: "i8", 6: "f2", 7: "f4", 8: "f4",
             9: "f8", 10: "u2", 11: "f4", 12: "f4"}
_AS_TF32, _SWIZZLES = (11, 12), (0, 32, 64, 128)


def replace_field(octets: np.ndarray, field: str, value: int, axis: int = 0) -> None:
    """Set a field of a map in its bytes, as tensormap.replace does.

    Errors: BlockValueError for another field or axis.
    """
    made = octets[:_FIELDS.itemsize].view(_FIELDS)[0]
    if field in _WHOLE:
        made[field], bit = value, _WHOLE.index(field)
    else:
        require(field in _OF_AXES and axis < len(made[field]),
                "tensormap.replace: given {} of axis {}, accepted {}", field, axis,
                ", ".join((*_WHOLE, *_OF_AXES)), error=BlockValueError)
        made[field][axis], bit = value, _bit_of(field, axis)
    made["set"] |= np.uint32(1 << bit)


def set_fenced(octets: np.ndarray, fenced: bool) -> None:
    """Note in a map's bytes whether it was fenced since it was written."""
    octets[:_FIELDS.itemsize].view(_FIELDS)["fenced"] = fenced


def _bit_of(field: str, axis: int) -> int:
    return len(_WHOLE) + _OF_AXES.index(field) * _MAXIMUM_RANK + axis


def made_map(octets: np.ndarray, bytes_at: Callable[[int], np.ndarray | None]) -> TensorMap | None:
    """The map that a kernel made; None without a fence or all fields, or without such an array.

    bytes_at: the bytes from an address to the end of its allocation.
    """
    made = octets[:_FIELDS.itemsize].copy().view(_FIELDS)[0]
    rank, needed = int(made["rank"]) + 1, (1 << len(_WHOLE)) - 1
    for field in _OF_AXES:
        for axis in range(rank - (field == "global_stride")):
            needed |= 1 << _bit_of(field, axis)
    if int(made["set"]) & needed != needed or rank > _MAXIMUM_RANK or not made["fenced"]:
        return None
    held = bytes_at(int(made["global_address"]))
    code, dtype = int(made["elemtype"]), np.dtype(_ELEMENTS[int(made["elemtype"])])
    if held is None or (made["element_stride"][:rank] != 1).any() or made["interleave_layout"]:
        return None
    whole = held[:len(held) // dtype.itemsize * dtype.itemsize].view(dtype)
    strides = (*made["global_stride"][:rank - 1][::-1].tolist(), dtype.itemsize)
    array = np.lib.stride_tricks.as_strided(
        whole, tuple(made["global_dim"][:rank][::-1].tolist()), strides)
    return TensorMap(array, tuple(made["box_dim"][:rank][::-1].tolist()),
                     _SWIZZLES[int(made["swizzle_mode"])], bool(made["fill_mode"]),
                     code in _AS_TF32, len(held))
