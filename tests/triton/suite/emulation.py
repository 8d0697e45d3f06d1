"""Launches of the CPU device once more, in machine code of sm_90a that the emulator runs."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

import emulated_gpu
import ml_dtypes
import torch

import blocknumba.triton as triton
from blocknumba.dispatch.launch.call import resolve_grid
from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.types import dtype_of

LIMIT_S = 20  # of one launch
MAX_PROGRAMS, MAX_ELEMENTS = 64, 1 << 17  # of a launch and of its arrays
# relative to the greatest element: approximate instructions, tf32, sums in another order
_ERRORS = {torch.float64: 1e-9, torch.float32: 2e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_TARGET = "sm_90a"


class _TooLong(Exception):
    """The limit of a launch."""


def install(counts: Counter, differences: list[str]) -> None:
    """Let every launch that is not a repetition be emulated too.

    counts: how many were the same, differed, were not compiled for the target, or were too large.
    differences: what differed, in words.
    """
    original = triton.JITFunction._any_call

    def launched(kernel, configuration, /, *arguments, stream=None, **keywords):
        tensors: list[tuple] = []
        copies = _copied(arguments, tensors)
        named = {name: _copied(value, tensors) for name, value in keywords.items()}
        result = original(kernel, configuration, *arguments, stream=stream, **keywords)
        answer = _emulated(lambda: _launch(kernel, configuration, copies, named), tensors)
        counts[answer.partition(":")[0]] += 1
        if answer.startswith("differs"):
            differences.append(f"{kernel.__name__} {answer}")
        return result

    triton.JITFunction._any_call = launched


def _launch(kernel: object, configuration: object, arguments: tuple, named: dict) -> None:
    chosen, left = kernel.chosen(named)
    left.pop("interpret", None)
    bound, changes = chosen.signature.bind(arguments, left)
    extents = resolve_grid(configuration, chosen.signature, bound, chosen.options)
    if extents[0] * extents[1] * extents[2] > MAX_PROGRAMS:
        raise _TooLong
    emulated_gpu.launch(chosen, configuration, arguments, left, _TARGET)


def _emulated(launch: Callable[[], None], tensors: list[tuple]) -> str:
    if sum(one.numel() for one, _ in tensors) > MAX_ELEMENTS:
        return "too large"

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    left = signal.alarm(LIMIT_S)
    try:
        launch()
    except _TooLong:
        return "too large"
    except BlockError as error:
        return f"refused: {error.message}"
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.alarm(left)
    worst = [_distance(*pair) for pair in tensors]
    return next((f"differs: by {far} of {one.dtype}" for far, (one, _) in zip(worst, tensors)
                 if far > _ERRORS.get(one.dtype, 0)), "same")


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The greatest difference of two tensors, relative to the greatest number of one."""
    if one.element_size() == 1 and one.is_floating_point():
        one, other = one.view(torch.uint8), other.view(torch.uint8)
    if not one.is_floating_point():
        return float((one != other).sum())
    a, b = one.double(), other.double()
    same = (a == b) | (a.isnan() & b.isnan())
    far = torch.where(same, 0.0, (a - b).abs())
    scale = a[a.isfinite()].abs().max() if a.isfinite().any() else 1.0
    return float((far / max(float(scale), 1e-30)).max()) if far.numel() else 0.0


def _copied(value: object, found: list[tuple], dtype: str | None = None) -> object:
    """Arguments with arrays of NumPy in the place of tensors, whose elements they copy.

    found: gets each tensor and its clone, which shares memory with the array.
    dtype: of the array; None for the tensor's.
    """
    if isinstance(value, torch.Tensor):
        clone = _clone(value, found)
        found.append((value.detach(), clone))
        name = dtype or str(value.dtype).removeprefix("torch.")
        bits = clone.view(_WORDS[value.element_size()]) if clone.dtype != torch.bool else clone
        return bits.numpy().view(getattr(ml_dtypes, name, None) or name)
    if isinstance(value, tuple):
        made = [_copied(item, found) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, triton.TensorWrapper):
        return _copied(value.base, found, dtype_of(value.dtype).name)
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        return type(value)(_copied(value.base, found), value.shape, value.strides,
                           value.block_shape, value.padding)
    return value


def _clone(tensor: torch.Tensor, found: list[tuple]) -> torch.Tensor:
    """A copy with the same strides; copies share memory where their tensors do."""
    storage = tensor.untyped_storage()
    shared = next((other.untyped_storage() for one, other in found
                   if one.untyped_storage().data_ptr() == storage.data_ptr()), None)
    return torch.empty(0, dtype=tensor.dtype).set_(
        storage.clone() if shared is None else shared, tensor.storage_offset(), tensor.size(),
        tensor.stride())
