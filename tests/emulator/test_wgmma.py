"""wgmma multiplies what its descriptors describe, and not before the wait."""

import numpy as np
import pytest
from elements import random_matrix
from ptx import run
from wgmma_kernels import (
    COMMIT,
    FENCE,
    SHARED,
    WAIT,
    Wgmma,
    accumulator,
    descriptor,
    fill,
    image,
    registers,
    store,
)

from blocknumba.emulator import (
    AccessError,
    DeadlockError,
    Module,
    Options,
    ProxyFenceError,
    RaceError,
    SynchronizationError,
)


def multiplied(*arguments, seed=None, **named):
    """What a Wgmma computes, (64, N), and a and b."""
    kernel = Wgmma(*arguments, **named)
    output = kernel.output
    images = [octets for octets, _, _ in kernel.images]
    Module.parse(kernel.text()).launch("k", 1, 128, [output, *images],
                                       options=Options(seed=seed))
    a, b = (operand.astype(np.float64) for operand in kernel.operands)
    return accumulator(output, kernel.columns), a, b


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("kind", ["f16", "tf32", "e4m3"])
def test_rows_of_k_are_read_in_every_swizzle(kind, swizzle):
    got, a, b = multiplied(16, kind, kind, (swizzle, swizzle))
    assert got.tolist() == (2 * a @ b.T).tolist()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
def test_transposed_operands_are_read_in_every_swizzle(transposed, swizzle):
    got, a, b = multiplied(16, "bf16", "bf16", (swizzle, swizzle), transposed)
    assert got.tolist() == (2 * a @ b.T).tolist()


@pytest.mark.parametrize("columns, left, right, result", [
    (8, "f16", "f16", "f32"), (24, "bf16", "bf16", "f32"), (64, "e4m3", "e5m2", "f32"),
    (32, "s8", "s8", "s32"), (16, "u8", "s8", "s32"), (64, "tf32", "tf32", "f32")])
def test_widths_and_kinds_of_elements(columns, left, right, result):
    got, a, b = multiplied(columns, left, right, result=result)
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_signs_negate_operands():
    got, a, b = multiplied(8, "f16", "f16", signs="-1, 1")
    assert got.tolist() == (-2 * a @ b.T).tolist()


def test_results_are_not_there_before_the_wait():
    got, _, _ = multiplied(8, "f16", "f16",
                           order="{fence} {first} {second} {commit} {store} {wait}")
    assert np.isnan(got).all()


def test_a_wait_leaves_the_latest_groups_in_flight():
    body = ("{fence} {first} {commit} {second} {commit} wgmma.wait_group.sync.aligned 1;"
            "{store} {wait}")
    got, _, _ = multiplied(8, "f16", "f16", order=body)
    assert np.isnan(got).all()


def test_copies_of_registers_in_flight_get_the_results_too():
    copies = "".join(f"mov.f32 %f{100 + i}, %f{i};" for i in range(4))
    back = "".join(f"mov.f32 %f{i}, %f{100 + i};" for i in range(4))
    clear = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(4))
    got, a, b = multiplied(8, "f16", "f16", order="{{fence}} {{first}} {{second}} {{commit}} {} {} "
                        "{{wait}} {} {{store}}".format(copies, clear, back))
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_operands_are_read_as_late_as_the_wait_allows():
    change = "mov.b32 %r9, 0; mov.u32 %r8, first; mad.lo.u32 %r8, %r1, 16, %r8;"
    body = "{fence} {first} {second} {commit}" + change + " st.shared.b32 [%r8], %r9; {wait}"
    with pytest.raises(RaceError, match="wgmma of warp 0 may still be reading"):
        multiplied(8, "f16", "f16", order=body)


def test_operands_may_change_after_the_wait():
    body = ("{fence} {first} {second} {commit} {wait} bar.sync 0; mov.b32 %r9, 0;"
            "mov.u32 %r8, first; mad.lo.u32 %r8, %r1, 16, %r8; st.shared.b32 [%r8], %r9; {store}")
    got, a, b = multiplied(8, "f16", "f16", order=body)
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_operands_from_the_generic_proxy_need_a_fence():
    with pytest.raises(ProxyFenceError, match="without a fence"):
        multiplied(8, "f16", "f16", order="bar.sync 0; {first} {second} {commit} {wait} {store}")


def test_operands_need_a_barrier():
    with pytest.raises(RaceError, match="nothing orders"):
        multiplied(8, "f16", "f16",
                order="fence.proxy.async.shared::cta; {first} {second} {commit} {wait} {store}")


@pytest.mark.parametrize("seed", range(3))
def test_warps_of_a_warpgroup_wait_for_each_other(seed):
    late = "shr.u32 %r10, %r1, 5; setp.eq.u32 %p3, %r10, 2; @!%p3 bra ON; nanosleep.u32 5; ON:"
    order = f"{{fence}} {late} {{first}} {{second}} {{commit}} {{wait}} {{store}}"
    got, a, b = multiplied(8, "f16", "f16", seed=seed, order=order)
    assert got.tolist() == (2 * a @ b.T).tolist()


def test_a_warpgroup_that_is_not_whole_is_a_deadlock():
    skip = "shr.u32 %r10, %r1, 5; setp.eq.u32 %p3, %r10, 2; @%p3 exit;"
    with pytest.raises(DeadlockError, match="its warpgroup, 3 of 4 warps there"):
        multiplied(8, "f16", "f16", order=f"{{fence}} {skip} {{first}} {{commit}} {{wait}}")


def test_a_partial_warp_is_refused():
    skip = "setp.eq.u32 %p3, %r1, 2; @%p3 exit;"
    with pytest.raises(SynchronizationError, match="part of a warp"):
        multiplied(8, "f16", "f16", order=f"{{fence}} {skip} {{first}} {{commit}} {{wait}}")


def test_operands_that_nothing_wrote_are_found():
    with pytest.raises(AccessError, match="nothing has written"):
        run(f"""{descriptor("%rd20", "first", 0, 1024, 128)} setp.ne.b32 %p1, 0, 0;
            wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {registers(8)}, %rd20, %rd20, %p1,
            1, 1, 0, 0; {COMMIT} {WAIT}""", block=128, variables=SHARED)


def test_the_first_operand_may_be_inregisters():
    a, b = random_matrix((64, 16), "f16", 1), random_matrix((8, 16), "f16", 2)
    second, *strides = image(b, 128, False)
    packed = np.zeros((128, 4, 2), np.float16)
    for thread, index, element in np.ndindex(packed.shape):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index % 2)
        packed[thread, index, element] = a[row, thread % 4 * 2 + element + 8 * (index // 2)]
    output = np.zeros((128, 4), np.float32)
    run(f"""{fill("second", "%rd3")} {descriptor("%rd21", "second", *strides, 128)} {FENCE}
        mad.wide.u32 %rd8, %r1, 16, %rd2; ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd8];
        setp.ne.b32 %p1, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {registers(8)},
        {{%r10, %r11, %r12, %r13}}, %rd21, %p1, 1, 1, 0; {COMMIT} {WAIT} {store(8)}""",
        output, packed, second, block=128, variables=SHARED)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    assert accumulator(output, 8).tolist() == expected.tolist()
