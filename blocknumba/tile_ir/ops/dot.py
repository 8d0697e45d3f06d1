"""The dot op: a @ b + acc."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import PURE, attribute, op
from blocknumba.tile_ir.ir.types import (
    DType, TileType, bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2, int32, int8,
    uint8,
)
from blocknumba.tile_ir.ops.numerics import convert

PRECISIONS = ("ieee", "tf32", "tf32x3")

# operand dtypes of one dot, and the dtypes of the accumulator that they may have
ACCUMULATORS: dict[frozenset[DType], tuple[DType, ...]] = {
    frozenset((float16,)): (float32, float16),
    frozenset((bfloat16,)): (float32,),
    frozenset((float8_e4m3fn, float8_e5m2)): (float32,),
    frozenset((int8, uint8)): (int32,),
    frozenset((float32,)): (float32,),
    frozenset((float64,)): (float64,),
}

# Of one addition: twice the unit roundoff of the accumulator, for hardware that truncates.
SUM_ERROR = {float16: 2.0**-10, float32: 2.0**-23, float64: 2.0**-52, int32: 0.0}
# Tensor cores of sm_90 keep 14 bits of sums of products of 8-bit floats.
# Source: DeepSeek-V3 Technical Report (arXiv 2412.19437), section 3.3.2.
FLOAT8_SUM_ERROR = 2.0**-13
# Of one multiplication of operands that are rounded already.
PRODUCT_ERROR = {"ieee": 0.0, "tf32": 0.0, "tf32x3": 2.0**-21}

_EXACT_IN_FLOAT32 = 1 << 24  # integers up to this are float32 numbers
_LARGEST = {"i": 128, "u": 255}  # magnitudes of 8-bit integers


def accumulators(a: DType, b: DType) -> tuple[DType, ...]:
    """Accumulator dtypes that a dot of these operands may have, the usual one first; or none."""
    for operands, accepted in ACCUMULATORS.items():
        if a in operands and b in operands:
            return accepted
    return ()


def sum_error(operand: DType, accumulator: DType) -> float:
    """Relative error of one addition in the accumulator."""
    is_float8 = operand.is_float and operand.bits == 8
    return FLOAT8_SUM_ERROR if is_float8 else SUM_ERROR[accumulator]


def is_ieee_float32(of: Op) -> bool:
    """Whether a dot is of IEEE float32, which tensor cores would round to tf32."""
    return of.a.type.dtype == float32 and attribute(of, "precision") == "ieee"


@op(PURE)
def dot(a, b, acc, *, precision="ieee") -> TileType:
    """a @ b + acc.

    a: (M, K), b: (K, N), acc: (M, N), or all three with one leading axis more, of one extent.
    float16, bfloat16 and 8-bit floats (of either kind) are multiplied exactly and added in
    float32, or, of float16, in float16; int8 and uint8 are added in int32, modulo 2**32; float32
    and float64 in themselves.  The order of the additions is not stated, nor the sign of a zero.
    precision, of float32: "ieee"; "tf32": operands rounded to 11 significant bits, ties away from
    zero or, from Hopper on, to even; "tf32x3": each operand taken as the sum of two such numbers.
    Error: at most ((K + 2) * sum_error + PRODUCT_ERROR) * (|a| @ |b| + |acc|).
    Errors: shapes that do not fit; dtypes that cannot meet; a precision of other dtypes.
    Source: numpy.matmul.
    """
    rank = len(a.shape)
    require(rank in (2, 3) and len(b.shape) == len(acc.shape) == rank,
            "dot: given {}, {} and {}, accepted tiles of one rank, 2 or 3", a, b, acc)
    require(a.shape[-1] == b.shape[-2], "dot: a has {} columns, b has {} rows", a.shape[-1],
            b.shape[-2])
    fits = a.shape[:-2] == b.shape[:-2] and acc.shape == (*a.shape[:-1], b.shape[-1])
    require(fits, "dot: given {}, {} and acc {}, accepted acc of the product's shape", a, b, acc)
    accepted = accumulators(a.dtype, b.dtype)
    require(accepted, "dot: a is {}, b is {}, accepted float16, bfloat16, float32 or float64 of "
            "one kind, 8-bit floats, or 8-bit integers", a.dtype, b.dtype)
    require(acc.dtype in accepted, "dot: acc is {}, accepted {}", acc.dtype,
            " or ".join(map(str, accepted)))
    require(precision in PRECISIONS, "dot: precision must be one of {}, got {!r}", PRECISIONS,
            precision)
    require(precision == "ieee" or a.dtype == float32,
            "dot: precision {!r} is of float32, given {}", precision, a.dtype)
    return acc


@dot.numpy
def _(a, b, acc, *, precision="ieee"):
    if acc.dtype == np.int32:
        return _integer_dot(a, b) + acc
    wide = np.dtype(np.float64 if acc.dtype == np.float64 else np.float32)
    if precision == "tf32":
        a, b = rounded_to_tf32(a), rounded_to_tf32(b)
    product = np.matmul(convert(a, wide), convert(b, wide))
    return convert(product + convert(acc, wide), acc.dtype)


def _integer_dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b of 8-bit integers, modulo 2**32: through floats, for which NumPy is fast."""
    largest = a.shape[-1] * _LARGEST[a.dtype.kind] * _LARGEST[b.dtype.kind]
    # float64 would not be exact from 2**37 columns on
    wide = np.float32 if largest <= _EXACT_IN_FLOAT32 else np.float64
    product = np.matmul(a.astype(wide), b.astype(wide))
    return product.astype(np.int64).astype(np.int32)


def rounded_to_tf32(x: np.ndarray) -> np.ndarray:
    """float32 with 11 significant bits: to nearest, ties away from zero, as cvt.rna.tf32."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)
