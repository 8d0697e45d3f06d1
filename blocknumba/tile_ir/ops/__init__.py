"""The ops of the tile IR: one file per family, each giving type rule and NumPy meaning."""

from blocknumba.tile_ir.ops import (
    atomic,
    cast,
    control,
    create,
    debug,
    elementwise,
    memory,
    reduce,
    shape,
)

__all__ = ["atomic", "cast", "control", "create", "debug", "elementwise", "memory", "reduce",
           "shape"]
