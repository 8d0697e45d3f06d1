"""The ops that `dot` is lowered to when wgmma does not take it: mma and fma_dot.

Their operands a and b are tiles in shared memory, from which every thread reads the elements that
it multiplies.  Operands of mma may also be tiles in registers.
"""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.gpu_layout.dots.fma import FmaPlan, fma_plan
from blocknumba.gpu_layout.dots.mma import Instruction, MmaPlan, mma_plan
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import EFFECT, attribute, op
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ops.dot import PRECISIONS


def _require_fitting(name: str, a: TileType, b: TileType, acc: TileType) -> None:
    fits = (
        a.shape[:-2] == b.shape[:-2] == acc.shape[:-2]
        and (a.shape[-2], b.shape[-1]) == acc.shape[-2:]
        and a.shape[-1] == b.shape[-2]
    )
    require(fits, "{}: given {}, {} and {}, accepted shapes (..., M, K), (..., K, N), (..., M, N)",
            name, a, b, acc)


@op(EFFECT)
def mma(a, b, acc, *, instruction, warps, num_warps, precision="ieee", swapped=False,
        rows=(), columns=(), depths=(), rounded=()) -> TileType:
    """acc + a @ b by mma.sync, the matrix instruction of one warp.

    a: (..., M, K), b: (..., K, N), each in shared memory or in registers; acc: (..., M, N).
    instruction: an Instruction as text.
    warps, num_warps, swapped, and the orders of rows, columns and depths: as of mma_plan, which
    returns the layouts.
    precision: of float32, "tf32" or "tf32x3": operands are rounded when they are read.
    rounded: numbers of the operands, 0 and 1, that are tf32 already.
    """
    _require_fitting("mma", a, b, acc)
    require(precision in PRECISIONS, "mma: precision must be one of {}, got {!r}", PRECISIONS,
            precision)
    return acc


@op(EFFECT)
def fma_dot(a, b, acc, *, layout) -> TileType:
    """acc + a @ b by fused multiply-adds, in order along K.

    a: (..., M, K), b: (..., K, N), in shared memory; acc: (..., M, N).
    layout: of acc and the result; every thread reads the elements of a and b that it needs.
    """
    _require_fitting("fma_dot", a, b, acc)
    for tile in (a, b):
        require(is_buffer(tile), "fma_dot: given {}, accepted a tile in shared memory", tile)
    return acc


DOTS = (mma, fma_dot)


def plan_of(dot: Op) -> MmaPlan | FmaPlan:
    """The plan of an mma or an fma_dot."""
    a, acc = dot.a.type, dot.acc.type
    if dot.opdef is fma_dot:
        return fma_plan(attribute(dot, "layout"), a.shape[-1])
    attrs = dot.attrs
    orders = tuple(attribute(dot, name) for name in ("rows", "columns", "depths"))
    return mma_plan(Instruction.parse(attrs["instruction"]), acc.shape, a.shape[-1],
                    attrs["warps"], attrs["num_warps"], attribute(dot, "swapped"), orders)
