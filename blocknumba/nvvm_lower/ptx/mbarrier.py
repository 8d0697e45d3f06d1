"""Inline PTX of mbarriers: barriers in shared memory that count arrivals and bytes."""

from __future__ import annotations

from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.ptx.memory import SHARED_ADDRESS
from blocknumba.nvvm_lower.ptx.warp import ALL_LANES
from blocknumba.nvvm_lower.target import Capability

SIZE_BYTES = 8  # PTX ISA, "Size and alignment of mbarrier object"
ELECT = f"elect.sync _|p, {ALL_LANES};"  # p holds in one lane of a whole warp


def _assembly(name: str, text: str, *operands: str,
              needs: Capability | None = Capability.MBARRIER) -> Assembly:
    return Assembly(name, text, (), operands, "mbarrier", needs=needs, has_effect=True,
                    touches_memory=True, converges=True)


@cache
def initialize(copies: int, arrivals: int) -> Assembly:
    """Initialize mbarriers, one after the other, whose phases end after so many arrivals.

    Operands: address, predicate.
    """
    each = " ".join(f"@p mbarrier.init.shared::cta.b64 [$0+{SIZE_BYTES * i}], {arrivals};"
                    for i in range(copies))
    return _assembly(f"mbarrier.init.{copies}.{arrivals}",
                     f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; {each} }}", SHARED_ADDRESS, "i32",
                     needs=None)


@cache
def invalidate(copies: int) -> Assembly:
    """The memory of mbarriers, one after the other, may hold something else again.

    Operands: address, predicate.
    """
    each = " ".join(f"@p mbarrier.inval.shared::cta.b64 [$0+{SIZE_BYTES * i}];"
                    for i in range(copies))
    return _assembly(f"mbarrier.inval.{copies}",
                     f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; {each} }}", SHARED_ADDRESS, "i32",
                     needs=None)


# Before a barrier of the threads: all threads, and TMA, see the new mbarriers.
READY = _assembly("mbarrier.ready",
                  "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;")
# Wait until the phase of the parity in the second operand is over.
WAIT = _assembly("mbarrier.wait", "{ .reg .pred p; "
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra again; }",
                 SHARED_ADDRESS, "i32")


@cache
def arrive(conditional: bool) -> Assembly:
    """One arrival of a whole warp, after all earlier accesses of its lanes.

    Operands: address, and if conditional the predicate, the same in all lanes.
    """
    condition = " .reg .pred q; setp.ne.b32 q, $1, 0; and.pred p, p, q;" if conditional else ""
    text = (f"{{ .reg .pred p; bar.warp.sync {ALL_LANES}; {ELECT}{condition} "
            "@p mbarrier.arrive.shared::cta.b64 _, [$0]; }")
    return _assembly("mbarrier.arrive" + ".if" * conditional, text, SHARED_ADDRESS,
                     *["i32"] * conditional)


@cache
def arrive_in_all(blocks: int, conditional: bool) -> Assembly:
    """One arrival of a whole warp at the same shared address in each block of a cluster.

    Lane i arrives in the block of rank i.  Operands as of arrive.  It lacks .release.cluster, which
    would wait for all of the warp's accesses to global memory: data that was read is in registers,
    and the warp writes nothing that the other blocks read.
    """
    condition = " setp.ne.b32 q, $1, 0; and.pred p, p, q;" if conditional else ""
    text = (f"{{ .reg .pred p, q; .reg .b32 lane, there; bar.warp.sync {ALL_LANES}; "
            f"mov.u32 lane, %laneid; setp.lt.u32 p, lane, {blocks};{condition} "
            "@p mapa.shared::cluster.u32 there, $0, lane; "
            "@p mbarrier.arrive.shared::cluster.b64 _, [there]; }")
    return _assembly(f"mbarrier.arrive.{blocks}" + ".if" * conditional, text, SHARED_ADDRESS,
                     *["i32"] * conditional, needs=Capability.CLUSTER)


@cache
def expect(size_bytes: int) -> Assembly:
    """One arrival of a whole warp; the phase ends only after so many more bytes have come.

    Operand: address.
    """
    return _assembly(f"mbarrier.expect.{size_bytes}", f"{{ .reg .pred p; {ELECT} @p "
                     f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {size_bytes}; }}",
                     SHARED_ADDRESS)


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    return [initialize(3, 1), invalidate(3), READY, WAIT, arrive(True), arrive(False),
            arrive_in_all(2, True), arrive_in_all(4, False), expect(16384)]
