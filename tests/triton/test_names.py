"""Names of triton.language that stand for types, constants and functions of one line."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def asked(out, N: tl.constexpr, pair):
    tl.static_assert(N.type == tl.constexpr_type(5))
    tl.static_assert(N.type != tl.constexpr_type(6))
    tl.static_assert((N, N).type == tl.constexpr_type((5, 5)))
    tl.static_assert(isinstance(pair[1].type, tl.constexpr_type))
    counted = tl.tuple([value + 1 for value in pair])
    for i in tl.static_range(len(counted)):
        tl.store(out + i, counted[i])
    i = 0
    while tl.condition(i < N, disable_licm=True):
        i += 2
    tl.store(out + 2, i)
    tl.static_assert(tl.unsqueeze(tl.arange(0, 4), 0).shape == (1, 4))


def test_constants_have_types_and_tuples_are_made():
    out = np.full(4, -1, np.int32)
    asked[1](out, 5, (7, 1))
    np.testing.assert_array_equal(out, [8, 2, 6, -1])


@triton.jit
def odd(x, out, N: tl.constexpr):
    bits = tl.load(x + tl.arange(0, N)).to(tl.int1)
    tl.store(out, tl.sum(bits, dtype=tl.int1).to(tl.int32))
    tl.store(out + 1, tl.sum(bits))


def test_bits_are_added_in_one_bit(device):
    x = np.random.default_rng().integers(0, 2, 64, np.int32)
    out = np.full(2, -1, np.int32)
    device.run(odd, 1, x, out, N=64)
    np.testing.assert_array_equal(out, [x.sum() % 2, x.sum()])


@triton.jit
def least(x, out, K: tl.constexpr):
    tl.store(out + tl.arange(0, K), tl.topk(tl.load(x + tl.arange(0, 32)), K, descending=False))


def test_topk_takes_the_least():
    x = np.random.default_rng().permutation(32).astype(np.float32)
    out = np.full(4, np.nan, np.float32)
    least[1](x, out, K=4)
    np.testing.assert_array_equal(out, [0, 1, 2, 3])


@triton.jit
def converted(x, out):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.load(x + i).to(tl.float8e5, fp_downcast_rounding="rtne"))


def test_rounding_to_8_bits_saturates():
    x = np.array([np.inf, -np.inf, np.nan, 1e9, -1e9, 1.1, 57344, 61000], np.float32)
    out = np.zeros(8, ml_dtypes.float8_e5m2)
    converted[1](x, out)
    np.testing.assert_array_equal(out.astype(np.float32),
                                  [57344, -57344, np.nan, 57344, -57344, 1, 57344, 57344])


@triton.jit
def random(out, seed):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.random.uint_to_uniform_float(tl.random.randint(seed, i)))
    tl.store(out + 8 + i, tl.rand(seed, i))


def test_random_numbers_have_a_module():
    out = np.full(16, np.nan, np.float32)
    random[1](out, 7)
    np.testing.assert_array_equal(out[:8], out[8:])


@pytest.mark.parametrize("seed", [2.5, np.zeros(1, np.int32)], ids=["float", "array"])
def test_seeds_are_ints(seed):
    with pytest.raises(triton.CompilationError, match="random numbers"):
        random[1](np.zeros(16, np.float32), seed)


def test_types_have_names():
    assert tl.str_to_ty("*fp16") == tl.pointer_type(tl.float16)
    assert tl.str_to_ty("u8") == tl.uint8 and tl.str_to_ty("i1", None) == tl.int1
    assert tl.pi32_t == tl.pointer_type(tl.int32)
    assert [dtype.fp_mantissa_width for dtype in (
        tl.float8e5, tl.float8e4nv, tl.float16, tl.bfloat16, tl.float32, tl.float64,
    )] == [2, 3, 10, 7, 23, 52]


def test_constexprs_compute_outside_of_kernels():
    size = tl.constexpr(tl.constexpr(8))
    assert size == 8 and size != tl.constexpr(9) and not size < 8
    assert (size * 2 - 1).value == 15 and (100 // size).value == 12 and (2**size).value == 256
    assert [*range(size)] == [*range(8)] and {size: 1}[tl.constexpr(8)] == 1
    assert not tl.constexpr(0)


def test_ints_that_fit_nowhere_overflow():
    with pytest.raises(OverflowError, match="accepted ints that fit in 64 bits"):
        bn.jit(lambda n: None)[1](2**64)


def test_arrays_that_are_left_out_are_restored():
    @triton.autotune([triton.Config({"N": 8}), triton.Config({"N": 16})], key=[],
                     restore_value=["x", "y"], reset_to_zero=["z"],
                     do_bench=lambda run, quantiles: run() or [1, 1, 1])
    @triton.jit
    def kernel(x, y, z, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(x + i, tl.load(x + i) + 1, mask=i < 8)
        if y is not None:
            tl.store(y, 0)

    x = np.zeros(16, np.float32)
    kernel[(1,)](x, None, None)
    np.testing.assert_array_equal(x, [1] * 8 + [0] * 8)


@triton.jit(repr=lambda made: f"scaled_{made.signature['x'][1:]}_{made.constants['N']}")
def named(x, n, N: tl.constexpr):
    pass


def test_repr_names_the_code():
    compiled = named.warmup(np.zeros(8, np.float16), 2.5, N=8, grid=(1,))
    assert compiled.name == compiled.metadata.name == "scaled_fp16_8"


@triton.jit
def kept_pointers(x, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), x + tl.arange(0, N))


def test_pointers_are_stored_as_addresses():
    x, out = np.zeros(4, np.float32), np.zeros(4, np.int64)
    kept_pointers[1](x, out, N=4, device="cpu")
    np.testing.assert_array_equal(out, x.ctypes.data + 4 * np.arange(4))


@triton.jit
def chosen(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.where(tl.load(x + i), 1, 2))


def test_a_condition_of_numbers_is_warned_of():
    out = np.zeros(4, np.int32)
    with pytest.warns(UserWarning, match="a condition of int32"):
        chosen[1](np.array([0, 1, 2, 0], np.int32), out, N=4)
    np.testing.assert_array_equal(out, [2, 1, 1, 2])


@triton.jit
def shallow(x):
    i = tl.arange(0, 16)
    k = tl.arange(0, 8)
    a = tl.load(x + i[:, None] * 8 + k[None, :])
    tl.dot(a, tl.trans(a))


def test_products_are_deep_enough_for_the_instructions():
    with pytest.raises(triton.CompilationError, match="given K = 8 of float16, accepted 16 or"):
        shallow[1](np.zeros((16, 8), np.float16))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_rounded_towards_zero_to_float8_e5m2(dtype, interpret):
    @triton.jit
    def truncated(x, out, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i).to(tl.float8e5, fp_downcast_rounding="rtz"))

    every = np.arange(1 << 16, dtype=np.uint16)
    x = (every.view(np.float16) if dtype == "float16" else every.view(ml_dtypes.bfloat16))
    with np.errstate(invalid="ignore"):
        x = x.astype(getattr(ml_dtypes, dtype, dtype))
    out = np.full(x.size, 1, np.uint8).view(ml_dtypes.float8_e5m2)
    truncated[(x.size // 1024,)](x, out, B=1024, interpret=interpret)

    wide, got = x.astype(np.float64), out.astype(np.float64)
    finite = np.arange(0x7C, dtype=np.uint8).view(ml_dtypes.float8_e5m2).astype(np.float64)
    below = np.searchsorted(finite, np.abs(wide), side="right") - 1
    expected = np.copysign(np.where(np.isinf(wide), np.inf, finite[below]), wide)
    np.testing.assert_array_equal(got, np.where(np.isnan(wide), np.nan, expected))
