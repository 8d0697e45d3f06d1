"""Placement of the ops of the tile IR: one file per family, of the same name as in tile_ir/ops."""

from blocknumba.gpu_layout.rules import (
    atomic,
    cast,
    create,
    debug,
    elementwise,
    memory,
    reduce,
    shape,
)

__all__ = ["atomic", "cast", "create", "debug", "elementwise", "memory", "reduce", "shape"]
