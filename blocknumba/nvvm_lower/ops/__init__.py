"""Code of ops: one file per family, with the names of tile_ir/ops."""

from blocknumba.nvvm_lower.emitter import CODE
from blocknumba.nvvm_lower.ops import (
    assembly, asynchronous, atomic, cast, control, create, debug, dot, elementwise, gather, layout,
    map, memory, order, reduce, scan, shape,
)

__all__ = ["CODE", "assembly", "asynchronous", "atomic", "cast", "control", "create", "debug",
           "dot", "elementwise", "gather", "layout", "map", "memory", "order",
           "reduce", "scan", "shape"]
