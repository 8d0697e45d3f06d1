"""Python's and NumPy's names for functions of the language."""

from __future__ import annotations

import builtins
import math
from types import FunctionType

import numpy as np

from blocknumba.typing.function import BlockFunction
from blocknumba.typing.functions import (
    concatenate, create, debug, dot, elementwise, order, parts, reduce, scan, search, shape,
    statistics,
)
from blocknumba.typing.numpy_functions import WRITTEN

_MODULES = (concatenate, create, elementwise, order, reduce, scan, search, shape, statistics)
_RENAMED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
            "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2", "divide": "div",
            "true_divide": "div", "clip": "clamp", "amax": "max", "amin": "min", "fix": "trunc"}
_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "floor_divide": "floordiv",
    "remainder": "mod", "mod": "mod", "power": "power", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "left_shift": "shl", "right_shift": "shr", "equal": "eq",
    "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}


def _collected() -> dict[object, BlockFunction | FunctionType]:
    functions = {f.__name__: f for m in _MODULES for f in vars(m).values()
                 if isinstance(f, BlockFunction)} | elementwise.FLOAT_FUNCTIONS
    found: dict[object, BlockFunction | FunctionType] = {}
    for name in (*functions, *_RENAMED):
        for module in (np, math):
            named = getattr(module, name, None)
            if callable(named) and not isinstance(named, type):
                found[named] = functions[_RENAMED.get(name, name)]
    found |= {getattr(np, name): elementwise.two_operands(name, op, "")
              for name, op in _OPERATORS.items()}
    found |= {getattr(np, name): elementwise.one_operand(name, op, "")
              for name, op in (("negative", "neg"), ("invert", "invert"))}
    found |= {getattr(np, f"logical_{name}"): elementwise.of_truths(f"logical_{name}", op)
              for name, op in (("and", "and"), ("or", "or"), ("xor", "xor"), ("not", "invert"))}
    return found | WRITTEN | {
        abs: elementwise.absolute, builtins.print: debug.print_, np.matmul: dot.matmul,
        np.dot: dot.numpy_dot, np.roll: parts.roll, np.flip: shape.numpy_flip,
        np.take_along_axis: parts.take_along_axis}


_SPELLINGS = _collected()


def spelled(callee: object) -> BlockFunction | FunctionType | None:
    """The function of the language, or the one written in it, that a name of others stands for."""
    try:
        return _SPELLINGS.get(callee)
    except TypeError:  # unhashable
        return None
