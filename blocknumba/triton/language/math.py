"""`triton.language.math`: functions of elements; the language's own, and CUDA's by their names."""

from blocknumba.libdevice import *  # noqa: F403  the module is made of its names
from blocknumba.libdevice import __all__ as _libdevice
from blocknumba.triton.language.standard import cdiv
from blocknumba.typing.triton.functions import (
    MATH as _MATH, abs_ as abs, clamp, div_rn, fdiv, fma, maximum, minimum, sqrt_rn, umulhi,
)

globals().update(_MATH)

__all__ = sorted({*_libdevice, *_MATH, "abs", "cdiv", "clamp", "div_rn", "fdiv", "fma", "maximum",
                  "minimum", "sqrt_rn", "umulhi"})
