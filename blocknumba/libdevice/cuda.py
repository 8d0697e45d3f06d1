"""The functions that a kernel on a GPU takes from CUDA's own libdevice.

Those of `ERRORS`: in kernels of Triton's dialect always, as Triton does; in others where CUDA's
error is within what the function states, or that of its function of float64 is where ours computes
in float64 too.  On the CPU, and of numbers of Python, all are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import NamedTuple

from blocknumba.libdevice.parts import integers, named
from blocknumba.tile_ir.ir.types import DType, float32, float64, int32
from blocknumba.tile_ir.ops.assembly import cuda_function
from blocknumba.typing import promotion
from blocknumba.typing.context import Context
from blocknumba.typing.dialect import TRITON_NAME
from blocknumba.typing.function import function


class Errors(NamedTuple):
    """Greatest errors in units in the last place, of float32 and of float64.

    cuda32, cuda64: of CUDA's function; None where they are not given in units of the result.
    own32, own64: what the docstring of ours states.
    symbol: CUDA's name, without the f of float32; "" where it is the function's name.
    only_float32: CUDA has none of float64.
    """

    cuda32: int | None
    cuda64: int | None
    own32: int
    own64: int
    symbol: str = ""
    only_float32: bool = False


def _fast(symbol: str) -> Errors:
    """A function of a few instructions, whose error grows with the size of what it is given."""
    return Errors(None, None, 0, 0, f"fast_{symbol}", True)


# Source: CUDA Programming Guide, "Mathematical Functions".
ERRORS = {
    "sinpi": Errors(1, 2, 6, 6), "cospi": Errors(1, 2, 6, 6),
    "erfinv": Errors(2, 5, 1, 8), "erfcinv": Errors(4, 6, 1, 8), "erfcx": Errors(4, 4, 1, 16),
    "normcdf": Errors(5, 5, 1, 10), "normcdfinv": Errors(5, 8, 1, 9),
    "cyl_bessel_i0": Errors(6, 6, 1, 16), "cyl_bessel_i1": Errors(6, 6, 1, 16),
    **{name: Errors(None, None, 1, 1) for name in ("j0", "j1", "y0", "y1", "jn", "yn")},
    "rhypot": Errors(2, 1, 6, 6), "norm3d": Errors(3, 2, 9, 9), "norm4d": Errors(3, 2, 9, 9),
    "rnorm3d": Errors(2, 2, 11, 11), "rnorm4d": Errors(2, 2, 11, 11),
    "rcbrt": Errors(1, 1, 5, 5), "exp10": Errors(2, 1, 4, 4),
    "fmod": Errors(0, 0, 0, 0), "remainder": Errors(0, 0, 0, 0),
    **{f"fast_{name}f": _fast(name) for name in (
        "sin", "cos", "tan", "tanh", "exp", "exp10", "log", "log2", "log10", "pow")},
    "fast_dividef": _fast("fdivide"), "fast_fdividef": _fast("fdivide"),
}
_OF_AN_ORDER = ("jn", "yn")


def where_it_holds(name: str, own: Callable) -> Callable:
    """A function that is CUDA's where that may be, and else one of ours."""
    def one(x):
        return _call(name, x) if _is_cudas(name, x) else own(x)

    def two(x, y):
        return _call(name, x, y) if _is_cudas(name, x, y) else own(x, y)

    def three(x, y, z):
        return _call(name, x, y, z) if _is_cudas(name, x, y, z) else own(x, y, z)

    def four(x, y, z, w):
        return _call(name, x, y, z, w) if _is_cudas(name, x, y, z, w) else own(x, y, z, w)

    made = (one, two, three, four)[len(signature(own).parameters) - 1]
    return named(made, name, own.__doc__)


@function
def _is_cudas(context, name, *operands):
    """Whether a call on these operands is one of CUDA's function."""
    return _dtype(context, name, operands) is not None


def _dtype(context: Context, name: str, operands: tuple) -> DType | None:
    """The dtype in which a call is one of CUDA's function; None where it is one of ours."""
    floats = operands[name in _OF_AN_ORDER:]
    if not context.options.target or all(
            promotion.is_literal(x) or promotion.is_weak(x) for x in floats):
        return None
    errors, is_wide = ERRORS[name], promotion.float_dtype(floats) == float64
    if is_wide and errors.only_float32:
        return None
    found, stated = errors[is_wide], errors[2 + is_wide]
    if context.root.name == TRITON_NAME or found is not None and found <= stated:
        return float64 if is_wide else float32
    # of float32 a unit is more than what remains of float64's errors once that is rounded
    return float64 if not is_wide and stated >= 1 and errors.cuda64 is not None else None


@function
def _call(context, name, *operands):
    """CUDA's function of operands, in the dtype that `_dtype` says."""
    orders = operands[:name in _OF_AN_ORDER]
    floats = operands[len(orders):]
    wide = _dtype(context, name, operands)
    values = [integers.rule(context, order, int32) for order in orders]
    values += [context.value(x, wide, "libdevice") for x in floats]
    result = context.emit(cuda_function, *context.broadcast_together(values, "libdevice"),
                          symbol=ERRORS[name].symbol or name)
    return context.cast(result, promotion.float_dtype(floats))
