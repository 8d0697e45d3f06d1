"""Options of the passes of the GPU-layout IR: properties of the launch and of the target."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.registers import MAX_WARPS, WARP_SIZE

# The least of all targets: the defaults.  Source: the table in nvvm_lower/target.py.
MIN_FEATURES = frozenset(("cp_async", "mma"))
MIN_SHARED_BYTES = 99 * 1024
RESERVED_BYTES = 2048  # of shared memory, for barrier objects and small conversions


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """The properties of the launch and of the target that passes depend on.

    num_warps: warps of a program, a power of two from 1 to 32.
    num_stages: tiles in flight in a pipelined loop; None lets the passes choose.
    arrays_are_disjoint: no two array arguments share memory (checked at launch).  Otherwise a store
        to one array stays in order with accesses to all others.
    numbers_describe: extents and strides that are scalar arguments, or products of them, fit a
        tensor map of TMA (checked at launch).
    features: the capabilities of the target, by value.
    shared_bytes: the shared memory a block may use.
    num_ctas: the most blocks of a cluster that a program may be partitioned over.
    helpers: whether the caller's block may have warps beside the program's.
    """

    num_warps: int = 4
    num_stages: int | None = None
    arrays_are_disjoint: bool = False
    numbers_describe: bool = True
    features: frozenset[str] = MIN_FEATURES
    shared_bytes: int = MIN_SHARED_BYTES
    num_ctas: int = 1
    helpers: bool = True

    @property
    def producers(self) -> bool:
        """Whether warps beside the program's may fetch for it."""
        return self.helpers and self.num_warps < MAX_WARPS

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return self.num_warps * WARP_SIZE

    @property
    def room_bytes(self) -> int:
        """Shared memory for tiles."""
        return self.shared_bytes - RESERVED_BYTES
