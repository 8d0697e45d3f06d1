"""The public names of the language, for `import blocknumba.language as tl` too."""

from __future__ import annotations

from types import SimpleNamespace

from blocknumba import libdevice
from blocknumba.library import (
    cdiv, div_rn, fdiv, next_power_of_2, sigmoid, softmax, sqrt_rn, swizzle2d,
    welford_combine,
)
from blocknumba.random import (
    pair_uniform_to_normal, philox, rand, rand4x, randint, randint4x, randn, randn4x,
    uint_to_uniform_float,
)
from blocknumba.tile_ir.ir.types import (
    bfloat16, bool_, float16, float32, float64, float8_e4m3fn, float8_e5m2, int16, int32, int64,
    int8, uint16, uint32, uint64, uint8,
)
from blocknumba.typing.functions.assembly import inline_asm_elementwise
from blocknumba.typing.functions.concatenate import cat, concatenate, repeat, stack
from blocknumba.typing.functions.count import histogram
from blocknumba.typing.functions.create import (
    arange, cast, empty, full, full_like, num_programs, ones, ones_like, program_id, zeros,
    zeros_like,
)
from blocknumba.typing.functions.debug import (
    assume, debug_barrier, device_assert, device_print, max_constancy, max_contiguous, multiple_of,
    static_assert, static_print,
)
from blocknumba.typing.functions.descriptors import (
    advance, load_tensor_descriptor, make_block_ptr, make_tensor_descriptor,
    store_tensor_descriptor,
)
from blocknumba.typing.functions.dot import dot, dot_scaled
from blocknumba.typing.functions.elementwise import (
    BIT_FUNCTIONS, FLOAT_FUNCTIONS, absolute as abs, clamp, fma, maximum, minimum, round, umulhi,
    where,
)
from blocknumba.typing.functions.map import map_ as map
from blocknumba.typing.functions.memory import ATOMICS, atomic_cas, load, store
from blocknumba.typing.functions.order import argsort, median, sort, topk
from blocknumba.typing.functions.parts import extract, gather, insert, roll
from blocknumba.typing.functions.reduce import (
    all, any, argmax, argmin, max, min, prod, reduce_and, reduce_or, sum, xor_sum,
)
from blocknumba.typing.functions.scan import (
    associative_scan, cummax, cummin, cumprod, cumsum, reduce_ as reduce,
)
from blocknumba.typing.functions.scatter import scatter
from blocknumba.typing.functions.search import searchsorted, unique_counts
from blocknumba.typing.functions.shape import (
    broadcast, broadcast_to, expand_dims, flip, interleave, item, join, permute, ravel, reshape,
    split, squeeze, swapaxes, trans, view,
)
from blocknumba.typing.functions.spans import (
    block, grid_spans, persistent, range_ as range, span, spans,
)
from blocknumba.typing.functions.statistics import (
    count_nonzero, logsumexp, mean, nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean,
    nanmin, nanprod, nanstd, nansum, nanvar, ptp, std, var, welford,
)
from blocknumba.typing.static_values import constexpr, static_range

# Families that are rows of a table: exp, log, sqrt ...; popc, clz, ffs; atomic_add ...
globals().update(FLOAT_FUNCTIONS | BIT_FUNCTIONS | ATOMICS)

# Triton's names of CUDA's functions.
math = libdevice
extra = SimpleNamespace(libdevice=libdevice, cuda=SimpleNamespace(libdevice=libdevice))

# Triton's spellings of dtypes.
int1 = bool_
float8e5, float8e4nv = float8_e5m2, float8_e4m3fn

__all__ = sorted({
    "abs", "advance", "all", "any", "arange", "argmax", "argmin", "argsort", "associative_scan",
    "assume", "atomic_cas", "bfloat16", "block", "bool_", "broadcast", "broadcast_to", "cast",
    "cdiv", "clamp", "constexpr", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum",
    "debug_barrier", "device_assert", "device_print", "div_rn", "dot", "dot_scaled", "empty",
    "expand_dims", "fdiv", "flip", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
    "float8e4nv", "float8e5", "fma", "full", "full_like", "grid_spans", "inline_asm_elementwise",
    "int1", "int16", "int32", "int64", "int8", "interleave", "item", "join", "libdevice", "load",
    "load_tensor_descriptor", "logsumexp", "make_block_ptr", "make_tensor_descriptor", "map", "max",
    "max_constancy", "max_contiguous", "maximum", "mean", "median", "min", "minimum", "multiple_of",
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar", "next_power_of_2", "num_programs", "ones", "ones_like",
    "pair_uniform_to_normal", "permute", "persistent", "philox", "prod", "program_id", "ptp",
    "rand", "rand4x", "randint", "randint4x", "randn", "randn4x", "range", "ravel", "reduce",
    "reduce_and", "reduce_or", "reshape", "round", "sigmoid", "softmax", "sort", "span", "spans",
    "split", "sqrt_rn", "squeeze", "static_assert", "static_print", "static_range", "std", "store",
    "store_tensor_descriptor", "sum", "swapaxes", "swizzle2d", "topk", "trans", "uint16", "uint32",
    "uint64", "uint8", "uint_to_uniform_float", "umulhi", "var", "view", "welford",
    "welford_combine", "where", "xor_sum", "zeros", "zeros_like",
    "histogram", "searchsorted", "unique_counts",
    "cat", "concatenate", "extract", "gather", "insert", "repeat", "roll", "scatter", "stack",
    *FLOAT_FUNCTIONS, *BIT_FUNCTIONS, *ATOMICS,
})
