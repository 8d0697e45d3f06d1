"""Copies of arrays to run a kernel on again and again, while the arrays stay as they are."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.driver import Driver, host_pointer
from blocknumba.dispatch.launch.staging import PAGE, Range, merged_ranges
from blocknumba.errors import LaunchError


class HostMemory:
    """Memory of scratch copies for the CPU.

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
        """The object that keeps an allocation alive."""
        return self._blocks[allocation]

    def free(self) -> None:
        """Free everything."""
        self._blocks.clear()


class DeviceMemory:
    """Memory of scratch copies on a GPU, allocated and freed in the order of a stream."""

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
        """Free everything, in the order of the stream."""
        for allocation in self._allocations:
            self._driver.free(allocation, self._stream)


class Scratch:
    """The arrays of one call with copies instead of those that must stay as they are.

    Copied are the arrays that the kernel stores to, those that share memory with them, and those
    that are not where the kernel runs.  Copies overlap as the arrays do, and keep their strides
    and the alignment of their addresses, so that the same code runs on them.

    device: where the kernel runs; None for the CPU.
    """

    def __init__(self, memory: HostMemory | DeviceMemory, arrays: Mapping[str, ArrayInfo],
                 stored: frozenset[str], device: int | None):
        self._memory, self._arrays, self._device = memory, arrays, device
        self._copied: list[tuple[Range, int | None]] = []
        for array_device in {info.device for info in arrays.values()}:
            there = {name: info for name, info in arrays.items() if info.device == array_device}
            self._copied += [(range_, array_device) for range_ in merged_ranges(there, stored)
                             if array_device != device or range_.stored]

    def __enter__(self) -> Scratch:
        try:
            self._infos = dict(self._arrays)
            for range_, array_device in self._copied:
                self._copy(range_, array_device)
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
    def infos(self) -> dict[str, ArrayInfo]:
        """All arrays, copied or not."""
        return self._infos

    def restore(self, names: Iterable[str]) -> None:
        """Copy the values of the originals to copied arrays again."""
        names = frozenset(names)
        for range_, array_device in self._copied:
            if names.intersection(range_.names) and range_.high > range_.low:
                self._memory.copy(range_.copy, range_.low, range_.high - range_.low, array_device)

    def clear(self, names: Iterable[str]) -> None:
        """Set copied arrays, and what is between their elements, to 0."""
        copied = {name for range_, _ in self._copied for name in range_.names}
        for name in copied.intersection(names):
            low, high = self._infos[name].byte_range()
            self._memory.clear(low, high - low)

    def _copy(self, range_: Range, array_device: int | None) -> None:
        size, owner = range_.high - range_.low, None
        if size:
            offset = range_.low % PAGE
            allocation = self._memory.allocate(size + offset)
            owner = self._memory.owner(allocation)
            range_.copy = allocation + offset
            self._memory.copy(range_.copy, range_.low, size, array_device)
        for name in range_.names:
            info = self._arrays[name]
            self._infos[name] = replace(info, device=self._device, readonly=False, owner=owner,
                                        pointer=range_.copy + info.pointer - range_.low)
