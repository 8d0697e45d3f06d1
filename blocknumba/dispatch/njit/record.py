"""Records: the arguments of a launch as native code hands them to Python, 8 bytes a slot.

    array   address | extent of each axis | stride of each axis, in elements | stream
    scalar  as given | as the kernel takes it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.signature import Formal, ScalarInfo, scalar_info
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo
from blocknumba.errors import BlockValueError, require
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.ir.types import DType, bool_, float32, float64, int64

_MASK_64 = (1 << 64) - 1
_TYPICAL_EXTENT = 256
# a stride that is no multiple of the element's size is written as one that no array has
IRREGULAR = 1 << 62
# Numba does not tell these from Python's numbers
_PYTHON = {int64: int, float64: float, bool_: bool}


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """An array argument.

    device: ordinal of the GPU that holds the memory; None for host memory.
    readonly: Numba forbids stores.
    order: "C" or "F" where the layout is known to be contiguous, else "A".
    """

    name: str
    dtype: DType
    rank: int
    device: int | None
    readonly: bool
    order: str

    @property
    def slot_count(self) -> int:
        return 2 + 2 * self.rank

    def index(self, parameter: Parameter) -> int:
        """The slot that holds a kernel parameter, from the entry's first."""
        if parameter.is_pointer:
            return 0
        return 1 + parameter.axis + (self.rank if parameter.kind == "stride" else 0)

    def read(self, slots: Sequence[int], kernel: str) -> ArrayInfo:
        """The array in a record.  slots: signed.

        Errors: BlockValueError for elements that are not aligned.
        """
        pointer = slots[0] & _MASK_64
        shape, strides = tuple(slots[1:1 + self.rank]), tuple(slots[1 + self.rank:-1])
        require(pointer % self.dtype.bytes == 0 and all(abs(stride) < IRREGULAR
                                                        for stride in strides),
                "{}: argument {}: given an address or strides that are no multiples of the {} "
                "bytes of {}", kernel, self.name, self.dtype.bytes, self.dtype,
                error=BlockValueError, hint="pass a copy")
        return ArrayInfo(self.dtype, shape, strides, pointer, self.device, self.readonly, None,
                         None if self.device is None else slots[-1] & _MASK_64)

    def typical(self, number: int) -> ArrayInfo:
        """An array like most of them; number: that of the argument."""
        shape = (_TYPICAL_EXTENT,) * self.rank
        steps = [_TYPICAL_EXTENT ** axis for axis in range(self.rank)]
        strides = tuple(steps if self.order == "F" else reversed(steps))
        return ArrayInfo(self.dtype, shape, strides, (number + 1) << 40, self.device,
                         self.readonly, None)


@dataclass(frozen=True, slots=True)
class ScalarEntry:
    """A number.

    given: dtype in the caller; int64 and float64 are Python's numbers.
    declared, is_weak, is_divisor: as of its Formal.
    """

    name: str
    given: DType
    declared: DType | None
    is_weak: bool
    is_divisor: bool

    @staticmethod
    def of(formal: Formal, given: DType) -> ScalarEntry:
        """The entry of a parameter.  given: the dtype of its argument."""
        return ScalarEntry(formal.name, given, formal.dtype, formal.is_weak, formal.is_divisor)

    slot_count = 2

    def index(self, parameter: Parameter) -> int:
        """See ArrayEntry.index."""
        assert parameter.kind == "value"
        return 1

    @property
    def is_integer_of_python(self) -> bool:
        """Whether kernels are specialised on the value, and on whether 32 bits hold it."""
        return self.given is int64 and self.declared is None

    @property
    def is_converted_natively(self) -> bool:
        """Whether native code can convert what is given to what is declared."""
        given, declared = self.given, self.declared
        if declared in (None, given):
            return True
        if declared in (float32, float64):
            # of an unsigned int of 64 bits, float64 is not always the nearest to float32's
            return given in (float32, float64) or given.is_integer and (
                given.bits < 64 or given is int64)
        return declared.is_integer and given.is_integer

    def read(self, slots: Sequence[int], kernel: str) -> ScalarInfo:
        """The number in a record, as a launch from Python reads it.  slots: signed.

        Errors: those of scalar_info.
        """
        bits = (slots[0] & _MASK_64).to_bytes(8, "little")
        return self._info(np.frombuffer(bits, self.given.numpy, 1)[0], kernel)

    def typical(self, number: int) -> ScalarInfo:
        """A number like most of them."""
        return self._info(self.given.numpy.type(1 if self.given is bool_ else 16), "")

    def _info(self, value: np.generic, kernel: str) -> ScalarInfo:
        value = _PYTHON[self.given](value) if self.given in _PYTHON else value
        where = f"{kernel}: argument {self.name}"
        return scalar_info(value, self.declared, where, self.is_weak)


Entry = ArrayEntry | ScalarEntry


@dataclass(frozen=True, slots=True)
class Layout:
    """The entries of a record, one after the other.

    mapped: names of those that tensor maps depend on: each value has a version of its own.
    """

    entries: tuple[Entry, ...]
    mapped: frozenset[str] = frozenset()

    @property
    def slot_count(self) -> int:
        return sum(entry.slot_count for entry in self.entries)

    def starts(self) -> list[int]:
        """The first slot of each entry."""
        starts, start = [], 0
        for entry in self.entries:
            starts.append(start)
            start += entry.slot_count
        return starts

    def slots(self, parameters: Iterable[Parameter]) -> list[int]:
        """The slot of each kernel parameter."""
        found = {entry.name: (entry, start) for entry, start in zip(self.entries, self.starts())}
        return [start + entry.index(parameter) for parameter in parameters
                for entry, start in (found[parameter.argument],)]

    def read(self, slots: Sequence[int], kernel: str) -> dict[str, ArgumentInfo]:
        """The arguments in a record by name, as a launch from Python reads them."""
        return {entry.name: entry.read(slots[start:start + entry.slot_count], kernel)
                for entry, start in zip(self.entries, self.starts())}

    def typical(self) -> dict[str, ArgumentInfo]:
        """Arguments like most of them."""
        return {entry.name: entry.typical(number) for number, entry in enumerate(self.entries)}

    @property
    def is_converted_natively(self) -> bool:
        """Whether native code can make all kernel parameters."""
        return all(entry.is_converted_natively for entry in self.entries
                   if isinstance(entry, ScalarEntry))

