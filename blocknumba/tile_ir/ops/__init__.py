"""The ops of the tile IR: one file per family, with type rules and NumPy numerics."""

from blocknumba.tile_ir.ops import (
    assembly,
    cast,
    control,
    create,
    debug,
    directed,
    dot,
    elementwise,
    gather,
    map,
    memory,
    order,
    reduce,
    scan,
    shape,
    views,
)

# last: they are registered with the ops above
from blocknumba.tile_ir import folds  # isort: skip  # noqa: F401

__all__ = ["assembly", "cast", "control", "create", "debug", "directed", "dot", "elementwise",
           "gather", "map", "memory", "order", "reduce", "scan", "shape", "views"]
