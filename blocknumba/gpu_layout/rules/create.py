"""Placement of ops that make tiles from nothing: wherever they are wanted, for next to nothing."""

from blocknumba.gpu_layout.ops import block_rank
from blocknumba.gpu_layout.placement import Placement, nowhere, place
from blocknumba.tile_ir.ops.create import arange, constant, num_programs, program_id, undefined

for _opdef in (arange, block_rank, constant, num_programs, program_id, undefined):
    place(_opdef, Placement(natural=nowhere, slots=0))
