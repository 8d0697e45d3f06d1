"""Local algebra: what the folding builder does with each op as it is made.

Every fold is exact, bit for bit, for every input: infinities, NaN, -0.0 and wrapping included
(which NaN comes out of an operation on NaNs is not defined).
"""

from blocknumba.tile_ir.folds import (
    arithmetic,
    casts,
    comparisons,
    control,
    dot,
    memory,
    motion,
    shapes,
)

__all__ = ["arithmetic", "casts", "comparisons", "control", "dot", "memory", "motion", "shapes"]
