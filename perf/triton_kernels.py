"""The peers in Triton: ordinary kernels in its own style, and the configurations to choose from."""

import triton
import triton.language as tl

ADD_CONFIGURATIONS = tuple((block, warps) for block in (1024, 2048, 4096) for warps in (4, 8))
ROW_WARPS = (4, 8, 16)


@triton.jit
def add(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(row - tl.max(row, axis=0))
    tl.store(y_ptr + start + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def layernorm(x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, columns, epsilon,
              BLOCK: tl.constexpr):
    i = tl.program_id(0)
    start = i.to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    tl.store(mean_ptr + i, mean)
    tl.store(rstd_ptr + i, rstd)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + offsets, mask=mask)
    tl.store(y_ptr + start + offsets, centred * rstd * weight + bias, mask=mask)
