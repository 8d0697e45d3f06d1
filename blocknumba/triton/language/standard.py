"""Functions of triton.language that are written in Triton's dialect."""

from __future__ import annotations

from blocknumba.language import flip, interleave, ravel, reduce_or, squeeze, swizzle2d, xor_sum
from blocknumba.triton.language.types import constexpr_function
from blocknumba.typing.dialect import TRITON_NAME
from blocknumba.typing.static_values import constexpr
from blocknumba.typing.triton import functions as rules
from blocknumba.typing.triton.functions import (
    argmax, argmin, cumprod, cumsum, max, min, sigmoid, sort, sum, topk,
)

__all__ = ["argmax", "argmin", "cdiv", "cumprod", "cumsum", "flip", "interleave", "max", "min",
           "ravel", "reduce_or", "sigmoid", "softmax", "sort", "squeeze", "sum", "swizzle2d",
           "topk", "xor_sum", "zeros", "zeros_like"]
_exp, _fdiv = rules.MATH["exp"], rules.fdiv


def cdiv(x, div):
    """ceil(x / div) of positive integers, in a kernel and outside."""
    return (x + (div - 1)) // div


def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    """exp(x - max(x)) / sum(exp(x - max(x))) along dim, the first axis where none is given."""
    along: constexpr = 0 if dim is None else dim
    shifted = _exp(x - max(x, along, keep_dims=True))
    return _fdiv(shifted, sum(shifted, along, keep_dims=True), ieee_rounding)


def zeros_like(input):
    """A tile of zeros of input's shape and dtype."""
    return rules.full(input.shape, 0, input.dtype)


def zeros(shape, dtype):
    """A tile of zeros."""
    return rules.full(shape, 0, dtype)


@constexpr_function
def _log2(i: int) -> int:
    """The exponent of a power of two; kernels that have networks of their own ask for it."""
    return i.bit_length() - 1


for _function in (cdiv, softmax, zeros_like, zeros):
    _function.__dialect__ = TRITON_NAME
