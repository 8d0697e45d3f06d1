"""Real tensor-core kernels run right, and faults planted in them are found."""

import math

import pytest
from hopper_kernels import Attention, Gemm, error, text_of

from blocknumba.emulator import AccessError, DeadlockError, ProxyFenceError, RaceError

CLUSTERED = Gemm("ws_128x256_s4_nk_c2_pred_nounroll", (128, 256), 384, 229504, cluster=2)
SINGLE_ROLE = Gemm("nows_tma_128x256_s4_kn", (128, 256), 256, 196736, transposed=True)
PING_PONG = Gemm("pp_64x256_s4_nk", (64, 256), 384, 229504)
CAUSAL = Attention("d64c_v3_2wg_dyn", 64, 128, 128, 384, 98560, causal=True)
REGISTER_OPERAND = Attention("d64f_v3_2wg_qreg", 64, 128, 128, 384, 98560)
WIDE_HEADS = Attention("d128f_v3_lse", 128, 128, 128, 384, 196864)

_BFLOAT16_ERROR, _FLOAT16_ERROR = 3e-3, 1e-3
_SHAPE = (256, 256, 512)  # eight steps of K through four stages


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("gemm, shape", [
    (CLUSTERED, _SHAPE), (SINGLE_ROLE, (128, 512, 384)), (PING_PONG, (256, 256, 384))],
    ids=lambda value: getattr(value, "name", ""))
def test_products_are_right_in_any_order_of_the_warps(gemm, shape, seed):
    got, expected, report = gemm.run(shape, seed=seed)
    assert error(got, expected) < _BFLOAT16_ERROR
    assert report.bank_conflicts == 0


@pytest.mark.parametrize("attention", [CAUSAL, WIDE_HEADS], ids=lambda value: value.name)
def test_attention_is_right(attention):
    got, expected, _ = attention.run(1, 384)
    assert error(got, expected) < _FLOAT16_ERROR


def faulty(kernel, old, new, first=0):
    """A kernel's text with a fault: old becomes new, in all places but the first few."""
    head, *pieces = text_of(kernel.name).split(old)
    assert len(pieces) > first, f"the kernel has no {old}"
    kept = old.join([head, *pieces[:first]])
    return new.join([kept, *pieces[first:]])


def test_threads_that_read_what_the_copy_engine_overwrites_need_a_fence():
    """The queries of the next tile may come before the last ldmatrix of those before is done."""
    read = "bar.sync %r46, %r413;"  # then one warp says so
    mended = faulty(REGISTER_OPERAND, read, f"{_FENCE} {read}")

    with pytest.raises(ProxyFenceError, match="read through the generic proxy"):
        REGISTER_OPERAND.run(1, 384)
    got, expected, _ = REGISTER_OPERAND.run(1, 384, mended)

    assert error(got, expected) < _FLOAT16_ERROR


_FENCE, _WAIT = "fence.proxy.async.shared::cta;", "wgmma.wait_group.sync.aligned 1;"


def test_a_removed_proxy_fence_is_found():
    with pytest.raises(ProxyFenceError, match="stmatrix"):
        CLUSTERED.run(_SHAPE, faulty(CLUSTERED, _FENCE, "", first=1))


def test_a_removed_barrier_is_found():
    with pytest.raises(RaceError, match="nothing orders"):
        CLUSTERED.run(_SHAPE, faulty(CLUSTERED, "bar.sync %r32, %r359;", ""))


def test_a_staging_buffer_that_is_reused_too_early_is_found():
    with pytest.raises(RaceError, match="a bulk copy of warp .* may still be reading"):
        CLUSTERED.run(_SHAPE, faulty(CLUSTERED, "wait_group.read 1;", "wait_group.read 9;"))


def test_a_stage_that_is_released_too_early_is_found():
    with pytest.raises(RaceError, match="wgmma of warp .* may still be reading"):
        CLUSTERED.run(_SHAPE, faulty(CLUSTERED, _WAIT, _WAIT.replace("1", "2")))


def test_a_stage_that_is_released_too_early_shows_as_a_wrong_result():
    got, expected, _ = CLUSTERED.run(_SHAPE, faulty(CLUSTERED, _WAIT, _WAIT.replace("1", "2")),
                                     races=False)
    assert error(got, expected) > 0.1


def test_a_missing_wait_shows_as_a_wrong_result():
    got, expected, _ = SINGLE_ROLE.run(
        (128, 256, 256), faulty(SINGLE_ROLE, "wgmma.wait_group.sync.aligned 0;", ""), races=False,
        uninitialized=False)
    assert error(got, expected) == math.inf


def test_a_wrong_parity_is_found():
    fault = faulty(CLUSTERED, "[%r156], %r408;", "[%r156], 1;")
    with pytest.raises((RaceError, AccessError)):
        CLUSTERED.run(_SHAPE, fault)
    with pytest.raises(DeadlockError, match="parity"):
        CLUSTERED.run(_SHAPE, fault.replace("[%r156], 1;", "[%r156], 0;"), races=False,
                      uninitialized=False)


def test_wrong_byte_counts_are_found():
    with pytest.raises(DeadlockError, match="49088 bytes too many"):
        CLUSTERED.run(_SHAPE, faulty(CLUSTERED, "_, [%r103], %r104;", "_, [%r103], 64;"))
