"""Placement of elementwise ops: any layout, the same for all; they differ in what they cost."""

from blocknumba.gpu_layout.placement import Placement, place
from blocknumba.tile_ir.opdef import OPS

# Issue slots of one warp per register, where it is not 1.
_SLOTS = {
    8: "exp exp2 log log2 rsqrt",
    16: "div sqrt log10 sin cos mod floordiv popc clz ffs umulhi",
    40: "expm1 log1p cbrt tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc",
    80: "power gamma lgamma nextafter",
}

for _slots, _names in _SLOTS.items():
    for _name in _names.split():
        place(OPS[_name], Placement(slots=_slots))
