"""`triton.language.core`: the language under the name of the module that defines it in Triton."""

from blocknumba.tile_ir.ir.types import DType, bool_, dtype_of
from blocknumba.triton.language import *  # noqa: F403  the module is made of its names
from blocknumba.triton.language.aggregates import aggregate as _aggregate  # noqa: F401
from blocknumba.triton.language.types import constexpr_function
from blocknumba.typing.static_values import constexpr

CONSTEXPR_0 = constexpr(0)


@constexpr_function
def get_int_dtype(bitwidth: int, signed: bool) -> DType:
    """The dtype of integers of a width; of one bit the bool."""
    return bool_ if bitwidth == 1 else dtype_of(f"{'' if signed else 'u'}int{bitwidth}")
