"""Tensor maps of a launch: what the copy engine is told of an array."""

from __future__ import annotations

import ctypes

from blocknumba.dispatch.arrays import ArrayFacts
from blocknumba.dispatch.driver import Driver
from blocknumba.tile_ir.ir import Parameter
from blocknumba.tile_ir.tensor_map import ALIGNMENT, SIZE_BYTES

MAX_KEPT = 256  # per parameter; addresses that never come back must not fill the memory


class EncodedMaps:
    """The tensor maps of one parameter, for arrays of one shape at any address.

    parameter: of kind "tensor_map".
    array: one of the arrays; only its address differs from the others'.
    """

    def __init__(self, driver: Driver, parameter: Parameter, array: ArrayFacts):
        axes, element_bytes = parameter.tensor_map.axes, array.dtype.bytes
        self._driver = driver
        self._map = parameter.tensor_map
        self._dtype = array.dtype
        self._extents = tuple(array.shape[axis] for axis in axes)
        self._strides_bytes = tuple(array.strides[axis] * element_bytes for axis in axes)
        self._kept: dict[int, ctypes.Array] = {}

    def at(self, pointer: int) -> ctypes.Array:
        """The map of the array at an address, aligned as the driver wants it.

        Errors: LaunchError when the driver does not accept it.
        """
        found = self._kept.get(pointer)
        if found is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            found = self._kept[pointer] = _aligned(self._driver.encode_tensor_map(
                self._dtype, pointer, self._extents, self._strides_bytes, self._map.box,
                self._map.swizzle_bytes, self._map.as_tf32))
        return found


def _aligned(octets: bytes) -> ctypes.Array:
    """A copy of a map at an address that is a multiple of ALIGNMENT."""
    memory = ctypes.create_string_buffer(SIZE_BYTES + ALIGNMENT - 1)
    start = -ctypes.addressof(memory) % ALIGNMENT
    aligned = (ctypes.c_char * SIZE_BYTES).from_buffer(memory, start)
    aligned.raw = octets
    return aligned
