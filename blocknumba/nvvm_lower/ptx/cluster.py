"""Inline PTX of thread block clusters: the blocks that one program is partitioned over."""

from __future__ import annotations

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.target import Capability

# Rank of this CTA in its cluster; clusters lie along x.
RANK = Assembly("cluster.rank", "mov.u32 $0, %cluster_ctarank;", ("i32",), (),
                "%cluster_ctarank", needs=Capability.CLUSTER)
# Barrier of all threads of the cluster that have not ended; each sees the writes of the others.
BARRIER = Assembly("cluster.barrier", "barrier.cluster.arrive.release.aligned; "
                   "barrier.cluster.wait.acquire.aligned;", (), (), "barrier.cluster",
                   needs=Capability.CLUSTER, has_effect=True, touches_memory=True, converges=True)


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    return [RANK, BARRIER]
