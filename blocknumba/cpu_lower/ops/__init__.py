"""Code of ops: one file per family, with the names of tile_ir/ops."""

from blocknumba.cpu_lower.emitter import ELEMENTS, ROOTS
from blocknumba.cpu_lower.ops import (
    assembly, atomic, control, create, debug, dot, elementwise, gather, map, memory, order, reduce,
    scan, shape,
)

__all__ = ["ELEMENTS", "ROOTS", "assembly", "atomic", "control", "create", "debug", "dot",
           "elementwise", "gather", "map", "memory", "order", "reduce", "scan", "shape"]
