"""Boxes of arrays in Triton's dialect: what TMA can copy, and what an access checks."""

from __future__ import annotations

from dataclasses import replace

from blocknumba.errors import require
from blocknumba.tile_ir.ir.tensor_map import UNBOUNDED
from blocknumba.typing.function import function
from blocknumba.typing.functions import descriptors
from blocknumba.typing.static_values import static_axes
from blocknumba.typing.values import BlockPointer, Descriptor

MIN_ROW_BYTES = 16  # of a box.  Source: CUDA driver API, cuTensorMapEncodeTiled


@function
def make_tensor_descriptor(context, base, shape, strides, block_shape, padding_option="zero"):
    """As of blocknumba.   Errors: boxes whose rows have less than 16 bytes."""
    made: Descriptor = descriptors.make_tensor_descriptor.rule(
        context, base, shape, strides, block_shape, padding_option)
    row_bytes = made.block_shape[-1] * made.array.dtype.bytes
    require(row_bytes >= MIN_ROW_BYTES, "make_tensor_descriptor: block_shape: given {} of {}, "
            "{} bytes on the last axis, accepted {} or more", made.block_shape, made.array.dtype,
            row_bytes, MIN_ROW_BYTES)
    return made


def checked_on(name: str, pointer: object, boundary_check: object) -> object:
    """A block pointer whose axes end where its shape does if boundary_check names them.

    The others have no end; anything but a block pointer stays what it is.
    """
    if not isinstance(pointer, BlockPointer):
        return pointer
    array = pointer.array
    named = () if boundary_check in (None, ()) else static_axes(
        f"{name}: boundary_check", boundary_check, array.rank)
    extents = tuple(extent if axis in named else UNBOUNDED
                    for axis, extent in enumerate(array.extents))
    return replace(pointer, array=replace(array, extents=extents))
