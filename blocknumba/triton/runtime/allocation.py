"""`triton.set_allocator`: memory for kernels that need a workspace, as none of ours does."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.errors import require


def set_allocator(allocator: Callable[[int, int, int | None], object] | None) -> None:
    """Accept (size in bytes, alignment in bytes, stream) -> buffer, which is never called.

    Kernels of blocknumba ask for no workspace: descriptors are in their registers.
    Errors: BlockTypeError for what cannot be called.

    Example:
    >>> triton.set_allocator(lambda size, alignment, stream: np.empty(size, np.uint8)) is None
    True
    """
    require(allocator is None or callable(allocator),
            "set_allocator: given {!r}, accepted a function", allocator)
