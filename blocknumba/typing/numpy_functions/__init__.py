"""NumPy's functions that kernels may call though the language has no function of the name.

Each is written in the language, with what blocknumba.language has; a call gets its body.  Results
are NumPy's, with the dtypes of docs/numbers.md; what cannot be given so is refused.
Source: NumPy Reference.
"""

from __future__ import annotations

import math
from types import FunctionType

import numpy as np

from blocknumba.typing.function import BlockFunction
from blocknumba.typing.functions import reduce, scan
from blocknumba.typing.numpy_functions import elementwise, parts, shapes, statistics, sums

_NAMES = {
    elementwise: {name: name for name in """where square sign signbit positive fabs reciprocal
        deg2rad rad2deg fmod modf heaviside logaddexp logaddexp2 float_power sinc nan_to_num
        isposinf isneginf isclose allclose array_equal gcd lcm bitwise_count select isin
        imag""".split()} | {
        "radians": "deg2rad", "degrees": "rad2deg", "divmod": "divided", "conj": "conjugate",
        "conjugate": "conjugate"},
    parts: {"real": "itself", "copy": "itself", "ascontiguousarray": "itself",
            "round": "rounded", "around": "rounded", "clip": "clipped"},
    shapes: {name: name for name in """zeros ones empty full zeros_like ones_like full_like arange
        linspace eye identity tri tril triu diag diagonal trace outer fliplr flipud rot90 hstack
        vstack column_stack take transpose matrix_transpose moveaxis atleast_1d
        atleast_2d ndim size asarray""".split()} | {
        "permute_dims": "transpose", "tile": "tiled", "shape": "shape_of"},
    sums: {name: name for name in """sum prod nansum nanprod cumsum cumprod nancumsum
        nancumprod""".split()},
    statistics: {name: name for name in """average quantile percentile vecdot inner vdot polyval
        digitize interp""".split()},
}
_OF_MATH = "fabs fmod modf degrees radians gcd lcm".split()

WRITTEN: dict[object, FunctionType | BlockFunction] = {
    getattr(np, name): getattr(module, own)
    for module, names in _NAMES.items() for name, own in names.items()}
WRITTEN |= {getattr(math, name): WRITTEN[getattr(np, name)] for name in _OF_MATH}
for _ufunc, _along, _up_to in ((np.add, sums.sum, sums.cumsum),
                               (np.multiply, sums.prod, sums.cumprod),
                               (np.maximum, reduce.max, scan.cummax),
                               (np.minimum, reduce.min, scan.cummin)):
    WRITTEN[_ufunc.reduce], WRITTEN[_ufunc.accumulate] = sums.methods(_along, _up_to)
WRITTEN[np.linalg.norm] = statistics.norm
