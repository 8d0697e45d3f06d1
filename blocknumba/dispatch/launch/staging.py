"""Staging copies: of host arrays on the GPU, and of device arrays on the host.

Host arrays whose elements are not aligned, such as views of messages that were received, are copied
to where they are, on the CPU too.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.dispatch.launch.arrays import ArrayInfo, host_view
from blocknumba.dispatch.launch.driver import Driver, host_pointer
from blocknumba.errors import BlockValueError, LaunchError, require

PAGE = 256  # cuMemAlloc's alignment, kept by copies: the array's code fits the copy


@dataclass(slots=True)
class Range:
    """Bytes [low, high) of memory, which several arrays may share.

    names: the arguments whose arrays are in it.
    stored: bytes that a kernel may store to, as (low, high); None when there are none.
    phase: address of the first byte of a copy, modulo PAGE: that of the original, but for elements
        that are not aligned.
    copy: address of the first byte of the copy.
    """

    low: int
    high: int
    names: list[str]
    stored: tuple[int, int] | None = None
    phase: int = 0
    copy: int = 0


class DeviceCopies:
    """Host arrays copied to the GPU for one launch, and back when the kernel stores to them.

    Arrays that overlap, or the same array given twice, share one copy, so that the kernel sees
    the aliasing that the host has.  Strides and the alignment of addresses are kept.
    """

    def __init__(self, driver: Driver, arrays: Mapping[str, ArrayInfo], stored: frozenset[str],
                 device: int, stream: int):
        self._driver, self._device, self._stream = driver, device, stream
        self._arrays = {name: info for name, info in arrays.items() if info.device is None}
        self._ranges = merged_ranges(self._arrays, stored)
        self._allocations: list[int] = []

    def __enter__(self) -> dict[str, ArrayInfo]:
        """The arguments, as device arrays."""
        copies: dict[str, ArrayInfo] = {}
        try:
            for range_ in self._ranges:
                self._copy_in(range_)
                for name in range_.names:
                    info = self._arrays[name]
                    copies[name] = replace(info, device=self._device,
                                           pointer=range_.copy + info.pointer - range_.low)
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return copies

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self._copy_back()  # where this fails the context is lost, and the memory with it
            self._free()
            return
        with contextlib.suppress(LaunchError):  # the first error is the one to show
            self._free()

    def _copy_in(self, range_: Range) -> None:
        size = range_.high - range_.low
        if not size:
            return  # an empty array: its copy is at the null pointer
        allocation = self._driver.allocate(size + range_.phase, self._stream)
        self._allocations.append(allocation)
        range_.copy = allocation + range_.phase
        self._driver.copy_to_device(range_.copy, range_.low, size, self._stream)

    def _copy_back(self) -> None:
        stored = [range_ for range_ in self._ranges if range_.stored]
        for range_ in stored:
            low, high = range_.stored
            self._driver.copy_to_host(low, range_.copy + low - range_.low, high - low, self._stream)
        if self._ranges:
            self._driver.synchronize(self._stream)

    def _free(self) -> None:
        for allocation in self._allocations:
            self._driver.free(allocation, self._stream)


class HostCopies:
    """Arrays copied on the host, for a run on the CPU, and back when it stores to them.

    driver: copies from the GPU; None for arrays of the host.
    """

    def __init__(self, driver: Driver | None, arrays: Mapping[str, ArrayInfo],
                 stored: frozenset[str], stream: int | None):
        self._driver, self._stream, self._arrays = driver, stream, arrays
        self._ranges = merged_ranges(self._arrays, stored)
        self._memory: list[np.ndarray] = []

    def __enter__(self) -> dict[str, np.ndarray]:
        """The arguments, as NumPy arrays."""
        views: dict[str, np.ndarray] = {}
        for range_ in self._ranges:
            memory = np.empty(range_.high - range_.low + PAGE, np.uint8)
            range_.copy = host_pointer(memory) + (range_.phase - host_pointer(memory)) % PAGE
            self._memory.append(memory)
            self._copy(range_.copy, range_.low, range_.high - range_.low)
            for name in range_.names:
                info = self._arrays[name]
                views[name] = host_view(info, range_.copy + info.pointer - range_.low, memory)
        self._wait()
        return views

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            return
        for range_ in self._ranges:
            if range_.stored:
                low, high = range_.stored
                self._copy(low, range_.copy + low - range_.low, high - low, back=True)
        self._wait()

    def _copy(self, target: int, source: int, size: int, back: bool = False) -> None:
        if self._driver is None:
            ctypes.memmove(target, source, size)
        elif size:
            copy = self._driver.copy_to_device if back else self._driver.copy_to_host
            copy(target, source, size, self._stream)

    def _wait(self) -> None:
        if self._driver is not None:
            self._driver.synchronize(self._stream)


def merged_ranges(arrays: Mapping[str, ArrayInfo], stored: frozenset[str]) -> list[Range]:
    """The disjoint ranges of bytes that the arrays are in, in order of address.

    Errors: BlockValueError for arrays that overlap, of which no copy has all elements aligned.
    """
    ranges: list[Range] = []
    whole = {name: info for name, info in arrays.items() if info.size}
    for name, info in sorted(whole.items(), key=lambda item: item[1].byte_range()):
        low, high = info.byte_range()
        if not ranges or low >= ranges[-1].high:
            ranges.append(Range(low, high, []))
        range_ = ranges[-1]
        range_.high = max(range_.high, high)
        range_.names.append(name)
        if name in stored:
            before = range_.stored or (low, high)
            range_.stored = min(before[0], low), max(before[1], high)
    for range_ in ranges:
        range_.phase = _phase(range_, arrays)
    empty = [Range(info.pointer, info.pointer, [name])
             for name, info in arrays.items() if name not in whole]
    return ranges + empty


def _phase(range_: Range, arrays: Mapping[str, ArrayInfo]) -> int:
    infos = [arrays[name] for name in range_.names]
    widest = max(infos, key=lambda info: info.dtype.bytes)
    shift = widest.pointer % widest.dtype.bytes
    for name, info in zip(range_.names, infos):
        require((info.pointer - shift) % info.dtype.bytes == 0,
                "argument {}: given {} elements at address {:#x} that overlap {} elements at {:#x}"
                ", accepted arrays that can be aligned together", name, info.dtype, info.pointer,
                widest.dtype, widest.pointer, error=BlockValueError, hint="pass a copy")
    return (range_.low - shift) % PAGE
