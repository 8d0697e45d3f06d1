"""Kernels about formats of numbers, and about names: libdevice, keywords, recursion."""

import ml_dtypes
import numpy as np
from triton_kinds.case import case, floats, poison

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.triton.language.extra.cuda import libdevice


@triton.jit
def through_eight_bits(x, out, amax, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    scale = tl.max(tl.abs(value), 0) / 448.0
    tl.atomic_max(amax, scale)
    tl.store(out + i, (value / scale).to(tl.float8e4nv))


@case(through_eight_bits, (1,), BLOCK=64)
def floats_of_eight_bits(generator):
    x = generator.integers(-448, 449, 64).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    x[0] = 448
    return ([x, np.zeros(64, ml_dtypes.float8_e4m3fn), np.zeros(1, np.float32)],
            {1: x.astype(ml_dtypes.float8_e4m3fn), 2: np.ones(1, np.float32)})


@triton.jit
def scaled_product(a, a_scale, b, b_scale, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    groups: tl.constexpr = K // 32
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    left_scale = tl.load(a_scale + m[:, None] * groups + tl.arange(0, groups)[None, :])
    right_scale = tl.load(b_scale + n[:, None] * groups + tl.arange(0, groups)[None, :])
    tl.store(out + m[:, None] * N + n[None, :],
             tl.dot_scaled(left, left_scale, "e4m3", right, right_scale, "e5m2"))


@case(scaled_product, (1,), error=1e-5, M=32, N=32, K=64)
def a_scaled_product(generator):
    a = floats(generator, 32, 64).astype(ml_dtypes.float8_e4m3fn)
    b = floats(generator, 64, 32).astype(ml_dtypes.float8_e5m2)
    scales = generator.integers(120, 132, (2, 32, 2)).astype(np.uint8)
    left, right = (np.repeat(2.0 ** (scale.astype(np.float64) - 127), 32, axis=1)
                   for scale in scales)
    expected = (a.astype(np.float64) * left) @ (b.astype(np.float64) * right.T)
    return [a, scales[0].copy(), b, scales[1].copy(), poison(32, 32)], {4: expected}


@triton.jit
def by_libdevice(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(out + i, libdevice.tanh(value) + tl.math.exp2(libdevice.copysign(0.5, value)))


@case(by_libdevice, (1,), error=1e-5, BLOCK=64)
def functions_of_libdevice(generator):
    x = floats(generator, 64)
    wide = x.astype(np.float64)
    return [x, poison(64)], {1: np.tanh(wide) + np.exp2(np.copysign(0.5, wide))}


@triton.jit
def by_names(x, out, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.expand_dims(tl.arange(start=0, end=M), axis=1) * N + tl.arange(start=0, end=N)
    tile = tl.load(pointer=x + offsets, mask=None, other=0.0)
    greatest = tl.max(input=tile, axis=1, keep_dims=True)
    shifted = tl.where(condition=tile < greatest, x=tile - greatest, y=tl.zeros_like(input=tile))
    sums = tl.sum(input=tl.reshape(input=shifted, shape=[M, N // 2, 2]), axis=-1)
    tl.device_assert(cond=sums <= 0, msg="below the greatest")
    places = tl.arange(0, M)[:, None] * (N // 2) + tl.arange(0, N // 2)[None, :]
    tl.store(pointer=out + places, value=tl.trans(tl.trans(input=sums)), mask=True)


@case(by_names, (1,), error=1e-6, M=8, N=16)
def names_of_parameters(generator):
    x = floats(generator, 8, 16)
    shifted = (x - x.max(1, keepdims=True)).astype(np.float64)
    return [x, poison(8, 8)], {1: shifted.reshape(8, 8, 2).sum(2)}


@triton.jit
def tree(x, out, low: tl.constexpr, count: tl.constexpr):
    if count == 1:
        return tl.load(x + low)
    left = tree(x, out, low, count // 2)
    right = tree(x, out, low + count // 2, count - count // 2)
    tl.store(out + low, left + right)
    return left + right


@triton.jit
def recursive(x, out, total, COUNT: tl.constexpr):
    tl.store(total, tree(x, out, 0, COUNT))


@case(recursive, (1,), COUNT=7)
def a_recursion_that_a_constant_ends(generator):
    x = generator.integers(-99, 99, 7).astype(np.int32)
    return [x, poison(7, dtype=np.int32), poison(1, dtype=np.int32)], {2: np.array([x.sum()])}
