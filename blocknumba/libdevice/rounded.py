"""Arithmetic in every rounding mode: exact results, rounded once.

add_rz and its like keep the dtype of their operands; fadd_rz is of float32, dadd_rz of float64.
"""

from __future__ import annotations

from blocknumba.libdevice import floats
from blocknumba.tile_ir.ir.types import float32, float64
from blocknumba.tile_ir.ops.directed import MODES
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import DIRECTED_FUNCTIONS

_DIRECTIONS = {"rn": "to nearest", **MODES}
_TYPES = {"f": float32, "d": float64}

globals().update(DIRECTED_FUNCTIONS)


def _sub(add, mode):
    def sub(x, y):
        return add(x, -y)

    return _named(sub, f"sub_{mode}", f"x - y, rounded {_DIRECTIONS[mode]}.")


def _rcp(div, mode):
    def rcp(x):
        return div(1.0, x)

    return _named(rcp, f"rcp_{mode}", f"1 / x, rounded {_DIRECTIONS[mode]}.")


def _typed(name, function, count, dtype):
    """A function whose operands are converted to a dtype."""
    def one(x):
        return function(cast(x, dtype))

    def two(x, y):
        return function(cast(x, dtype), cast(y, dtype))

    def three(x, y, z):
        return function(cast(x, dtype), cast(y, dtype), cast(z, dtype))

    return _named((one, two, three)[count - 1], name, f"{function.__name__} of {dtype}.")


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_FUNCTIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}
for _mode in _DIRECTIONS:
    if _mode != "rn":
        globals()[f"sub_{_mode}"] = _sub(DIRECTED_FUNCTIONS[f"add_{_mode}"], _mode)
        globals()[f"rcp_{_mode}"] = _rcp(DIRECTED_FUNCTIONS[f"div_{_mode}"], _mode)
    for _kind, _count in _FUNCTIONS.items():
        _function = globals().get(f"{_kind}_{_mode}") or getattr(floats, f"{_kind}_{_mode}")
        for _letter, _dtype in _TYPES.items():
            _name = f"{_letter}{_kind}_{_mode}"
            if _kind != "fma":
                globals()[_name] = _typed(_name, _function, _count, _dtype)
            elif _letter == "f":
                globals()[f"fmaf_{_mode}"] = _typed(f"fmaf_{_mode}", _function, 3, _dtype)
frsqrt_rn = _typed("frsqrt_rn", floats.rsqrt_rn, 1, float32)
