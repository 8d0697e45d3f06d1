"""Typing of Python ints beside float32 in a scalar function, as NumPy has it: they are float32.

Numba takes an int that stands in the code for int64, and int64 beside float32 for float64:

    1 - x            float64 in Numba, float32 in NumPy where x is
    s = 0; s += x    float64 in Numba, as s is int64 on one path

`WeakIntegers` stands before one of Numba's typing contexts while one function is typed, so Numba's
own functions, and functions that it compiles for others, are typed as ever.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from numba.core import types

_OPERATORS = frozenset(
    getattr(operator, name) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "iadd", "isub", "imul", "itruediv",
        "ifloordiv", "imod", "eq", "ne", "lt", "le", "gt", "ge")) | {min, max} | frozenset(
    getattr(math, name) for name in ("atan2", "copysign", "fmod", "hypot", "pow"))


class WeakIntegers:
    """A typing context for functions whose floats are float32.

    context: Numba's, which does all the rest.
    """

    def __init__(self, context: object):
        self._context = context

    def __getattr__(self, name: str) -> object:
        return getattr(self._context, name)

    def resolve_function_type(self, function: types.Type, arguments: Sequence[types.Type],
                              keywords: dict[str, types.Type]) -> object:
        """The signature of a call; of an operator, with ints as they count beside its floats."""
        key = getattr(function, "typing_key", None)
        if key in _OPERATORS or isinstance(key, np.ufunc):
            arguments = _weakened(arguments)
        return self._context.resolve_function_type(function, arguments, keywords)

    def unify_pairs(self, first: types.Type, second: types.Type) -> types.Type | None:
        """The type of a variable that has either type."""
        return self._context.unify_pairs(*_weakened((first, second)))

    def unify_types(self, *given: types.Type) -> types.Type | None:
        """The type of a variable that has any of these types."""
        return self._context.unify_types(*_weakened(given))


def _weakened(given: Sequence[types.Type]) -> tuple[types.Type, ...]:
    """The types, ints that the code names being float32 beside float32."""
    if types.float32 not in given:
        return tuple(given)
    return tuple(types.float32 if isinstance(of, types.IntegerLiteral) else of for of in given)
