"""Tensor descriptors of Triton's dialect: those that TMA can copy, and no others."""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.typing.function import function
from blocknumba.typing.functions import descriptors
from blocknumba.typing.values import Descriptor

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
