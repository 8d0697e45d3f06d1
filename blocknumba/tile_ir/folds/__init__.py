"""Folds: the local simplifications that the builder tries on each op as it is made.

Every fold is exact, bit for bit, for every input: infinities, NaN, -0.0 and wrapping included
(which NaN comes out of an operation on NaNs is not defined).
"""

# in this order: an op tries its folds as they were declared
from blocknumba.tile_ir.folds import arithmetic, effects, shapes  # isort: skip

__all__ = ["arithmetic", "effects", "shapes"]
