"""Tensor maps of a launch: descriptions of arrays for TMA."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.driver import Driver
from blocknumba.dispatch.launch.signature import ScalarInfo
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.tensor_map import ALIGNMENT, SIZE_BYTES, Number, Sizes
from blocknumba.tile_ir.ir.types import DType

MAX_KEPT = 256  # per parameter; addresses that never come back must not fill the memory

ArgumentInfo = ArrayInfo | ScalarInfo


class EncodedMaps:
    """The tensor maps of one parameter, for arrays of one shape at any address.

    parameter: of kind "tensor_map".
    given: the arguments of one of the launches; the others differ in addresses and numbers only.
    arguments: names of the arguments that determine the map: the array, then numbers.
    """

    def __init__(self, driver: Driver, parameter: Parameter, given: Mapping[str, ArgumentInfo]):
        self._driver = driver
        self._map = parameter.tensor_map
        self._dtype = given[parameter.argument].dtype
        numbers = self._map.numbers
        self._fixed = {number: number_in(given, number) for number in numbers
                       if number.kind != "value"}
        self._others = tuple((number, given[number.argument].dtype) for number in numbers
                             if number.kind == "value")
        self.arguments = (parameter.argument, *(number.argument for number, _ in self._others))
        self._kept: dict[tuple[int, ...], ctypes.Array] = {}

    def at(self, bits: tuple[int, ...]) -> ctypes.Array | None:
        """The map for these slot contents of `arguments`, aligned as the driver requires.

        None if the numbers describe no array.
        Errors: LaunchError when the driver does not accept it.
        """
        found = self._kept.get(bits)
        if found is not None:
            return found
        pointer, *numbers = bits
        given = self._fixed | {number: _integer(slot, dtype) for (number, dtype), slot
                               in zip(self._others, numbers, strict=True)}
        sizes = self._map.sizes(self._dtype.bytes, given.__getitem__)
        if sizes is None:
            return None
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        found = self._kept[bits] = _aligned(self._driver.encode_tensor_map(
            self._dtype, pointer, sizes, self._map.box, self._map.swizzle_bytes,
            self._map.as_tf32))
        return found


def sizes_in(given: Mapping[str, ArgumentInfo], parameter: Parameter) -> Sizes | None:
    """Sizes of the array that a launch's arguments describe to a tensor map; None if invalid."""
    return parameter.tensor_map.sizes(given[parameter.argument].dtype.bytes,
                                      lambda number: number_in(given, number))


def number_in(given: Mapping[str, ArgumentInfo], number: Number) -> int:
    """Value of one number of a tensor map in a launch's arguments."""
    info = given[number.argument]
    if number.kind == "value":
        return int(info.value)
    return (info.shape if number.kind == "extent" else info.strides)[number.axis]


def _integer(slot: int, dtype: DType) -> int:
    """The integer of a dtype in the low bits of a slot."""
    low = slot & (1 << dtype.bits) - 1
    return low - (1 << dtype.bits) if low > dtype.maximum else low


def _aligned(octets: bytes) -> ctypes.Array:
    """A copy of a map at an address that is a multiple of ALIGNMENT."""
    memory = ctypes.create_string_buffer(SIZE_BYTES + ALIGNMENT - 1)
    start = -ctypes.addressof(memory) % ALIGNMENT
    aligned = (ctypes.c_char * SIZE_BYTES).from_buffer(memory, start)
    aligned.raw = octets
    return aligned
