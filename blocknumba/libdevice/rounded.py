"""Arithmetic in every rounding mode: exact results, rounded once.

add_rz and its like keep the dtype of their operands; fadd_rz is of float32, dadd_rz of float64.
"""

from __future__ import annotations

from blocknumba.libdevice import floats
from blocknumba.libdevice.parts import named, of_dtype
from blocknumba.tile_ir.ir.types import float32, float64
from blocknumba.tile_ir.ops.directed import MODES
from blocknumba.typing.functions.elementwise import DIRECTED_FUNCTIONS

_DIRECTIONS = {"rn": "to nearest", **MODES}
_TYPES = {"f": float32, "d": float64}

globals().update(DIRECTED_FUNCTIONS)


def _sub(add, mode):
    def sub(x, y):
        return add(x, -y)

    return named(sub, f"sub_{mode}", f"x - y, rounded {_DIRECTIONS[mode]}.")


def _rcp(div, mode):
    def rcp(x):
        return div(1.0, x)

    return named(rcp, f"rcp_{mode}", f"1 / x, rounded {_DIRECTIONS[mode]}.")


_FUNCTIONS = ("add", "sub", "mul", "div", "rcp", "sqrt", "fma")
for _mode in _DIRECTIONS:
    if _mode != "rn":
        globals()[f"sub_{_mode}"] = _sub(DIRECTED_FUNCTIONS[f"add_{_mode}"], _mode)
        globals()[f"rcp_{_mode}"] = _rcp(DIRECTED_FUNCTIONS[f"div_{_mode}"], _mode)
    for _kind in _FUNCTIONS:
        _function = globals().get(f"{_kind}_{_mode}") or getattr(floats, f"{_kind}_{_mode}")
        for _letter, _dtype in _TYPES.items():
            _name = f"{_letter}{_kind}_{_mode}"
            if _kind != "fma":
                globals()[_name] = of_dtype(_function.__name__, _function, _dtype, _name)
            elif _letter == "f":
                globals()[f"fmaf_{_mode}"] = of_dtype(
                    _function.__name__, _function, _dtype, f"fmaf_{_mode}")
frsqrt_rn = of_dtype("rsqrt_rn", floats.rsqrt_rn, float32, "frsqrt_rn")
