"""Real numbers to the power of ints, as NumPy has them: 0.0 ** -1 is infinite.

Numba has functions of its own for such powers, which raise an exception there whatever the error
model.  Given a real exponent it calls pow, as NumPy does.  Powers by ints of the code that are not
negative stay as they are: they are products.
"""

from __future__ import annotations

import operator
import sys

from numba.core import types
from numba.core.typing.templates import signature

_BINARY = ("binop", "inplace_binop")
_POWERS = (operator.pow, operator.ipow)


def make_real(state: object) -> None:
    """Give the powers of a typed function real exponents, in place."""
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            node = getattr(statement, "value", None)
            if getattr(node, "op", "") not in _BINARY or node.fn not in _POWERS:
                continue
            base, exponent = state.calltypes[node].args
            if not isinstance(base, types.Float) or not isinstance(exponent, types.Integer):
                continue
            if type(node.static_rhs) is int and node.static_rhs >= 0:
                continue
            node.static_rhs = sys.modules[type(node).__module__].UNDEFINED
            del state.calltypes[node]  # Numba refuses a second signature
            state.calltypes[node] = signature(base, base, base)
