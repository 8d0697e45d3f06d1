"""The public names of the language, for `import blocknumba.language as tl` too."""

from typing import Any

from blocknumba import abs as abs
from blocknumba import acos as acos
from blocknumba import acosh as acosh
from blocknumba import advance as advance
from blocknumba import all as all
from blocknumba import any as any
from blocknumba import arange as arange
from blocknumba import argmax as argmax
from blocknumba import argmin as argmin
from blocknumba import argsort as argsort
from blocknumba import asin as asin
from blocknumba import asinh as asinh
from blocknumba import associative_scan as associative_scan
from blocknumba import assume as assume
from blocknumba import atan as atan
from blocknumba import atan2 as atan2
from blocknumba import atanh as atanh
from blocknumba import atomic_add as atomic_add
from blocknumba import atomic_and as atomic_and
from blocknumba import atomic_cas as atomic_cas
from blocknumba import atomic_max as atomic_max
from blocknumba import atomic_min as atomic_min
from blocknumba import atomic_or as atomic_or
from blocknumba import atomic_xchg as atomic_xchg
from blocknumba import atomic_xor as atomic_xor
from blocknumba import bfloat16 as bfloat16
from blocknumba import block as block
from blocknumba import bool_ as bool_
from blocknumba import broadcast as broadcast
from blocknumba import broadcast_to as broadcast_to
from blocknumba import cast as cast
from blocknumba import cat as cat
from blocknumba import cbrt as cbrt
from blocknumba import cdiv as cdiv
from blocknumba import ceil as ceil
from blocknumba import clamp as clamp
from blocknumba import clz as clz
from blocknumba import concatenate as concatenate
from blocknumba import constexpr as constexpr
from blocknumba import copysign as copysign
from blocknumba import cos as cos
from blocknumba import cosh as cosh
from blocknumba import count_nonzero as count_nonzero
from blocknumba import cummax as cummax
from blocknumba import cummin as cummin
from blocknumba import cumprod as cumprod
from blocknumba import cumsum as cumsum
from blocknumba import debug_barrier as debug_barrier
from blocknumba import device_assert as device_assert
from blocknumba import device_print as device_print
from blocknumba import div as div
from blocknumba import div_rn as div_rn
from blocknumba import dot as dot
from blocknumba import dot_scaled as dot_scaled
from blocknumba import empty as empty
from blocknumba import erf as erf
from blocknumba import erfc as erfc
from blocknumba import exp as exp
from blocknumba import exp2 as exp2
from blocknumba import expand_dims as expand_dims
from blocknumba import expm1 as expm1
from blocknumba import extract as extract
from blocknumba import fdiv as fdiv
from blocknumba import ffs as ffs
from blocknumba import flip as flip
from blocknumba import float16 as float16
from blocknumba import float32 as float32
from blocknumba import float64 as float64
from blocknumba import float8_e4m3fn as float8_e4m3fn
from blocknumba import float8_e5m2 as float8_e5m2
from blocknumba import float8e4nv as float8e4nv
from blocknumba import float8e5 as float8e5
from blocknumba import floor as floor
from blocknumba import fma as fma
from blocknumba import fmax as fmax
from blocknumba import fmin as fmin
from blocknumba import full as full
from blocknumba import full_like as full_like
from blocknumba import gamma as gamma
from blocknumba import gather as gather
from blocknumba import grid_spans as grid_spans
from blocknumba import histogram as histogram
from blocknumba import hypot as hypot
from blocknumba import inline_asm_elementwise as inline_asm_elementwise
from blocknumba import insert as insert
from blocknumba import int1 as int1
from blocknumba import int16 as int16
from blocknumba import int32 as int32
from blocknumba import int64 as int64
from blocknumba import int8 as int8
from blocknumba import interleave as interleave
from blocknumba import isfinite as isfinite
from blocknumba import isinf as isinf
from blocknumba import isnan as isnan
from blocknumba import item as item
from blocknumba import join as join
from blocknumba import lgamma as lgamma
from blocknumba import libdevice as libdevice
from blocknumba import load as load
from blocknumba import load_tensor_descriptor as load_tensor_descriptor
from blocknumba import log as log
from blocknumba import log10 as log10
from blocknumba import log1p as log1p
from blocknumba import log2 as log2
from blocknumba import logsumexp as logsumexp
from blocknumba import make_block_ptr as make_block_ptr
from blocknumba import make_tensor_descriptor as make_tensor_descriptor
from blocknumba import map as map
from blocknumba import max as max
from blocknumba import max_constancy as max_constancy
from blocknumba import max_contiguous as max_contiguous
from blocknumba import maximum as maximum
from blocknumba import mean as mean
from blocknumba import median as median
from blocknumba import min as min
from blocknumba import minimum as minimum
from blocknumba import multiple_of as multiple_of
from blocknumba import nanargmax as nanargmax
from blocknumba import nanargmin as nanargmin
from blocknumba import nancumprod as nancumprod
from blocknumba import nancumsum as nancumsum
from blocknumba import nanmax as nanmax
from blocknumba import nanmean as nanmean
from blocknumba import nanmin as nanmin
from blocknumba import nanprod as nanprod
from blocknumba import nanstd as nanstd
from blocknumba import nansum as nansum
from blocknumba import nanvar as nanvar
from blocknumba import next_power_of_2 as next_power_of_2
from blocknumba import nextafter as nextafter
from blocknumba import num_programs as num_programs
from blocknumba import ones as ones
from blocknumba import ones_like as ones_like
from blocknumba import pair_uniform_to_normal as pair_uniform_to_normal
from blocknumba import permute as permute
from blocknumba import persistent as persistent
from blocknumba import philox as philox
from blocknumba import popc as popc
from blocknumba import prod as prod
from blocknumba import program_id as program_id
from blocknumba import ptp as ptp
from blocknumba import rand as rand
from blocknumba import rand4x as rand4x
from blocknumba import randint as randint
from blocknumba import randint4x as randint4x
from blocknumba import randn as randn
from blocknumba import randn4x as randn4x
from blocknumba import range as range
from blocknumba import ravel as ravel
from blocknumba import reduce as reduce
from blocknumba import reduce_and as reduce_and
from blocknumba import reduce_or as reduce_or
from blocknumba import repeat as repeat
from blocknumba import reshape as reshape
from blocknumba import rint as rint
from blocknumba import roll as roll
from blocknumba import round as round
from blocknumba import rsqrt as rsqrt
from blocknumba import scatter as scatter
from blocknumba import searchsorted as searchsorted
from blocknumba import sigmoid as sigmoid
from blocknumba import sin as sin
from blocknumba import sinh as sinh
from blocknumba import softmax as softmax
from blocknumba import sort as sort
from blocknumba import span as span
from blocknumba import spans as spans
from blocknumba import split as split
from blocknumba import sqrt as sqrt
from blocknumba import sqrt_rn as sqrt_rn
from blocknumba import squeeze as squeeze
from blocknumba import stack as stack
from blocknumba import static_assert as static_assert
from blocknumba import static_print as static_print
from blocknumba import static_range as static_range
from blocknumba import std as std
from blocknumba import store as store
from blocknumba import store_tensor_descriptor as store_tensor_descriptor
from blocknumba import sum as sum
from blocknumba import swapaxes as swapaxes
from blocknumba import swizzle2d as swizzle2d
from blocknumba import tan as tan
from blocknumba import tanh as tanh
from blocknumba import topk as topk
from blocknumba import trans as trans
from blocknumba import trunc as trunc
from blocknumba import uint16 as uint16
from blocknumba import uint32 as uint32
from blocknumba import uint64 as uint64
from blocknumba import uint8 as uint8
from blocknumba import uint_to_uniform_float as uint_to_uniform_float
from blocknumba import umulhi as umulhi
from blocknumba import unique_counts as unique_counts
from blocknumba import var as var
from blocknumba import view as view
from blocknumba import welford as welford
from blocknumba import welford_combine as welford_combine
from blocknumba import where as where
from blocknumba import xor_sum as xor_sum
from blocknumba import zeros as zeros
from blocknumba import zeros_like as zeros_like
from blocknumba import libdevice as math

extra: Any

__all__ = [
    "abs", "acos", "acosh", "advance", "all", "any", "arange", "argmax", "argmin", "argsort",
    "asin", "asinh", "associative_scan", "assume", "atan", "atan2", "atanh", "atomic_add",
    "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg",
    "atomic_xor", "bfloat16", "block", "bool_", "broadcast", "broadcast_to", "cast", "cat", "cbrt",
    "cdiv", "ceil", "clamp", "clz", "concatenate", "constexpr", "copysign", "cos", "cosh",
    "count_nonzero", "cummax", "cummin", "cumprod", "cumsum", "debug_barrier", "device_assert",
    "device_print", "div", "div_rn", "dot", "dot_scaled", "empty", "erf", "erfc", "exp", "exp2",
    "expand_dims", "expm1", "extract", "fdiv", "ffs", "flip", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e5m2", "float8e4nv", "float8e5", "floor", "fma", "fmax", "fmin",
    "full", "full_like", "gamma", "gather", "grid_spans", "histogram", "hypot",
    "inline_asm_elementwise", "insert", "int1", "int16", "int32", "int64", "int8", "interleave",
    "isfinite", "isinf", "isnan", "item", "join", "lgamma", "libdevice", "load",
    "load_tensor_descriptor", "log", "log10", "log1p", "log2", "logsumexp", "make_block_ptr",
    "make_tensor_descriptor", "map", "max", "max_constancy", "max_contiguous", "maximum", "mean",
    "median", "min", "minimum", "multiple_of", "nanargmax", "nanargmin", "nancumprod", "nancumsum",
    "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "next_power_of_2",
    "nextafter", "num_programs", "ones", "ones_like", "pair_uniform_to_normal", "permute",
    "persistent", "philox", "popc", "prod", "program_id", "ptp", "rand", "rand4x", "randint",
    "randint4x", "randn", "randn4x", "range", "ravel", "reduce", "reduce_and", "reduce_or",
    "repeat", "reshape", "rint", "roll", "round", "rsqrt", "scatter", "searchsorted", "sigmoid",
    "sin", "sinh", "softmax", "sort", "span", "spans", "split", "sqrt", "sqrt_rn", "squeeze",
    "stack", "static_assert", "static_print", "static_range", "std", "store",
    "store_tensor_descriptor", "sum", "swapaxes", "swizzle2d", "tan", "tanh", "topk", "trans",
    "trunc", "uint16", "uint32", "uint64", "uint8", "uint_to_uniform_float", "umulhi",
    "unique_counts", "var", "view", "welford", "welford_combine", "where", "xor_sum", "zeros",
    "zeros_like",
]
