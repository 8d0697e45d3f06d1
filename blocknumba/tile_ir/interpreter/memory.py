"""The arguments of a launch as memory that programs address.

An address is one int64: the number of an argument, shifted, plus an offset in elements from its
first element.  Pointer arithmetic is integer arithmetic, and every pointer, however it was
selected or carried, remembers its array.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from blocknumba.errors import BlockValueError, require
from blocknumba.tile_ir.ir.function import Function, Parameter
from blocknumba.tile_ir.ir.types import TileType, dtype_of

OWNER_SHIFT = 48
_HALF = 1 << OWNER_SHIFT - 1


def owners(addresses: np.ndarray) -> np.ndarray:
    """The number of the argument that each address points into; 0 for none."""
    return addresses + _HALF >> OWNER_SHIFT


class Memory:
    """One array argument.

    elements: 1-D view of everything between its lowest and its highest element.
    origin: the address of elements[0].
    bytes: the same memory as uint8.
    """

    def __init__(self, number: int, name: str, array: np.ndarray):
        item = array.itemsize
        require(not any(s % item for s, n in zip(array.strides, array.shape) if n > 1),
                "{}: strides must be multiples of {} bytes, got {}", name, item, array.strides,
                error=BlockValueError)
        self.name, self.array, self.number = name, array, number
        self.steps = tuple([s // item for s in array.strides])
        self.address = number << OWNER_SHIFT
        reach = [(n - 1) * s for n, s in zip(array.shape, self.steps)]
        self.origin = self.address + (sum([r for r in reach if r < 0]) if array.size else 0)
        self.elements = array.reshape(-1) if array.flags.c_contiguous else _hull(array, reach)
        self.bytes = self.elements.view(np.uint8)

    @property
    def is_packed(self) -> bool:
        """Whether every offset between the lowest and the highest is one of an element."""
        return self.elements.size == self.array.size

    def view(self, address: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
        """The elements at address + sum(steps[axis] * index[axis]), which are all inside."""
        item = self.array.itemsize
        return np.ndarray(shape, self.elements.dtype, self.bytes, (address - self.origin) * item,
                          [step * item for step in steps])

    def contains(self, addresses: np.ndarray) -> np.ndarray:
        """A bool for each address: is it an element of the array, and not in a gap between rows?"""
        offsets = addresses - self.origin
        inside = (offsets >= 0) & (offsets < self.elements.size)
        if self.is_packed or self._index_axes is None:
            return inside
        rest = np.where(inside, offsets, 0)
        for axis in self._index_axes:
            index, rest = np.divmod(rest, abs(self.steps[axis]))
            inside &= index < self.array.shape[axis]
        return inside & (rest == 0)

    def index(self, address: int) -> tuple[int, ...] | None:
        """The index an address would have if the first axis were long enough; None if none."""
        if self._index_axes is None or any(s < 0 for s in self.steps):
            return None
        rest, found = address - self.address, [0] * len(self.steps)
        for axis in self._index_axes:
            found[axis], rest = divmod(rest, self.steps[axis])
        return None if rest else tuple(found)

    @cached_property
    def _index_axes(self) -> list[int] | None:
        """Axes of extent above 1, the longest stride first; None where elements may overlap."""
        axes = [a for a, n in enumerate(self.array.shape) if n > 1]
        axes.sort(key=lambda a: -abs(self.steps[a]))
        reach = 0
        for axis in reversed(axes):
            if abs(self.steps[axis]) <= reach:
                return None
            reach += abs(self.steps[axis]) * (self.array.shape[axis] - 1)
        return axes


def _hull(array: np.ndarray, reach: list[int]) -> np.ndarray:
    """Everything between the lowest and the highest element, 1-D.

    reach: how far each axis extends, in elements, of either sign.
    """
    forward = array[(*(slice(None, None, -1 if r < 0 else 1) for r in reach), ...)]
    size = sum(map(abs, reach)) + 1 if array.size else 0
    # as unsigned integers: NumPy cannot describe floats of 8 bits
    elements = np.lib.stride_tricks.as_strided(
        forward.view(f"u{array.itemsize}"), (size,), (array.itemsize,),
        writeable=array.flags.writeable)
    return elements.view(array.dtype)


def bind(fn: Function, arguments: Mapping[str, object]) -> tuple[list[np.ndarray], list[Memory]]:
    """The value of each parameter, of shape (1,), and the arrays among the arguments.

    Errors: BlockTypeError when an argument is missing or an array's dtype is not the
    parameter's; BlockValueError when a scalar does not fit its parameter.
    """
    memories: dict[str, Memory] = {}
    for name, argument in arguments.items():
        if isinstance(argument, np.ndarray):
            memories[name] = Memory(len(memories) + 1, name, argument)
    values = []
    for parameter, value in zip(fn.parameters, fn.body.args, strict=True):
        require(parameter.argument in arguments, "{}: argument {} is missing", fn.name,
                parameter.argument)
        values.append(_bound(parameter, value.type, arguments[parameter.argument],
                             memories.get(parameter.argument)))
    return values, list(memories.values())


def _bound(parameter: Parameter, wanted: TileType, argument: object,
           memory: Memory | None) -> np.ndarray:
    if parameter.kind == "value":
        return _scalar(parameter.argument, wanted, argument)
    require(memory is not None, "{}: must be an array, got {}", parameter.argument,
            type(argument).__name__)
    if parameter.kind == "extent":
        return np.array([memory.array.shape[parameter.axis]]).astype(wanted.dtype.numpy)
    if parameter.kind == "stride":
        return np.array([memory.steps[parameter.axis]]).astype(wanted.dtype.numpy)
    given = dtype_of(memory.array.dtype)
    require(given == wanted.dtype.pointee, "{}: must be an array of {}, got {}",
            parameter.argument, wanted.dtype.pointee, given)
    return np.array([memory.address])


def _scalar(name: str, wanted: TileType, argument: object) -> np.ndarray:
    dtype = wanted.dtype
    if dtype.is_integer:
        require(dtype.minimum <= int(argument) <= dtype.maximum, "{}: must fit {}, got {}", name,
                dtype, argument, error=BlockValueError)
    return np.array([argument]).astype(dtype.numpy)


