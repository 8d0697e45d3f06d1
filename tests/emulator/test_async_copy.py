"""cp.async, bulk and tensor copies: what arrives, when it may be read, and what is missing."""

import numpy as np
import pytest
from ptx import module, run

from blocknumba.emulator import (
    AccessError,
    DeadlockError,
    Module,
    ProxyFenceError,
    RaceError,
    SynchronizationError,
    TensorMap,
)
from blocknumba.errors import BlockValueError

_SHARED = (".shared .align 1024 .b8 buffer[8192];\n.shared .align 1024 .b8 second[8192];\n"
           ".shared .align 8 .b64 barrier;\n")
_LEADER = "setp.eq.u32 %p1, %r1, 0;"
_INIT = f"""{_LEADER} mov.u32 %r20, barrier; mov.u32 %r21, buffer; mov.u32 %r22, second;
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; bar.sync 0;"""


def wait(parity, barrier="%r20"):
    """Wait for a phase of an mbarrier."""
    return (f"{{ .reg .pred q; L: mbarrier.try_wait.parity.shared::cta.b64 q, [{barrier}], "
            f"{parity}; @q bra D; bra L; D: }}")


def expect(size):
    return f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], {size};"


# ---- cp.async

_CP = """mov.u32 %r21, buffer; mad.lo.u32 %r2, %r1, 16, %r21; mad.wide.u32 %rd8, %r1, 16, %rd1;
    cp.async.cg.shared.global [%r2], [%rd8], 16; cp.async.commit_group;"""
# Reads the row of another warp's thread.
_READ = """xor.b32 %r3, %r1, 32; mad.lo.u32 %r4, %r3, 16, %r21;
    ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r4]; mad.wide.u32 %rd9, %r3, 16, %rd2;
    st.global.v4.b32 [%rd9], {%r5, %r6, %r7, %r8};"""


def test_cp_async_brings_bytes_after_its_wait_and_a_barrier():
    source, target = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    run(f"{_CP} cp.async.wait_group 0; bar.sync 0; {_READ}", source, target, block=64,
        variables=_SHARED)
    assert target.tolist() == source.tolist()


@pytest.mark.parametrize("order", ["bar.sync 0;", "cp.async.wait_group 1; bar.sync 0;",
                                   "cp.async.wait_group 0;"])
def test_cp_async_read_too_early_is_a_race(order):
    with pytest.raises(RaceError, match="cp.async"):
        run(f"{_CP} {order} {_READ}", np.zeros(256, np.int32), np.zeros(256, np.int32), block=64,
            variables=_SHARED)


def test_cp_async_into_what_is_still_read_is_a_race():
    with pytest.raises(RaceError, match="may still be reading"):
        run(f"{_CP} cp.async.wait_group 0; bar.sync 0; {_READ} {_CP}", np.zeros(256, np.int32),
            np.zeros(256, np.int32), block=64, variables=_SHARED)


@pytest.mark.parametrize("size, expected", [(16, [1, 2, 3, 4]), (8, [1, 2, 0, 0]), (0, [0] * 4)])
def test_cp_async_fills_with_zeros_behind_the_source(size, expected):
    source, target = np.int32([1, 2, 3, 4]), np.full(4, -1, np.int32)
    run(f"""mov.u32 %r21, buffer; mov.b32 %r3, {size};
        cp.async.cg.shared.global.L2::128B [%r21], [%rd1], 16, %r3; cp.async.wait_all;
        ld.shared.v4.b32 {{%r5, %r6, %r7, %r8}}, [%r21];
        st.global.v4.b32 [%rd2], {{%r5, %r6, %r7, %r8}};""", source, target, block=1,
        variables=_SHARED)
    assert target.tolist() == expected


def test_cp_async_can_arrive_on_an_mbarrier():
    source, target = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    run(f"""{_LEADER} mov.u32 %r20, barrier; @%p1 mbarrier.init.shared::cta.b64 [%r20], 64;
        bar.sync 0; {_CP} cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20]; {wait(0)} {_READ}
        """, source, target, block=64, variables=_SHARED)
    assert target.tolist() == source.tolist()


# ---- mbarriers

def test_arrivals_complete_a_phase():
    run(f"""{_LEADER} mov.u32 %r20, barrier; @%p1 mbarrier.init.shared::cta.b64 [%r20], 96;
        bar.sync 0; mbarrier.arrive.shared::cta.b64 %rd9, [%r20]; {wait(0)}
        mbarrier.arrive.shared::cta.b64 %rd9, [%r20]; {wait(1)}""", block=96, variables=_SHARED)


def test_an_mbarrier_orders_accesses():
    body = f"""{_LEADER} mov.u32 %r20, barrier; mov.u32 %r21, buffer;
        @%p1 mbarrier.init.shared::cta.b64 [%r20], 64; bar.sync 0;
        mad.lo.u32 %r2, %r1, 4, %r21; st.shared.b32 [%r2], %r1;
        ORDER xor.b32 %r3, %r1, 32; mad.lo.u32 %r4, %r3, 4, %r21; ld.shared.b32 %r5, [%r4];"""
    run(body.replace("ORDER", f"mbarrier.arrive.shared::cta.b64 _, [%r20]; {wait(0)}"), block=64,
        variables=_SHARED)
    with pytest.raises(RaceError):
        run(body.replace("ORDER", "mbarrier.arrive.shared::cta.b64 _, [%r20];"), block=64,
            variables=_SHARED, uninitialized=False)


@pytest.mark.parametrize("write", [
    "st.shared.b32 [%r20+4], %r1;", "@%p1 cp.async.ca.shared.global [%r20], [%rd1], 8;"])
def test_an_mbarrier_is_overwritten_after_its_end_only(write):
    body = f"""{_INIT} mbarrier.arrive.shared::cta.b64 _, [%r20]; {wait(0)} bar.sync 0;
        END bar.sync 0; {write} cp.async.wait_all;"""
    arrays = np.zeros(64, np.int32), np.zeros(64, np.int32)
    run(body.replace("END", "@%p1 mbarrier.inval.shared::cta.b64 [%r20];"), *arrays, block=1,
        variables=_SHARED)

    with pytest.raises(RaceError, match="an mbarrier, where an arrival may come later"):
        run(body.replace("END", ""), *arrays, block=1, variables=_SHARED)


def test_the_wrong_parity_is_a_deadlock_that_names_the_mbarrier():
    with pytest.raises(DeadlockError, match="parity 0.*phase 0 is under way: 1 of 1 arrivals"):
        run(f"{_INIT} {wait(0)}", block=64, variables=_SHARED)


@pytest.mark.parametrize("body, message", [
    ("mbarrier.arrive.shared::cta.b64 _, [%r20]; mbarrier.arrive.shared::cta.b64 _, [%r20+8];",
     "none is initialized"),
    ("mbarrier.arrive.shared::cta.b64 _, [%r20], 2;", "2 arrivals where 1 of 1 are pending"),
    ("@%p1 mbarrier.init.shared::cta.b64 [%r20], 0;", "count 0, accepted 1"),
])
def test_misuse_of_an_mbarrier_is_found(body, message):
    with pytest.raises(SynchronizationError, match=message):
        run(f"{_INIT} {body}", block=1,
            variables=_SHARED.replace("barrier;", "barrier;\n.shared .align 8 .b64 other;"))


def test_an_mbarrier_used_before_its_initialization_is_ordered_is_a_race():
    with pytest.raises(RaceError, match="mbarrier.init"):
        run(_INIT.replace("bar.sync 0;", "") + "mbarrier.arrive.shared::cta.b64 _, [%r20];",
            block=64, variables=_SHARED.replace("8192", "64"))


# ---- bulk copies

def test_a_bulk_copy_completes_on_its_mbarrier_and_goes_back_by_groups():
    source, target = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    run(f"""{_INIT} {expect(256)}
        @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r21], [%rd1], 256,
            [%r20];
        {wait(0)} mad.lo.u32 %r2, %r1, 4, %r21; ld.shared.b32 %r3, [%r2]; add.s32 %r3, %r3, 1;
        mad.lo.u32 %r4, %r1, 4, %r22; st.shared.b32 [%r4], %r3; fence.proxy.async.shared::cta;
        bar.sync 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r22], 256;
        @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;""", source, target,
        block=64, variables=_SHARED)
    assert target.tolist() == list(range(1, 65))


def test_a_bulk_reduction_adds_to_global_memory():
    target = np.arange(8, dtype=np.float32)
    run("""mov.u32 %r22, second; mad.lo.u32 %r4, %r1, 4, %r22; mov.b32 %f1, 0f3F800000;
        st.shared.f32 [%r4], %f1; fence.proxy.async.shared::cta; setp.eq.u32 %p1, %r1, 0;
        @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r22], 32;
        @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;""", target, block=8,
        variables=_SHARED)
    assert target.tolist() == list(range(1, 9))


# ---- tensor copies

def copy_box(source, target, box, start, to, swizzle=0, change="", **options):
    """Copy a box of one array to another through shared memory, by two tensor maps."""
    rank = source.ndim
    coordinates = ", ".join(str(one) for one in reversed(start))
    there = ", ".join(str(one) for one in reversed(to))
    size = int(np.prod(box)) * source.itemsize
    body = f"""{_INIT} {expect(size)}
        @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
            [%r21], [%rd1, {{{coordinates}}}], [%r20]; {wait(0)} {change}
        @%p1 cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group
            [%rd2, {{{there}}}], [%r21];
        @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"""
    text = module(body, 2, _SHARED)
    for index in range(2):
        text = text.replace(f".param .u64 p{index}", f".param .align 64 .b8 p{index}[128]")
        text = text.replace(f"ld.param.u64 %rd{index + 1}, [p{index}];",
                            f"mov.b64 %rd{index + 1}, p{index}; "
                            f"cvta.param.u64 %rd{index + 1}, %rd{index + 1};")
    maps = [TensorMap(source, box, swizzle), TensorMap(target, box, swizzle)]
    return Module.parse(text).launch("k", 1, 32, maps, **options)


@pytest.mark.parametrize("swizzle, columns", [(0, 64), (128, 32), (64, 16), (32, 8)])
def test_a_box_arrives_and_leaves_with_the_same_swizzle(swizzle, columns):
    source = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    target = np.zeros_like(source)
    copy_box(source, target, (16, columns), (8, 32), (0, 0), swizzle)
    expected = np.zeros_like(source)
    width = min(columns, 32)
    expected[:16, :width] = source[8:24, 32:32 + width]
    assert (target[:, :width] == expected[:, :width]).all()


@pytest.mark.parametrize("swizzle, columns, row, chunk, place", [
    (128, 32, 3, 2, 3 * 128 + (2 ^ 3) * 16), (128, 32, 9, 0, 9 * 128 + 16),
    (64, 16, 2, 1, 2 * 64 + (1 ^ 1) * 16), (64, 16, 6, 3, 6 * 64 + (3 ^ 3) * 16),
    (32, 8, 4, 1, 4 * 32 + (1 ^ 1) * 16),
])
def test_a_swizzle_moves_chunks_as_the_manual_says(swizzle, columns, row, chunk, place):
    source = np.arange(16 * columns, dtype=np.float32).reshape(16, columns)
    value = source[row, 4 * chunk].view(np.uint32)
    check = f"ld.shared.f32 %f1, [%r21+{place}]; setp.neu.f32 %p2, %f1, 0f{value:08X}; @%p2 trap;"
    copy_box(source, np.zeros_like(source), (16, columns), (0, 0), (0, 0), swizzle, check)


def test_a_box_out_of_bounds_is_filled_with_zeros_and_clipped():
    source = np.ones((20, 32), np.float32)
    target = np.full((20, 32), 7, np.float32)
    copy_box(source, target, (16, 16), (12, -8), (0, 24))
    expected = np.full((20, 32), 7, np.float32)
    expected[:16, 24:] = 0  # columns -8 to 0 of the source
    assert target.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype, column", [(np.float32, 2), (np.float16, -5), (np.uint8, 8)])
def test_a_box_starts_at_a_multiple_of_16_bytes_in_its_row(dtype, column):
    source = np.ones((16, 64), dtype)

    with pytest.raises(AccessError, match=f"starts at element {column} .* a multiple of 16"):
        copy_box(source, np.zeros_like(source), (4, 16), (0, column), (0, 0))


def test_three_axes_count_from_the_innermost():
    source = np.arange(3 * 8 * 16, dtype=np.float32).reshape(3, 8, 16)
    target = np.zeros_like(source)
    copy_box(source, target, (1, 4, 8), (2, 4, 8), (0, 0, 0))
    assert target[0, :4, :8].tolist() == source[2, 4:8, 8:16].tolist()


_ONES = np.ones((8, 32), np.float32)
_CHANGE = "mov.b32 %r9, 0; mad.lo.u32 %r8, %r1, 4, %r21; st.shared.b32 [%r8], %r9;"


def test_what_the_generic_proxy_wrote_needs_a_fence():
    source, target = _ONES.copy(), _ONES.copy()
    with pytest.raises(ProxyFenceError, match="(?s)without a fence.*fence.proxy.async"):
        copy_box(source, target, (8, 32), (0, 0), (0, 0), 128, f"{_CHANGE} bar.sync 0;")
    copy_box(source, target, (8, 32), (0, 0), (0, 0), 128,
             f"{_CHANGE} fence.proxy.async.shared::cta; bar.sync 0;")
    assert target[0].tolist() == [0] * 32 and target[1:].all()


def test_a_fence_of_another_proxy_does_not_help():
    with pytest.raises(ProxyFenceError):
        copy_box(_ONES.copy(), _ONES.copy(), (8, 32), (0, 0), (0, 0), 128,
                 f"{_CHANGE} fence.acq_rel.cta; bar.sync 0;")


def test_reading_a_box_before_the_wait_is_a_race():
    with pytest.raises(RaceError, match="a tensor copy wrote"):
        run(f"""{_INIT} {expect(256)}
            @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r21], [%rd1],
                256, [%r20]; ld.shared.b32 %r3, [%r21];""", np.zeros(64, np.int32), block=64,
            variables=_SHARED)


def test_overwriting_a_box_before_its_store_has_read_it_is_a_race():
    store = """fence.proxy.async.shared::cta; bar.sync 0;
        @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r21], 128;
        @%p1 cp.async.bulk.commit_group; WAIT bar.sync 0;"""
    body = f"{_INIT} {_CHANGE} {store} {_CHANGE.replace(', 0;', ', 1;')}"
    run(body.replace("WAIT", "@%p1 cp.async.bulk.wait_group.read 0;"), np.zeros(32, np.int32),
        block=32, variables=_SHARED)
    with pytest.raises(RaceError, match="a bulk copy of warp 0 may still be reading"):
        run(body.replace("WAIT", ""), np.zeros(32, np.int32), block=32, variables=_SHARED)


def test_too_few_bytes_are_a_deadlock():
    with pytest.raises(DeadlockError, match="128 bytes to come"):
        run(f"""{_INIT} {expect(384)}
            @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r21], [%rd1],
                256, [%r20]; {wait(0)}""", np.zeros(64, np.int32), variables=_SHARED)


def test_a_box_at_a_misaligned_shared_address_is_found():
    with pytest.raises(AccessError, match="misaligned, accepted a multiple of 128"):
        copy_box(_ONES.copy(), _ONES.copy(), (8, 32), (0, 0), (0, 0), 128,
                 "add.u32 %r21, %r21, 64;")


@pytest.mark.parametrize("shape, box, swizzle, message", [
    ((8, 32), (8, 32, 1), 0, "2 extents"), ((8, 32), (8, 300), 0, "extents of 1 to 256"),
    ((8, 33), (8, 32), 0, "multiples of 16 bytes"), ((8, 32), (8, 3), 0, "a multiple of 16"),
    ((8, 64), (8, 64), 128, "swizzle of 128 for 256 bytes"),
])
def test_a_tensor_map_that_the_driver_would_refuse_is_refused(shape, box, swizzle, message):
    with pytest.raises(BlockValueError, match=message):
        TensorMap(np.zeros(shape, np.float32), box, swizzle)
