"""Thread block clusters: barrier.cluster, mapa, getctarank."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.instructions.barrier import block_barrier, together
from blocknumba.emulator.launch import CLUSTER_RANK_SHIFT
from blocknumba.emulator.syntax import Register
from blocknumba.emulator.values import dtype_of

_SHARED_MASK = (1 << CLUSTER_RANK_SHIFT) - 1


def barrier(site: Site) -> Step:
    """barrier.cluster.arrive and barrier.cluster.wait; barrier.cta is the block's."""
    if not site.has("cluster"):
        return block_barrier(site)
    relaxed = site.has("relaxed")

    def arrive(cohort: Cohort) -> None:
        cohort.launch.cluster_barrier.arrive(cohort, relaxed)

    def wait(cohort: Cohort) -> bool:
        return cohort.launch.cluster_barrier.wait(cohort).begin(cohort)
    return together(arrive if site.has("arrive") else wait, site.pc, site.instruction.name)


def map_address(site: Site) -> Step:
    """mapa d, address, rank: the same offset in the shared memory of another block."""
    type_ = site.opcode[-1]
    dtype = dtype_of(type_)
    operand = site.operands[1]
    read = site.read(operand, type_) if isinstance(operand, Register) else site.address(operand)
    rank, write = site.read(site.operands[2], "u32"), site.write(site.operands[0], type_)

    def step(cohort: Cohort) -> None:
        address = read(cohort).astype(np.int64)
        window = address & ~np.int64(0xFFFFFFFF)
        own = address & _SHARED_MASK
        target = rank(cohort).astype(np.int64) << CLUSTER_RANK_SHIFT
        write(cohort, (window | own | target).astype(dtype))
    return step


def rank_of(site: Site) -> Step:
    """getctarank d, address: the rank of the block whose shared memory it is."""
    type_ = site.opcode[-1]
    return site.compute(lambda address: (address >> address.dtype.type(CLUSTER_RANK_SHIFT)
                                         & address.dtype.type(0xFF)).astype(np.uint32),
                        "u32", [type_])


TABLE: dict[str, Decoder] = {"barrier": barrier, "mapa": map_address, "getctarank": rank_of}
