"""`KernelInterface`: the base of kernels, tuners and heuristics, and of others' launchers."""

from __future__ import annotations

import functools
from collections.abc import Callable

from blocknumba.triton.runtime.tensors import MockTensor


class KernelInterface:
    """Something that `kernel[grid](...)` launches, by its method run.

    Example:
    >>> @triton.jit
    ... def nothing(x):
    ...     pass
    >>> isinstance(nothing, triton.KernelInterface)
    True
    """

    __slots__ = ()

    def __class_getitem__(cls, _: object) -> type:
        """The class itself: type parameters mean nothing here."""
        return cls

    def run(self, *arguments: object, grid: object, warmup: bool, **keywords: object) -> object:
        """Launch, or with warmup only compile."""
        raise NotImplementedError("run: of a KernelInterface, which a subclass defines")

    def warmup(self, *arguments: object, grid: object, **keywords: object) -> object:
        """Compile without running anything; dtypes of Torch may stand for tensors."""
        return self.run(*map(MockTensor.wrap_dtype, arguments), grid=grid, warmup=True, **keywords)

    def __getitem__(self, grid: object) -> Callable[..., object]:
        """`kernel[grid]`: a function that launches."""
        return functools.partial(self.run, grid=grid, warmup=False)

    __iter__ = None  # as of kernels
