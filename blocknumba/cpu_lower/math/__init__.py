"""Mathematical functions on vectors of lanes, as LLVM IR without calls of libraries or tables.

    exp = vector_function("exp", float32, 8)
    exp.definition     # define internal <8 x float> @bn.exp.float32.8(<8 x float> ...) alwaysinline

Every number comes from perf/math_coefficients.py; docs/numbers.md has the bounds.
"""

# Importing a module registers its functions.
from blocknumba.cpu_lower.math import (  # noqa: F401
    error_function, exponential, gamma_function, inverse_trigonometry, logarithm, powers, rounding,
    trigonometry,
)
from blocknumba.cpu_lower.math.registry import FUNCTIONS, VectorFunction, vector_function

__all__ = ["FUNCTIONS", "VectorFunction", "vector_function"]
