"""Copies of arrays to run a kernel on again and again, while the arrays stay as they are."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from blocknumba.dispatch.launch.arrays import ArrayFacts
from blocknumba.dispatch.launch.driver import Driver, host_pointer
from blocknumba.dispatch.launch.staging import PAGE, Range, merged_ranges
from blocknumba.errors import LaunchError


class HostMemory:
    """Where scratch copies for the CPU are.

    driver: copies from device arrays; None where there are none.
    """

    def __init__(self, driver: Driver | None, stream: int):
        self._driver, self._stream = driver, stream
        self._blocks: dict[int, np.ndarray] = {}

    def allocate(self, size_bytes: int) -> int:
        """The address of a multiple of PAGE."""
        block = np.empty(size_bytes + PAGE, np.uint8)
        address = host_pointer(block) + -host_pointer(block) % PAGE
        self._blocks[address] = block
        return address

    def copy(self, target: int, source: int, size_bytes: int, device: int | None) -> None:
        """Copy from host memory, or from that of a device."""
        if device is None:
            ctypes.memmove(target, source, size_bytes)
            return
        self._driver.copy_to_host(target, source, size_bytes, self._stream)
        self._driver.synchronize(self._stream)

    def clear(self, target: int, size_bytes: int) -> None:
        """Set bytes to 0."""
        ctypes.memset(target, 0, size_bytes)

    def owner(self, allocation: int) -> object:
        """What keeps an allocation alive."""
        return self._blocks[allocation]

    def free(self) -> None:
        """Give everything back."""
        self._blocks.clear()


class DeviceMemory:
    """Where scratch copies for a GPU are, in the order of a stream."""

    def __init__(self, driver: Driver, stream: int):
        self._driver, self._stream = driver, stream
        self._allocations: list[int] = []

    def allocate(self, size_bytes: int) -> int:
        """The address of a multiple of PAGE."""
        self._allocations.append(self._driver.allocate(size_bytes, self._stream))
        return self._allocations[-1]

    def copy(self, target: int, source: int, size_bytes: int, device: int | None) -> None:
        """Copy from host memory, or from that of a device."""
        if device is None:
            self._driver.copy_to_device(target, source, size_bytes, self._stream)
        else:
            self._driver.copy_on_device(target, source, size_bytes, self._stream)

    def clear(self, target: int, size_bytes: int) -> None:
        """Set bytes to 0."""
        self._driver.clear(target, size_bytes, self._stream)

    def owner(self, _: int) -> object:
        """Nothing: the allocation lives until it is freed."""
        return None

    def free(self) -> None:
        """Give everything back once the stream gets there."""
        for allocation in self._allocations:
            self._driver.free(allocation, self._stream)


class Scratch:
    """The arrays of one call with copies instead of those that must stay as they are.

    Copied are the arrays that the kernel stores to, those that share memory with them, and those
    that are not where the kernel runs.  Copies overlap as the arrays do, and keep their strides
    and the alignment of their addresses, so that the same code runs on them.

    device: where the kernel runs; None for the CPU.
    """

    def __init__(self, memory: HostMemory | DeviceMemory, arrays: Mapping[str, ArrayFacts],
                 stored: frozenset[str], device: int | None):
        self._memory, self._arrays, self._device = memory, arrays, device
        self._copied: list[tuple[Range, int | None]] = []
        for place in {facts.device for facts in arrays.values()}:
            there = {name: facts for name, facts in arrays.items() if facts.device == place}
            self._copied += [(part, place) for part in merged_ranges(there, stored)
                             if place != device or part.stored]

    def __enter__(self) -> Scratch:
        try:
            self._facts = dict(self._arrays)
            for part, place in self._copied:
                self._copy(part, place)
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self._memory.free()
            return
        with contextlib.suppress(LaunchError):  # the first error is the one to show
            self._memory.free()

    @property
    def facts(self) -> dict[str, ArrayFacts]:
        """All arrays, copied or not."""
        return self._facts

    def restore(self, names: Iterable[str]) -> None:
        """Give copied arrays the values of the originals again."""
        names = frozenset(names)
        for part, place in self._copied:
            if names.intersection(part.names) and part.high > part.low:
                self._memory.copy(part.copy, part.low, part.high - part.low, place)

    def clear(self, names: Iterable[str]) -> None:
        """Set copied arrays, and what is between their elements, to 0."""
        copied = {name for part, _ in self._copied for name in part.names}
        for name in copied.intersection(names):
            low, high = self._facts[name].byte_range()
            self._memory.clear(low, high - low)

    def _copy(self, part: Range, place: int | None) -> None:
        size, owner = part.high - part.low, None
        if size:
            offset = part.low % PAGE
            allocation = self._memory.allocate(size + offset)
            owner = self._memory.owner(allocation)
            part.copy = allocation + offset
            self._memory.copy(part.copy, part.low, size, place)
        for name in part.names:
            facts = self._arrays[name]
            self._facts[name] = replace(facts, device=self._device, readonly=False, owner=owner,
                                        pointer=part.copy + facts.pointer - part.low)
