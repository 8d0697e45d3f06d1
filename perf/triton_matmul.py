"""Products of matrices in Triton, persistent, with tensor descriptors, as in its tutorials."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_launch import Launch

GROUP_M = 8


@dataclass(frozen=True)
class Configuration:
    """BLOCK_M, BLOCK_N, BLOCK_K, options of a launch; halves: whether results are stored in two."""

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    halves: bool


# Without tl.range(warp_specialize=True), which Triton recommends for Blackwell
CONFIGURATIONS = (
    Configuration(128, 256, 64, 8, 3, False),
    Configuration(128, 256, 64, 8, 3, True),
    Configuration(128, 256, 64, 8, 4, True),
    Configuration(256, 128, 64, 8, 3, True),
    Configuration(128, 128, 64, 8, 4, False),
    Configuration(128, 128, 64, 4, 4, False),
    Configuration(128, 128, 64, 4, 3, True),
    Configuration(128, 128, 128, 8, 3, True),
    Configuration(64, 128, 64, 4, 4, False),
    Configuration(64, 128, 128, 4, 4, False),
)


@triton.jit
def _matmul(a_map, b_map, c_map, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
            TRANSPOSED: tl.constexpr, HALVES: tl.constexpr):
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP * num_pid_n
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, PROGRAMS, flatten=True):
        first_pid_m = tile // num_pid_in_group * GROUP
        group_size_m = min(num_pid_m - first_pid_m, GROUP)
        m = (first_pid_m + tile % group_size_m) * BLOCK_M
        n = tile % num_pid_in_group // group_size_m * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            k = step * BLOCK_K
            a = a_map.load([m, k])
            if TRANSPOSED:
                acc = tl.dot(a, b_map.load([n, k]).T, acc)
            else:
                acc = tl.dot(a, b_map.load([k, n]), acc)
        if HALVES:
            halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
            left, right = tl.split(halves)
            c_map.store([m, n], left.to(c_map.dtype))
            c_map.store([m, n + BLOCK_N // 2], right.to(c_map.dtype))
        else:
            c_map.store([m, n], acc.to(c_map.dtype))


def launches(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> list[Launch]:
    """c = a @ b in every configuration.

    a: (M, K); b: (K, N), either may be contiguous along the other axis; c: (M, N).
    """
    (M, K), N = a.shape, b.shape[1]
    processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    transposed = b.stride(0) == 1
    found = []
    for chosen in CONFIGURATIONS:
        tiles = triton.cdiv(M, chosen.block_m) * triton.cdiv(N, chosen.block_n)
        programs = min(tiles, processors)
        b_box = [chosen.block_k, chosen.block_n]
        boxes = ((a, [chosen.block_m, chosen.block_k]),
                 (b.T, b_box[::-1]) if transposed else (b, b_box),
                 (c, [chosen.block_m, chosen.block_n // (2 if chosen.halves else 1)]))
        maps = (TensorDescriptor.from_tensor(x, box) for x, box in boxes)
        found.append(Launch(_matmul, (programs,), (
            *maps, M, N, K, chosen.block_m, chosen.block_n, chosen.block_k, GROUP_M, programs,
            transposed, chosen.halves),
            {"num_warps": chosen.num_warps, "num_stages": chosen.num_stages}))
    return found
