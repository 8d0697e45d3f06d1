"""What the passes of the GPU-layout IR are told about a kernel's launch."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.registers import WARP_SIZE


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """Choices that do not depend on the target.

    num_warps: warps of a program, a power of two from 1 to 32.
    num_stages: tiles in flight in a pipelined loop.
    num_ctas: thread blocks of a cluster.
    arrays_are_disjoint: no two array arguments share memory (checked at launch).  Otherwise a store
        to one array is kept in order with accesses to every other one.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    arrays_are_disjoint: bool = False

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return self.num_warps * WARP_SIZE
