"""The table of inline PTX: instructions that NVVM IR lacks, one module per family."""

from blocknumba.nvvm_lower.ptx import (
    arithmetic,
    async_copy,
    atomic,
    cluster,
    matrix,
    mbarrier,
    memory,
    tensor_map,
    tma,
    warp,
    wgmma,
)
from blocknumba.nvvm_lower.ptx.assembly import Assembly

FAMILIES = (arithmetic, async_copy, atomic, cluster, matrix, mbarrier, memory, tensor_map, tma,
            warp, wgmma)


def rows() -> list[Assembly]:
    """Every row of the table."""
    return [row for family in FAMILIES for row in family.rows()]
