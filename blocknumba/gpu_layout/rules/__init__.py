"""Placement of the ops of the tile IR: one file per family, of the same name as in tile_ir/ops."""

from blocknumba.gpu_layout.rules import (
    asynchronous,
    atomic,
    cast,
    create,
    debug,
    dot,
    elementwise,
    memory,
    reduce,
    shape,
)

__all__ = ["asynchronous", "atomic", "cast", "create", "debug", "dot", "elementwise", "memory",
           "reduce", "shape"]
