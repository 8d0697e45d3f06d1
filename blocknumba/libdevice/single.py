"""The functions whose names end in f: those without it, of float32."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from blocknumba.tile_ir.ir.types import float32
from blocknumba.typing.functions.create import cast

_OF_AN_ORDER, _OF_A_POWER = ("jn", "yn"), ("ldexp", "scalbn", "powi")


def of_float32(name: str, function: Callable) -> Callable:
    """A function whose floats are converted to float32; ints that it takes stay as they are."""
    def one(x):
        return function(cast(x, float32))

    def two(x, y):
        return function(cast(x, float32), cast(y, float32))

    def three(x, y, z):
        return function(cast(x, float32), cast(y, float32), cast(z, float32))

    def four(x, y, z, w):
        return function(cast(x, float32), cast(y, float32), cast(z, float32), cast(w, float32))

    def of_an_order(n, x):
        return function(n, cast(x, float32))

    def of_a_power(x, n):
        return function(cast(x, float32), n)

    if name in _OF_AN_ORDER or name in _OF_A_POWER:
        made = of_an_order if name in _OF_AN_ORDER else of_a_power
    else:
        made = (one, two, three, four)[len(inspect.signature(function).parameters) - 1]
    made.__name__ = made.__qualname__ = f"{name}f"
    made.__doc__ = f"{name} of float32."
    return made
