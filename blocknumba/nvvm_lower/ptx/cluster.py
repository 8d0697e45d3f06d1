"""Inline PTX of thread block clusters: the blocks that one program is spread over."""

from __future__ import annotations

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.target import Capability

# Which block of the cluster this is; clusters lie along x.
RANK = Assembly("cluster.rank", "mov.u32 $0, %cluster_ctarank;", ("i32",), (),
                "%cluster_ctarank", needs=Capability.CLUSTER)
# All threads of the cluster that have not ended have come here, and each sees what others did.
BARRIER = Assembly("cluster.barrier", "barrier.cluster.arrive.release.aligned; "
                   "barrier.cluster.wait.acquire.aligned;", (), (), "barrier.cluster",
                   needs=Capability.CLUSTER, has_effect=True, touches_memory=True, converges=True)


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    return [RANK, BARRIER]
