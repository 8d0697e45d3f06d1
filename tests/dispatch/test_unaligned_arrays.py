"""Arrays whose elements are not aligned, as of messages that were received: as of any others."""

import numpy as np
import pytest

import blocknumba as bn

DEVICES = [pytest.param({"device": "cpu"}, id="native"),
           pytest.param({"interpret": True}, id="interpreter"),
           pytest.param({}, id="gpu", marks=pytest.mark.gpu(not_emulated="host arrays are staged"))]


def unaligned(array: np.ndarray, byte: int = 1) -> np.ndarray:
    """A copy, byte bytes behind a multiple of 64."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + byte
    copy = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    assert not copy.flags.aligned
    return copy


def numbers(dtype: type, *shape: int) -> np.ndarray:
    return (np.random.default_rng().random(shape) * 100).astype(dtype)


@bn.jit
def doubled(x, out, B: bn.constexpr):
    i, r = bn.program_id(0), bn.block(1, B)
    out[i, r] = x[i, r] * 2


@bn.jit
def incremented(x, B: bn.constexpr):
    r = bn.block(0, B)
    x[r] = x[r] + 1


@bn.jit
def reversed_in_place(x, out, B: bn.constexpr):
    """x and out may be one array: all is loaded before anything is stored."""
    r = bn.span(0, B)
    tile = x[r]
    bn.debug_barrier()
    out[r] = bn.flip(tile, 0)


@pytest.mark.parametrize("options", DEVICES)
@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.int32, np.float32, np.float64])
def test_loads_and_stores(dtype, options):
    x = numbers(dtype, 5, 300)
    out = unaligned(np.full_like(x, 7), byte=3)
    grid = (5, 3)

    doubled[grid](unaligned(x), out, B=128, **options)
    np.testing.assert_array_equal(out, x * 2)

    aligned = np.full_like(x, 7)
    doubled[grid](unaligned(x)[:, ::-1], aligned, B=128, **options)
    np.testing.assert_array_equal(aligned, x[:, ::-1] * 2)


@pytest.mark.parametrize("options", DEVICES)
def test_calls_with_and_without_alignment_follow_each_other(options):
    x = numbers(np.float64, 300)
    for array in (x.copy(), unaligned(x), x.copy(), unaligned(x, byte=4), unaligned(x)):
        incremented[3](array, B=128, **options)
        np.testing.assert_array_equal(array, x + 1)


@pytest.mark.parametrize("options", DEVICES)
def test_an_array_given_twice_stays_one(options):
    x = numbers(np.float32, 256)
    array = unaligned(x)
    reversed_in_place[1](array, array, B=256, **options)
    np.testing.assert_array_equal(array, x[::-1])


def test_bound_and_tuned_launches():
    x = numbers(np.float32, 5, 300)
    given, out = unaligned(x), unaligned(np.full_like(x, np.nan))
    doubled.bind((5, 3), given, out, B=128, device="cpu")()
    np.testing.assert_array_equal(out, x * 2)

    out[...] = np.nan
    tuned = bn.autotune([bn.Config({"B": 64}), bn.Config({"B": 128})],
                        cache_results=False)(bn.jit(doubled.py_func, device="cpu"))
    tuned[lambda a: (5, bn.cdiv(300, a["B"]))](given, out)
    np.testing.assert_array_equal(out, x * 2)
    np.testing.assert_array_equal(given, x)
