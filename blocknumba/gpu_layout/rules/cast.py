"""Placement of casts: as of elementwise ops."""

from blocknumba.gpu_layout.placement import Placement, place
from blocknumba.tile_ir.ops.cast import bitcast, cast

place(cast, Placement(slots=2))
place(bitcast, Placement(slots=0))
