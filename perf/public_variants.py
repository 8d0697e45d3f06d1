"""Triton's own run under other circumstances, which tell what a difference from it comes from.

"memory": what is allocated has held other numbers before, so that results change which are made of
memory that nothing wrote, or that lies outside of an array.  "ieee": float32 products without tf32.
"ulp": the floats that a kernel is given are moved by a unit in their last place, about.
"""

from __future__ import annotations

import contextlib
import gc
import tempfile
from collections.abc import Iterator

import torch

MiB = 1 << 20
# Blocks of both pools of Torch's allocator: what is allocated later comes from them
_BLOCKS = 128 * [MiB // 2] + 32 * [20 * MiB]
ILL = 4  # times Triton's own change under "ulp" is as far as ours may be


@contextlib.contextmanager
def circumstances(variant: str, device: str) -> Iterator[None]:
    """Triton runs under a variant; as usual without one."""
    if variant == "memory":
        blocks = [torch.empty(size // 4, device=device).uniform_(-100, 100) for size in _BLOCKS]
        del blocks
    elif variant == "ulp":
        _move_inputs()
    with ieee_products() if variant == "ieee" else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def ieee_products() -> Iterator[None]:
    """Let Triton compile all products of float32 as "ieee", whatever a kernel asks for."""
    import triton  # only this side's process needs Triton
    from triton.language.semantic import TritonSemantic

    dot, folder = TritonSemantic.dot, triton.knobs.cache.dir
    compiled = [kernel for kernel in gc.get_objects()
                if isinstance(kernel, triton.runtime.JITFunction)]

    def exact(self: TritonSemantic, lhs: object, rhs: object, acc: object, precision: object,
              *others: object) -> object:
        is_wide = lhs.dtype.is_fp32() and rhs.dtype.is_fp32()
        return dot(self, lhs, rhs, acc, "ieee" if is_wide else precision, *others)

    def forget() -> None:
        for kernel in compiled:
            kernel.device_caches.clear()

    with tempfile.TemporaryDirectory() as made:
        TritonSemantic.dot, triton.knobs.cache.dir = exact, made
        forget()
        try:
            yield
        finally:
            TritonSemantic.dot, triton.knobs.cache.dir = dot, folder
            forget()


def _move_inputs() -> None:
    import triton  # only this side's process needs Triton

    run, seen = triton.runtime.JITFunction.run, set()

    def moved(kernel: object, *arguments: object, **keywords: object) -> object:
        for value in (*arguments, *keywords.values()):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and (
                    value.element_size() > 1 and value.data_ptr() not in seen):
                seen.add(value.data_ptr())  # a result that the next kernel reads is moved once
                _move(value.data)
        return run(kernel, *arguments, **keywords)

    triton.runtime.JITFunction.run = moved


def _move(values: torch.Tensor) -> None:
    """Multiply by 1 + u or 1 - u, u a unit in the last place: by the generator of a seed."""
    unit = torch.finfo(values.dtype).eps
    generator = torch.Generator(values.device).manual_seed(1)
    signs = torch.randint(0, 2, values.shape, generator=generator, device=values.device) * 2 - 1
    values.mul_((1 + signs.double() * unit).to(values.dtype))


def is_explained(variant: str, ours: torch.Tensor, wanted: torch.Tensor,
                 other: torch.Tensor) -> bool:
    """Whether what Triton computes under a variant explains that ours differs from its own result.

    wanted, other: Triton's, as usual and under the variant.  "ieee" explains what is no farther
    from `other` than Triton's is, "ulp" what is not far beyond Triton's own change.
    """
    if not wanted.is_floating_point():
        return False
    own, changed = _distance(ours, wanted), _distance(other, wanted)
    if variant == "ulp":
        return own[1] <= ILL * changed[1] and own[0] <= ILL * changed[0]
    nearness = _distance(ours, other)
    return nearness[0] <= changed[0] and nearness[1] <= changed[1]


def _distance(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """Root mean square and greatest of a difference; NaN and infinities in one alone count all."""
    a, b = a.double(), b.double()
    apart = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a - b).abs())
    apart = apart.nan_to_num(float("inf"))
    return apart.square().mean().sqrt().item(), apart.max().item()
