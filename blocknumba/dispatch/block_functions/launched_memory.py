"""Dynamic shared memory of block functions: launches of the kernels that call them give it.

    0               arrays of the caller          what the block functions need
    |---------------|.............................|------------------------------|
                    what the user's launch gives  the rest is added here

numba-cuda compiles a kernel once for launches with any dynamic shared memory, and does not let code
ask for some, so its launches are changed: those of kernels with block functions ask for more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from numba.cuda import LTOIR
from numba.cuda.dispatcher import _Kernel

from blocknumba.dispatch.launch.call import target_of
from blocknumba.dispatch.launch.driver import require_driver
from blocknumba.errors import ResourceError, require
from blocknumba.nvvm_lower.emitter import SHARED_ALIGNMENT
from blocknumba.nvvm_lower.target import Target


class LinkedCode(LTOIR):
    """The LTO IR of a block function.  dynamic_bytes: that it needs; is_granted: as of _Needs."""

    dynamic_bytes, is_granted = 0, False


@dataclass(eq=False, slots=True)
class _Needs:
    """Needs of the block functions of one kernel; each has the same memory in its turn.

    own_bytes: of the greatest.
    is_granted: the caller promised what its launches give, and has no dynamic arrays of its own.
    allowed: per module that was loaded, what its kernels may ask for.
    """

    own_bytes: int
    is_granted: bool
    allowed: dict[int, int] = field(default_factory=dict)

    def total(self, given: int) -> int:
        """Dynamic shared memory of a launch that the user gives some."""
        if self.is_granted:
            return max(given, self.own_bytes)
        return -(-given // SHARED_ALIGNMENT) * SHARED_ALIGNMENT + self.own_bytes

    def allow(self, function: object, total: int) -> None:
        """Let a loaded kernel ask for more than the 48 KiB of old.

        Errors: ResourceError for more than the GPU has.
        """
        module = int(function.module.handle)
        if total <= max(Target.static_shared_bytes, self.allowed.get(module, 0)):
            return
        driver = require_driver("block_function")
        target = target_of(driver, driver.current_device())
        others = function.attrs.shared + total - self.own_bytes
        present = target.shared_bytes_per_block
        require(others + self.own_bytes <= present, "block function: needs {} bytes of shared "
                "memory, beside {} of arrays of the kernel that calls it, accepted {} together",
                self.own_bytes, others, present, error=ResourceError,
                hint="use smaller tiles, or fewer num_stages")
        driver.allow_dynamic_shared_in(module, total)
        self.allowed[module] = total


_NEEDS: WeakKeyDictionary[_Kernel, _Needs | None] = WeakKeyDictionary()


def _needs(kernel: _Kernel) -> _Needs | None:
    if kernel not in _NEEDS:
        library = kernel._codelibrary
        # texts of block functions (CachedText) and LinkedCode say so, what else is there does not
        codes = [each for each in (*library.llvm_strs, *library._linking_files)
                 if getattr(each, "dynamic_bytes", 0)]
        _NEEDS[kernel] = _Needs(max(each.dynamic_bytes for each in codes), any(
            each.is_granted for each in codes)) if codes else None
    return _NEEDS[kernel]


# numba-cuda's own
_LAUNCH, _BLOCKS = _Kernel.launch, _Kernel.max_cooperative_grid_blocks


@functools.cache
def give_at_launches() -> None:
    """From now on launches of kernels give the block functions in them what they need."""
    _Kernel.launch = _giving(_LAUNCH)
    _Kernel.max_cooperative_grid_blocks = _counting(_BLOCKS)


def _giving(launch: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(launch)
    def launch_with_shared_memory(self, args, griddim, blockdim, stream=0, sharedmem=0):
        needs = _needs(self)
        if needs is not None:
            sharedmem = needs.total(sharedmem)
            needs.allow(self._codelibrary.get_cufunc(), sharedmem)
        return launch(self, args, griddim, blockdim, stream, sharedmem)
    return launch_with_shared_memory


def _counting(blocks: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(blocks)
    def blocks_with_shared_memory(self, blockdim, dynsmemsize=0):
        needs = _needs(self)
        if needs is not None:
            dynsmemsize = needs.total(dynsmemsize)
            needs.allow(self._codelibrary.get_cufunc(), dynsmemsize)
        return blocks(self, blockdim, dynsmemsize)
    return blocks_with_shared_memory
