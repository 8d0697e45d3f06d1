"""`TensorDescriptor`: an array with the shape of the boxes that a kernel reads and writes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.dispatch.launch.arrays import ArrayInfo, array_info
from blocknumba.errors import BlockTypeError, BlockValueError, require

MAX_RANK = 5
ALIGNMENT = 16  # bytes, of the first element and of the steps of all axes but the last
PADDINGS = ("zero", "nan")


@dataclass
class TensorDescriptor:
    """An argument of a kernel whose boxes it loads and stores: `desc.load([row, column])`.

    base: an array of any library.  shape, strides: in elements; the last stride is 1.
    block_shape: of a box, powers of two.  padding: "zero" or "nan", outside of the shape.
    Errors: BlockValueError, BlockTypeError for what the copy engine cannot describe.
    """

    base: object
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    def __post_init__(self):
        rank = len(self.shape)
        _require(1 <= rank <= MAX_RANK, "rank {}, accepted 1 to {}", rank, MAX_RANK)
        _require(len(self.strides) == len(self.block_shape) == rank,
                 "{} strides and {} extents of a box, accepted {} of each", len(self.strides),
                 len(self.block_shape), rank)
        _require(all(extent > 0 and extent & extent - 1 == 0 for extent in self.block_shape),
                 "boxes of {}, accepted powers of two", tuple(self.block_shape))
        _require(all(extent > 0 for extent in self.shape), "shape {}, accepted extents from 1",
                 tuple(self.shape))
        _require(self.strides[-1] == 1, "strides {}, accepted a last one of 1",
                 tuple(self.strides))
        _require(self.padding in PADDINGS, "padding {!r}, accepted zero and nan", self.padding)
        info = self._info()
        steps = [stride * info.dtype.bytes for stride in self.strides[:-1]]
        _require(not any(number % ALIGNMENT for number in (info.pointer, *steps)),
                 "an address and steps of {} bytes, accepted multiples of {}",
                 (info.pointer, *steps), ALIGNMENT)
        _require(self.padding != "nan" or info.dtype.is_float,
                 "padding 'nan' of {}, accepted it of floats", info.dtype)

    def _info(self) -> ArrayInfo:
        info = array_info(self.base, "TensorDescriptor")
        require(info is not None, "TensorDescriptor: given {!r}, accepted an array", self.base,
                error=BlockTypeError)
        return info

    @staticmethod
    def from_tensor(tensor: object, block_shape: Sequence[int],
                    padding: str = "zero") -> TensorDescriptor:
        """The descriptor of a whole array, whose last axis is contiguous."""
        info = array_info(tensor, "TensorDescriptor")
        require(info is not None, "TensorDescriptor: given {!r}, accepted an array", tensor,
                error=BlockTypeError)
        return TensorDescriptor(tensor, list(info.shape), list(info.strides), block_shape, padding)


def _require(condition: bool, message: str, *given: object) -> None:
    require(condition, f"TensorDescriptor: given {message}", *given, error=BlockValueError)
