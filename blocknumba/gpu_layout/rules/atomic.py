"""Placement of atomics: coalesced, as of stores."""

from blocknumba.gpu_layout.placement import Placement, place
from blocknumba.tile_ir.ops.atomic import atomic_cas, atomic_rmw

for _opdef in (atomic_cas, atomic_rmw):
    place(_opdef, Placement())
