"""What the passes of the GPU-layout IR are told about a kernel's launch and its target."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.registers import WARP_SIZE

# What every target can do and has: the defaults.  Source: the table in nvvm_lower/target.py.
MIN_FEATURES = frozenset(("cp_async", "mma"))
MIN_SHARED_BYTES = 99 * 1024
RESERVED_BYTES = 2048  # of shared memory, for barrier objects and small conversions


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """What depends on the launch and on the target.

    num_warps: warps of a program, a power of two from 1 to 32.
    num_stages: tiles in flight in a pipelined loop; None leaves it to the passes.
    arrays_are_disjoint: no two array arguments share memory (checked at launch).  Otherwise a store
        to one array is kept in order with accesses to every other one.
    numbers_describe: extents and strides that are numbers given to the kernel, or products, are
        such as the copy engine can be told of (checked at launch).
    features: what the target can do, as the values of the target's capabilities.
    shared_bytes: the shared memory a block may use.
    num_ctas: the most blocks that a program may be spread over.
    """

    num_warps: int = 4
    num_stages: int | None = None
    arrays_are_disjoint: bool = False
    numbers_describe: bool = True
    features: frozenset[str] = MIN_FEATURES
    shared_bytes: int = MIN_SHARED_BYTES
    num_ctas: int = 1

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return self.num_warps * WARP_SIZE

    @property
    def room_bytes(self) -> int:
        """Shared memory for tiles."""
        return self.shared_bytes - RESERVED_BYTES
