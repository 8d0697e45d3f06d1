"""The code face of ops: one file per family, of the name that it has in tile_ir/ops."""

from blocknumba.nvvm_lower.emitter import CODE
from blocknumba.nvvm_lower.ops import (
    atomic,
    cast,
    control,
    create,
    debug,
    elementwise,
    layout,
    memory,
    reduce,
    shape,
)

__all__ = ["CODE", "atomic", "cast", "control", "create", "debug", "elementwise", "layout",
           "memory", "reduce", "shape"]
