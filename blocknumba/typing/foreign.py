"""Triton's own objects, met in a kernel: ours of the same name.

Kernels are of ours, but what they call may come from a package that imported the real Triton, as
Torch's helpers for its generated kernels do.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

from blocknumba.tile_ir.ir.types import dtype_of

THEIRS, OURS = "triton", "blocknumba.triton"
_SHORT = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
          "int1": "bool"}


def native(value: object) -> object:
    """Ours for an object of Triton's; any other value, and what we have not, as it is.

    A module, a function or a dtype by its name; the function of one that is jitted or runs at
    compile time; the value of a constexpr.
    """
    if isinstance(value, ModuleType):
        return sys.modules.get(_renamed(value.__name__), value)
    kind = type(value)
    if not _is_theirs(getattr(kind, "__module__", "")) and not isinstance(value, FunctionType):
        return value
    if kind.__name__ == "constexpr":
        return native(value.value)
    if kind.__name__ == "dtype":
        return dtype_of(_SHORT.get(value.name, value.name))
    is_constant = kind.__name__ == "ConstexprFunction"
    function = value.fn if is_constant or kind.__name__ == "JITFunction" else value
    if not isinstance(function, FunctionType):
        return value
    if not _is_theirs(function.__module__):
        if is_constant:
            function.__compile_time__ = True
        return function
    module = sys.modules.get(_renamed(function.__module__))
    return getattr(module, function.__name__, value)


def _is_theirs(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == THEIRS


def _renamed(module: str) -> str:
    return OURS + module.removeprefix(THEIRS) if _is_theirs(module) else module
