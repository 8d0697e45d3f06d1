"""Attention in Triton, with tensor descriptors, in the way its tutorials write it: the peer."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_launch import Launch

LOG2_E = 1.4426950408889634
# BLOCK_M, BLOCK_N, num_warps, num_stages
CONFIGURATIONS = tuple(
    (block_m, block_n, warps, stages)
    for block_m in (64, 128) for block_n in (32, 64, 128) for warps in (4, 8)
    for stages in (2, 3, 4))


@triton.jit
def _columns(acc, total, greatest, q, keys, values, head, low, high, offs_m, offs_n, scale,
             BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    for start in tl.range(low, high, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        k = keys.load([head + start, 0])
        scores = tl.dot(q, k.T)
        if MASKED:
            scores = tl.where(offs_m[:, None] >= start + offs_n[None, :], scores, float("-inf"))
        top = tl.maximum(greatest, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - top[:, None])
        fading = tl.math.exp2(greatest - top)
        total = total * fading + tl.sum(weights, 1)
        acc = acc * fading[:, None]
        v = values.load([head + start, 0])
        acc = tl.dot(weights.to(v.dtype), v, acc)
        greatest = top
    return acc, total, greatest


@triton.jit
def _attention(queries, keys, values, out, length, scale, D: tl.constexpr, BLOCK_M: tl.constexpr,
               BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * length
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    q = queries.load([head + start_m, 0])
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    greatest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    whole = start_m if CAUSAL else length
    acc, total, greatest = _columns(acc, total, greatest, q, keys, values, head, 0, whole, offs_m,
                                    offs_n, scale, BLOCK_N, False)
    if CAUSAL:
        acc, total, greatest = _columns(acc, total, greatest, q, keys, values, head, start_m,
                                        start_m + BLOCK_M, offs_m, offs_n, scale, BLOCK_N, True)
    out.store([head + start_m, 0], (acc / total[:, None]).to(out.dtype))


def launches(q, k, v, out, scale: float, causal: bool) -> list[Launch]:
    """out = softmax(q @ k.T * scale) @ v in every configuration; (batches, heads, length, D)."""
    batches, heads, length, D = q.shape
    found = []
    for block_m, block_n, warps, stages in CONFIGURATIONS:
        if causal and block_m % block_n:
            continue  # the columns before a block of rows must be whole blocks
        maps = [TensorDescriptor.from_tensor(x.reshape(-1, D), [rows, D])
                for x, rows in ((q, block_m), (k, block_n), (v, block_n), (out, block_m))]
        grid = triton.cdiv(length, block_m), batches * heads
        found.append(Launch(_attention, grid, (
            *maps, length, scale * LOG2_E, D, block_m, block_n, causal),
            {"num_warps": warps, "num_stages": stages}))
    return found
