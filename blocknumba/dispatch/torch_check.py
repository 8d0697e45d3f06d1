"""Torch's own comparison of tensors with what they were: all of them in one call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

TensorCheck = Callable[..., bool]


def no_check(*_: object) -> bool:
    """A check that cannot tell."""
    return False


def tensor_check(tensors: Sequence[object]) -> TensorCheck:
    """Whether tensors have these dtypes, shapes, strides, devices and classes.

    It is what torch.compile guards its code with.  It may say no to equal tensors, for example
    in another autograd mode, but never yes to different ones.
    """
    if not tensors or not _is_exact():
        return no_check
    return _guard(tensors)


def _guard(tensors: Sequence[object]) -> TensorCheck:
    return sys.modules["torch"]._C._dynamo.guards.TensorGuards(
        *tensors, dynamic_dims_sizes=[list(tensor.shape) for tensor in tensors],
        dynamic_dims_strides=[list(tensor.stride()) for tensor in tensors]).check


@functools.cache
def _is_exact() -> bool:
    """Whether this Torch has the check, and it tells apart all that must be."""
    torch = sys.modules["torch"]
    try:
        tensor = torch.zeros((2, 3))
        check = _guard((tensor,))
        others = (torch.zeros((3, 2)), torch.zeros((2, 3, 1)), torch.zeros((3, 2)).t(),
                  torch.zeros((2, 3), dtype=torch.int32), torch.zeros((2, 3), device="meta"),
                  torch.zeros((2, 3), dtype=torch.complex64).imag, torch.nn.Parameter(tensor),
                  torch._neg_view(tensor))
        return check(tensor) and not any(map(check, others))
    except (AttributeError, TypeError, RuntimeError):
        return False
