"""Placement of accesses to global memory: coalesced; coalescing.py says what other layouts cost."""

from blocknumba.gpu_layout.placement import Placement, place
from blocknumba.tile_ir.ops.memory import load, store

for _opdef in (load, store):
    place(_opdef, Placement())
