"""Parts that NumPy's functions are made with."""

from __future__ import annotations

from ml_dtypes import finfo

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.types import bool_, float32, float64, int8, int32
from blocknumba.typing import promotion
from blocknumba.typing.context import describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions import create
from blocknumba.typing.functions.elementwise import FLOAT_FUNCTIONS, binary
from blocknumba.typing.functions.reduce import as_tile
from blocknumba.typing.static_values import static_int, static_shape


@function
def kind(context, name, *operands):
    """"bool", "int", "uint" or "float": of the dtype that operands of a function have together."""
    require_numbers(name, *operands)
    return promotion.result_dtype(operands).kind


@function
def number(context, name, x):
    """x, a bool as an int8.   Errors: what is no number."""
    require_numbers(name, x)
    dtype = promotion.result_dtype((x,))
    return context.value(x, int8) if dtype == bool_ else x


@function
def integers(context, name, *operands):
    """The operands, which are ints.   Errors: BlockTypeError for floats and bools."""
    require_numbers(name, *operands)
    dtype = promotion.result_dtype(operands)
    require(dtype.kind in ("int", "uint"), "np.{}: given {}, accepted ints", name,
            " and ".join(map(describe, operands)), error=BlockTypeError)
    return operands if len(operands) > 1 else operands[0]


@function
def wide(context, x):
    """Ints of at least 32 bits."""
    dtype = promotion.result_dtype((x,))
    return x if dtype.bits >= 32 else create.cast.rule(context, x, int32)


@function
def floats(context, *operands):
    """The operands as floats of one dtype, in which a function of floats computes."""
    dtype = promotion.float_dtype(operands)
    return tuple(context.value(x, dtype) for x in operands)


@function
def wide_floats(context, *operands):
    """The operands as floats of one dtype, of at least 32 bits."""
    dtype = promotion.float_dtype(operands)
    return tuple(context.value(x, float32 if dtype.bits < 32 else dtype) for x in operands)


@function
def double(context, name, x):
    """x as a float64."""
    require_numbers(name, x)
    return context.value(x, float64)


@function
def tile(context, name, x, rank=None):
    """x as a tile.   rank: how many axes it must have, if not None.   Errors: other ranks."""
    found = as_tile(context, f"np.{name}", x)
    require(rank is None or len(found.type.shape) == rank, "np.{}: given {}, accepted a tile of "
            "rank {}", name, describe(found), rank, error=BlockTypeError)
    return found


@function
def whole(context, name, x):
    """A compile-time int."""
    return static_int(f"np.{name}", x)


@function
def extents(context, name, shape):
    """The shape that an int or a tuple is, as a tuple."""
    return static_shape(f"np.{name}: shape", shape)


@function
def largest(context, x):
    """The greatest finite float of x's dtype."""
    dtype = promotion.result_dtype((x,))
    return float(finfo(dtype.numpy).max)


@function
def accept(context, is_so, message):
    """Nothing where a condition that is known at compile time is true.   Errors: the message."""
    require(is_so, "{}", message, error=BlockTypeError)


@function
def is_tuple(context, x):
    """Whether an argument is a tuple."""
    return isinstance(x, tuple)


@function
def itself(context, x):
    """x, which nothing can change."""
    return x


@function
def rounded(context, a, decimals=0):
    """a rounded to decimals, halves to even; ints stay as they are.

    Errors: negative decimals of ints.
    """
    require_numbers("round", a)
    places, rint = static_int("round: decimals", decimals), FLOAT_FUNCTIONS["rint"].rule
    if not promotion.result_dtype((a,)).is_float:
        require(places >= 0, "round: given {} and {} decimals, accepted floats", describe(a),
                places, error=BlockTypeError)
        return a
    if not places:
        return rint(context, a)
    scale, there, back = 10.0 ** abs(places), "mul", "div"
    if places < 0:
        there, back = back, there
    return binary(context, back, rint(context, binary(context, there, a, scale)), scale)


@function
def clipped(context, a, a_min=None, a_max=None, *, min=None, max=None):
    """a between two bounds, each None where there is none."""
    for op, given in (("maximum", min if a_min is None else a_min),
                      ("minimum", max if a_max is None else a_max)):
        if given is not None:
            a = binary(context, op, a, given)
    return a
