"""CUDA's libdevice by its names, as `bn.libdevice.*` and Triton's `tl.math.*`.

What a name means does not depend on the device.  Names with an f at their end, and without it the
same (`sinf`), are of float32; the others keep the dtype of their operands, as Triton's do, but for
those that name a type (`dadd_rz`, `llmax`).  Several results are a tuple: `sincos`, `frexp`.
Source: CUDA libdevice User's Guide.
"""

from __future__ import annotations

from types import FunctionType

from blocknumba.libdevice import bessel, conversions, floats, integers, parts, rounded, special
from blocknumba.libdevice.cuda import ERRORS, where_it_holds
from blocknumba.libdevice.parts import of_dtype
from blocknumba.tile_ir.ir.types import float32
from blocknumba.typing.function import BlockFunction

# of integers last: max, min and abs are of all numbers
_MODULES = (bessel, special, rounded, conversions, floats, integers)
_OF_FLOATS = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi
    cyl_bessel_i0 cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmin fmod frexp hypot ilogb j0 j1 lgamma llrint llround log log10 log1p log2 logb modf
    nearbyint nextafter norm3d norm4d normcdf normcdfinv pow rcbrt remainder remquo rhypot rint
    rnorm3d rnorm4d round rsqrt sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1
    jn yn ldexp scalbn powi""".split()

# what the functions are made with
_PARTS = {"cast", "where", "absolute", *vars(parts)}
_found = {name: value for module in _MODULES for name, value in vars(module).items()
          if not name.startswith("_") and name not in _PARTS
          and isinstance(value, (BlockFunction, FunctionType))}
_found |= {name: where_it_holds(name, _found[name]) for name in ERRORS}
_found |= {f"{name}f": of_dtype(name, _found[name], float32, f"{name}f") for name in _OF_FLOATS}
globals().update(_found)
__all__ = sorted(_found)
