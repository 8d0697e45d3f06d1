"""Launches of Triton's kernels in many configurations, of which the fastest is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import triton
from measure import GpuTimer, fastest
from triton.errors import TritonError


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, called to be done.

    kernel: @triton.jit.  grid, arguments, options: of the launch.
    """

    kernel: object
    grid: tuple[int, ...]
    arguments: tuple
    options: Mapping[str, object] = field(default_factory=dict)

    def __call__(self) -> None:
        self.kernel[self.grid](*self.arguments, **self.options)

    def compile(self) -> None:
        """Compile it, in another thread if AsyncCompileMode says so."""
        self.kernel.run(*self.arguments, grid=self.grid, warmup=True, **self.options)

    def fits(self) -> bool:
        """Whether it can be launched: not if it needs too much, or if Triton cannot compile it."""
        try:
            self()
        except (TritonError, RuntimeError):  # the latter of a pass of the compiler that failed
            return False
        return True


def fastest_launch(launches: Sequence[Launch], timer: GpuTimer) -> Launch:
    """The launch of least time among those that fit."""
    with (ThreadPoolExecutor() as threads,
          triton.AsyncCompileMode(threads, ignore_errors=True)):
        for launch in launches:
            launch.compile()
    return fastest(filter(Launch.fits, launches), timer, rounds=5, repeats=2)
