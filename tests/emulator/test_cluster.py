"""Blocks of a cluster reach each other's shared memory, in order."""

import numpy as np
import pytest
from ptx import module, run

from blocknumba.emulator import (
    AccessError,
    DeadlockError,
    Module,
    RaceError,
    SynchronizationError,
    TensorMap,
)

_SHARED = ".shared .align 1024 .b8 buffer[4096];\n.shared .align 8 .b64 barrier;\n"
_CLUSTER = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
# Each thread writes to its own word of the next block, and reads what the other block wrote here.
_SEND = """mov.u32 %r2, buffer; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1;
    mad.lo.u32 %r5, %r1, 4, %r2; mapa.shared::cluster.u32 %r6, %r5, %r4;
    mad.lo.u32 %r7, %r3, 100, %r1; st.shared::cluster.b32 [%r6], %r7;"""
_RECEIVE = """ld.shared.b32 %r8, [%r5]; mov.u32 %r9, %ctaid.x; mov.u32 %r10, %ntid.x;
    mad.lo.u32 %r11, %r9, %r10, %r1; mad.wide.u32 %rd9, %r11, 4, %rd1;
    st.global.b32 [%rd9], %r8;"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_block_reads_what_its_neighbour_sent(seed):
    output = np.zeros((4, 64), np.int32)
    run(f"{_SEND} {_CLUSTER} {_RECEIVE}", output, grid=4, block=64, cluster=2,
        variables=_SHARED, seed=seed)
    assert output.tolist() == [[100 * (1 - block % 2) + t for t in range(64)] for block in range(4)]


def test_a_removed_cluster_barrier_is_a_race():
    with pytest.raises(RaceError, match="of rank"):
        run(f"{_SEND} bar.sync 0; {_RECEIVE}", np.zeros((2, 64), np.int32), grid=2, block=64,
            cluster=2, variables=_SHARED)


def test_the_directive_sets_the_size_of_the_cluster():
    output = np.zeros(4, np.int32)
    run("""mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, %clusterid.x; mad.lo.u32 %r2, %r2, 10, %r3;
        mov.u32 %r4, %ctaid.x; mad.wide.u32 %rd9, %r4, 4, %rd1; st.global.b32 [%rd9], %r2;""",
        output, grid=4, block=1, directives=".reqnctapercluster 2, 1, 1")
    assert output.tolist() == [20, 20, 21, 21]


def test_a_rank_that_the_cluster_does_not_have_is_found():
    with pytest.raises(AccessError, match="rank 2, accepted 0 to 1"):
        run("mov.u32 %r2, buffer; mapa.shared::cluster.u32 %r3, %r2, 2; "
            "st.shared::cluster.b32 [%r3], %r1;", grid=2, block=1, cluster=2, variables=_SHARED)


def test_a_block_that_ended_cannot_be_reached():
    leave = "mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r3, 1; @%p1 exit;"
    wait = "mov.u32 %r12, 0; L: nanosleep.u32 9; add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 9;" \
           "@%p2 bra L;"
    with pytest.raises(AccessError, match="has ended"):
        run(f"{leave} {wait} {_SEND}", grid=2, block=32, cluster=2, variables=_SHARED)


def test_warps_that_ended_do_not_hold_up_the_others_of_the_cluster():
    # Source: PTX ISA, "exit"
    run(f"setp.lt.u32 %p1, %r1, 32; @%p1 exit; {_CLUSTER}", grid=4, block=96, cluster=2)


def test_arriving_twice_without_a_wait_is_found():
    with pytest.raises(SynchronizationError, match="arrives twice"):
        run("barrier.cluster.arrive.release.aligned; barrier.cluster.arrive.release.aligned;",
            grid=2, block=32, cluster=2)


def test_a_block_that_never_arrives_is_a_deadlock():
    with pytest.raises(DeadlockError, match="barrier.cluster, 1 of 2 warps there"):
        run(f"""mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r3, 0; @%p1 bra A; bar.sync 1, 64;
            A: {_CLUSTER}""", grid=2, block=32, cluster=2)


def test_a_remote_arrival_completes_a_phase():
    run(f"""mov.u32 %r20, barrier; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, %cluster_ctarank;
        @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; {_CLUSTER} xor.b32 %r4, %r3, 1;
        mapa.shared::cluster.u32 %r6, %r20, %r4;
        @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
        {{ .reg .pred q; L: mbarrier.try_wait.parity.shared::cta.b64 q, [%r20], 0; @q bra D; bra L;
        D: }} {_CLUSTER}""", grid=2, block=32, cluster=2, variables=_SHARED)


def test_a_multicast_reaches_every_block_and_its_mbarrier():
    source = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)
    output = np.zeros((2, 32), np.float32)
    body = f"""mov.u32 %r20, barrier; mov.u32 %r21, buffer; setp.eq.u32 %p1, %r1, 0;
        mov.u32 %r3, %cluster_ctarank; @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; {_CLUSTER}
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 1024;
        setp.eq.and.u32 %p2, %r3, 0, %p1; mov.b16 %h1, 3;
        @%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\
.multicast::cluster [%r21], [%rd1, {{0, 0}}], [%r20], %h1;
        {{ .reg .pred q; L: mbarrier.try_wait.parity.shared::cta.b64 q, [%r20], 0; @q bra D; bra L;
        D: }} mad.lo.u32 %r5, %r1, 4, %r21; ld.shared.f32 %f1, [%r5+128];
        mad.lo.u32 %r6, %r3, 32, %r1; mad.wide.u32 %rd9, %r6, 4, %rd2; st.global.f32 [%rd9], %f1;
        {_CLUSTER}"""
    text = module(body, 2, _SHARED).replace(
        ".param .u64 p0", ".param .align 64 .b8 p0[128]").replace(
        "ld.param.u64 %rd1, [p0];", "mov.b64 %rd1, p0; cvta.param.u64 %rd1, %rd1;")
    Module.parse(text).launch("k", 2, 32, [TensorMap(source, (8, 32)), output], cluster=2)
    assert output.tolist() == [source[1].tolist()] * 2
