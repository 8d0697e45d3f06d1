"""Copies of arrays on the other side: host arrays on the GPU, device arrays on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.dispatch.launch.arrays import ArrayFacts, host_view
from blocknumba.dispatch.launch.driver import Driver, host_pointer
from blocknumba.errors import LaunchError

PAGE = 256  # cuMemAlloc's alignment, which copies keep: facts stay true of the copy


@dataclass(slots=True)
class Range:
    """Bytes [low, high) of memory that several arrays may share.

    names: the arguments within.
    stored: bytes that a kernel may store to, as (low, high); None when there are none.
    copy: address of the first byte of the copy.
    """

    low: int
    high: int
    names: list[str]
    stored: tuple[int, int] | None = None
    copy: int = 0


class DeviceCopies:
    """Host arrays copied to the GPU for one launch, and back when the kernel stores to them.

    Arrays that overlap, or the same array given twice, share one copy, so that the kernel sees
    the aliasing that the host has.  Strides and the alignment of addresses are kept.
    """

    def __init__(self, driver: Driver, arrays: Mapping[str, ArrayFacts], stored: frozenset[str],
                 device: int, stream: int):
        self._driver, self._device, self._stream = driver, device, stream
        self._arrays = {name: facts for name, facts in arrays.items() if facts.device is None}
        self._ranges = merged_ranges(self._arrays, stored)
        self._allocations: list[int] = []

    def __enter__(self) -> dict[str, ArrayFacts]:
        """The arguments, as device arrays."""
        copies: dict[str, ArrayFacts] = {}
        try:
            for part in self._ranges:
                self._copy_in(part)
                for name in part.names:
                    facts = self._arrays[name]
                    copies[name] = replace(facts, device=self._device,
                                           pointer=part.copy + facts.pointer - part.low)
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

    def _copy_in(self, part: Range) -> None:
        size = part.high - part.low
        if not size:
            return  # an empty array: its copy is at the null pointer
        offset = part.low % PAGE
        allocation = self._driver.allocate(size + offset, self._stream)
        self._allocations.append(allocation)
        part.copy = allocation + offset
        self._driver.copy_to_device(part.copy, part.low, size, self._stream)

    def _copy_back(self) -> None:
        stored = [part for part in self._ranges if part.stored]
        for part in stored:
            low, high = part.stored
            self._driver.copy_to_host(low, part.copy + low - part.low, high - low, self._stream)
        if self._ranges:
            self._driver.synchronize(self._stream)

    def _free(self) -> None:
        for allocation in self._allocations:
            self._driver.free(allocation, self._stream)


class HostCopies:
    """Device arrays copied to the host for a run on the CPU, and back when it stores to them."""

    def __init__(self, driver: Driver, arrays: Mapping[str, ArrayFacts], stored: frozenset[str],
                 stream: int):
        self._driver, self._stream = driver, stream
        self._arrays = {name: facts for name, facts in arrays.items() if facts.device is not None}
        self._ranges = merged_ranges(self._arrays, stored)
        self._memory: list[np.ndarray] = []

    def __enter__(self) -> dict[str, np.ndarray]:
        """The arguments, as NumPy arrays."""
        views: dict[str, np.ndarray] = {}
        for part in self._ranges:
            memory = np.empty(part.high - part.low + PAGE, np.uint8)
            part.copy = host_pointer(memory) + (part.low - host_pointer(memory)) % PAGE
            self._memory.append(memory)
            if part.high > part.low:
                self._driver.copy_to_host(part.copy, part.low, part.high - part.low, self._stream)
            for name in part.names:
                facts = self._arrays[name]
                views[name] = host_view(facts, part.copy + facts.pointer - part.low, memory)
        self._driver.synchronize(self._stream)
        return views

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            return
        for part in self._ranges:
            if part.stored:
                low, high = part.stored
                self._driver.copy_to_device(low, part.copy + low - part.low, high - low,
                                            self._stream)
        self._driver.synchronize(self._stream)


def merged_ranges(arrays: Mapping[str, ArrayFacts], stored: frozenset[str]) -> list[Range]:
    """The disjoint ranges of bytes that the arrays are in, in order of address."""
    ranges: list[Range] = []
    whole = {name: facts for name, facts in arrays.items() if facts.size}
    for name, facts in sorted(whole.items(), key=lambda item: item[1].byte_range()):
        low, high = facts.byte_range()
        if not ranges or low >= ranges[-1].high:
            ranges.append(Range(low, high, []))
        part = ranges[-1]
        part.high = max(part.high, high)
        part.names.append(name)
        if name in stored:
            before = part.stored or (low, high)
            part.stored = min(before[0], low), max(before[1], high)
    empty = [Range(facts.pointer, facts.pointer, [name])
             for name, facts in arrays.items() if name not in whole]
    return ranges + empty
