"""Kernels over rows: displays of lists, keywords of jit, functions of math, scans, methods."""

from typing import NamedTuple

import numpy as np
from triton_kinds.case import case, floats, poison

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.triton.language.extra import libdevice


@triton.jit(do_not_specialize=["n"], repr=lambda _: "added", launch_metadata=None)
def added(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask), mask)


@case(added, (3,), BLOCK=64)
def an_addition(generator):
    x, y = floats(generator, 150), floats(generator, 150)
    return [x, y, poison(150), 150], {2: x + y}


@triton.jit
def filled(out, M: tl.constexpr, N: tl.constexpr):
    tile = tl.zeros([M, N], dtype=tl.float32) + tl.full([1, N], 2, tl.float32)
    tile = tl.reshape(tl.trans(tile), [N * M])
    tl.store(out + tl.arange(0, M * N), tile)


@case(filled, (1,), M=4, N=8)
def lists_where_tuples_stand(generator):
    return [poison(32)], {0: np.full(32, 2, np.float32)}


@triton.jit
def row_softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + column, mask=column < columns, other=-float("inf"))
    grown = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + column, grown / tl.sum(grown, axis=0), mask=column < columns)


@case(row_softmax, (5,), error=1e-5, BLOCK=64)
def a_softmax(generator):
    x = floats(generator, 5, 50)
    grown = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return [x, poison(5, 50), 50, 50], {1: grown / grown.sum(1, keepdims=True)}


@triton.jit
def gelu(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(out + i, 0.5 * value * (1 + libdevice.tanh(0.79788456 * (
        value + 0.044715 * value * value * value))))
    tl.store(out + BLOCK + i, tl.math.fma(value, value, 1.0))


@case(gelu, (1,), error=2e-5, BLOCK=128)
def functions_of_math(generator):
    x = floats(generator, 128)
    wide = x.astype(np.float64)
    tanh = 0.5 * wide * (1 + np.tanh(0.79788456 * (wide + 0.044715 * wide**3)))
    return [x, poison(256)], {1: np.concatenate([tanh, wide * wide + 1])}


@triton.jit
def running(x, sums, products, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(sums + i, tl.cumsum(value, axis=0, reverse=True))
    tl.store(products + i, tl.cumprod(value, 0))


@case(running, (1,), error=1e-4, BLOCK=32)
def running_sums_and_products(generator):
    x = 1 + 0.1 * floats(generator, 32)
    wide = x.astype(np.float64)
    return [x, poison(32), poison(32)], {1: np.cumsum(wide[::-1])[::-1], 2: np.cumprod(wide)}


@triton.jit
def decayed(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pair = (tl.load(a + i), tl.load(b + i))
    _, state = tl.associative_scan(pair, axis=0, combine_fn=decayed)
    tl.store(out + i, state)


@case(recurrence, (1,), error=1e-4, BLOCK=64)
def a_linear_recurrence(generator):
    a, b = generator.uniform(0.5, 1, 64).astype(np.float32), floats(generator, 64)
    state, states = 0.0, []
    for decay, value in zip(a.astype(np.float64), b.astype(np.float64)):
        state = state * decay + value
        states.append(state)
    return [a, b, poison(64)], {2: np.array(states)}


@triton.jit
def welford(mean_1, m2_1, n_1, mean_2, m2_2, n_2):
    distance, count = mean_2 - mean_1, n_1 + n_2
    share = tl.where(count == 0, 0.0, n_2 / count)
    return mean_1 + distance * share, m2_1 + m2_2 + distance * distance * n_1 * share, count


@triton.jit
def moments(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + i, mask, other=0.0)
    zeros = tl.zeros_like(value)
    mean, m2, count = tl.reduce((value, zeros, mask.to(tl.float32)), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, m2 / count)


@case(moments, (1,), error=1e-4, BLOCK=128)
def a_reduction_of_tuples(generator):
    x = floats(generator, 100)
    wide = x.astype(np.float64)
    return [x, poison(2), 100], {1: np.array([wide.mean(), wide.var()])}


@triton.jit
def typed(x, out, n: tl.int32, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    dtype: tl.constexpr = out.type.element_ty
    value = tl.load(x + i)
    if dtype.is_fp16() and value.dtype.is_floating():
        tl.static_assert(dtype.primitive_bitwidth == 16)
        value = value.cast(tl.float32)
    tl.store(out + i, (value * n).to(dtype))


@case(typed, (1,), BLOCK=32)
def questions_of_dtypes(generator):
    x = floats(generator, 32)
    return [x, poison(32, dtype=np.float16), 3], {1: (x * 3).astype(np.float16)}


@triton.jit
def logical(x, out, low, high, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.debug_barrier()
    inside = (value > low and value < high) or not (value == value)
    tl.store(out + i, inside.to(tl.int32))


@case(logical, (1,), BLOCK=64)
def logical_operators_of_tiles(generator):
    x = floats(generator, 64)
    x[3] = np.nan
    return [x, poison(64, dtype=np.int32), -0.5, 0.5], {
        1: ((x > -0.5) & (x < 0.5)) | np.isnan(x)}


@triton.jit
def by_methods(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i).to(tl.float32)
    pairs = value.reshape(BLOCK // 2, 2)
    left, right = pairs.split()
    tl.store(out + i, tl.join(right, left).ravel().abs())
    tl.store(out + BLOCK, value.max(0) - value.min(axis=0) + pairs.sum().exp())


@case(by_methods, (1,), error=1e-5, BLOCK=32)
def methods_of_tiles(generator):
    x = 0.1 * floats(generator, 32)
    wide = x.astype(np.float64)
    rest = wide.max() - wide.min() + np.exp(wide.sum())
    return [x, poison(33)], {1: np.append(np.abs(x.reshape(16, 2)[:, ::-1].ravel()), rest)}


class Affine(NamedTuple):
    scale: float
    shift: object


@triton.jit
def affine(x, out, of, sizes, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    shift = tl.load(of.shift + i, mask=i < sizes[0], other=0.0)
    tl.store(out + i, tl.load(x + i) * of.scale + shift, mask=i < sizes[1])


@case(affine, (1,), error=1e-6, BLOCK=32)
def tuples_as_arguments(generator):
    x, shift = floats(generator, 32), floats(generator, 32)
    expected = poison(32)
    expected[:20] = (x * 1.5 + np.where(np.arange(32) < 10, shift, 0))[:20]
    return [x, poison(32), Affine(1.5, shift), (10, 20)], {1: expected}


@triton.jit
def optional(x, bias, out, scale: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=None, other=0.0, cache_modifier=".cg", eviction_policy=None)
    if bias is not None:
        value += tl.load(bias + i, mask=True)
    tl.store(out + i, value * scale, cache_modifier=".cs")


@case(optional, (1,), scale=tl.constexpr(2), BLOCK=16, num_stages=1)
def optional_arguments(generator):
    x = floats(generator, 16)
    return [x, None, poison(16)], {2: 2 * x}


@triton.jit
def cross_entropy(logits, labels, losses, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    base = logits + row * columns
    greatest, total = float("-inf"), 0.0
    for start in tl.range(0, columns, BLOCK, num_stages=2):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(base + column, column < columns, other=float("-inf"))
        here = tl.maximum(greatest, tl.max(value))
        total = total * tl.exp(greatest - here) + tl.sum(tl.exp(value - here))
        greatest = here
    loss = greatest + tl.log(total) - tl.load(base + label)
    tl.store(losses + row, loss)


@case(cross_entropy, (4,), error=1e-5, BLOCK=32)
def a_loss_of_two_passes(generator):
    x, labels = floats(generator, 4, 75), generator.integers(0, 75, 4)
    wide = x.astype(np.float64)
    losses = np.log(np.exp(wide).sum(1)) - wide[range(4), labels]
    return [x, labels, poison(4), 75], {2: losses}
