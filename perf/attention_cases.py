"""Attention, forward, by the example's kernel and its peers: Triton, cuDNN."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import triton_attention
from example_kernels import attention
from measure import gpu_timer
from product_cases import SUBJECT, Case, giving, poisoned, random_generator
from product_rounding import ROUNDINGS
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton_launch import fastest_launch

TRITON, CUDNN = "Triton", "cuDNN"
PEERS = (TRITON, CUDNN)
BATCHES, LENGTH = 4, 4096
HEADS = {128: 16, 64: 32}  # by how many elements a head has


def attention_case(D: int, causal: bool) -> Case:
    """Attention of float16 heads of D elements, with fastmath as everybody has it."""
    shape = BATCHES, HEADS[D], LENGTH, D
    generator = random_generator()
    q, k, v = torch.randn(3, *shape, device="cuda", generator=generator).half()
    ours, theirs = (poisoned(*shape, dtype=torch.float16) for _ in range(2))
    scale = D**-0.5
    best = fastest_launch(triton_attention.launches(q, k, v, theirs, scale, causal), gpu_timer())

    def in_cudnn() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def reference() -> tuple[torch.Tensor, torch.Tensor]:
        heads = [_exact(*(x[i, j].double() for x in (q, k, v)), scale, causal)
                 for i in range(BATCHES) for j in range(HEADS[D])]
        return tuple(torch.stack(parts).reshape(shape) for parts in zip(*heads))

    # of each query; a tensor (LENGTH, 1) where they differ
    keys = torch.arange(1, LENGTH + 1, device="cuda")[:, None] if causal else LENGTH
    operations = 4 * BATCHES * HEADS[D] * LENGTH**2 * D // (2 if causal else 1)
    return Case(operations, {
        SUBJECT: giving(ours, lambda: attention.launch(q, k, v, ours, scale, causal,
                                                       fastmath=True)),
        TRITON: giving(theirs, best),
        CUDNN: in_cudnn,
    }, reference, ROUNDINGS["attention"], keys)


def _exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float,
           causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """One head in float64, and what its terms add up to without their signs."""
    scores = q @ k.T * scale
    if causal:
        scores.masked_fill_(~torch.ones_like(scores, dtype=torch.bool).tril(), float("-inf"))
    weights = scores.softmax(dim=1)
    return weights @ v, weights @ v.abs()


CASES: dict[str, Callable[[], Case]] = {
    f"f16 D={D} {'causal' if causal else 'full'}": partial(attention_case, D, causal)
    for D in HEADS for causal in (False, True)}
