"""`import blocknumba.triton.language as tl`: the functions of kernels in Triton's dialect.

Example:
>>> triton.language.float32, triton.language.cdiv is tl.cdiv
(float32, True)
"""

from __future__ import annotations

import importlib
from types import ModuleType

from blocknumba import language as _language
from blocknumba.triton.language import extra, math, random
from blocknumba.triton.language.aggregates import aggregate
from blocknumba.triton.language.standard import cdiv, sigmoid, softmax, zeros, zeros_like
from blocknumba.triton.language.types import (
    PropagateNan, block_type, const, constexpr_function, dtype, float8e4b15, float8e4b8,
    float8e5b16, must_use_result, pi32_t, pointer_type, str_to_ty, tensor, tensor_descriptor, void,
)
from blocknumba.typing.static_values import constexpr
from blocknumba.typing.triton.constants import constexpr_type
from blocknumba.typing.triton.descriptors import make_tensor_descriptor
from blocknumba.typing.triton.elements import map_elementwise
from blocknumba.typing.triton.functions import (
    abs_ as abs, add, argmax, argmin, cast, clamp, condition, cumprod, cumsum, div_rn, dot, fdiv,
    fma, full, histogram, load, MATH as _MATH, max, maximum, min, minimum, mul,
    range_ as range, sort, sqrt_rn, store, sub, sum, topk, umulhi, unsqueeze, where,
)

# what has one meaning in both dialects
_SHARED = """advance arange associative_scan assume atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor bfloat16 broadcast broadcast_to cat
    debug_barrier device_assert device_print dot_scaled expand_dims flip float16 float32
    float64 float8e4nv float8e5 gather inline_asm_elementwise int1 int16
    int32 int64 int8 interleave item join load_tensor_descriptor make_block_ptr
    max_constancy max_contiguous multiple_of num_programs
    pair_uniform_to_normal permute philox program_id rand rand4x randint randint4x
    randn randn4x ravel reduce reduce_or reshape split squeeze static_assert
    static_print static_range store_tensor_descriptor swizzle2d trans uint16 uint32
    uint64 uint8 uint_to_uniform_float view xor_sum""".split()
tuple = tuple  # which kernels have as Python's
_MODULES = ("extra", "math", "random")  # below this one
globals().update({_name: getattr(_language, _name) for _name in _SHARED}, **_MATH)

__all__ = sorted({
    *_SHARED, *_MATH, *_MODULES,
    "PropagateNan", "abs", "add", "aggregate", "argmax", "argmin", "block_type", "cast", "cdiv",
    "clamp", "condition", "const", "constexpr", "constexpr_function", "constexpr_type", "cumprod",
    "cumsum", "div_rn", "dot", "dtype", "fdiv", "float8e4b15", "float8e4b8", "float8e5b16", "fma",
    "full", "histogram", "load", "make_tensor_descriptor", "map_elementwise", "max", "maximum",
    "min", "minimum", "mul", "must_use_result", "pi32_t", "pointer_type", "range", "sigmoid",
    "softmax", "sort", "sqrt_rn", "store", "str_to_ty", "sub", "sum", "tensor",
    "tensor_descriptor", "topk", "tuple", "umulhi", "unsqueeze", "void", "where", "zeros",
    "zeros_like"})


def __getattr__(name: str) -> ModuleType:
    """The modules below that have all of this one's names, imported when they are asked for."""
    if name != "core":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return importlib.import_module(f"{__name__}.{name}")
