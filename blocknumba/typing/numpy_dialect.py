"""NumPy's dialect, which functions under `blocknumba.jit` are in."""

from __future__ import annotations

from blocknumba.typing.dialect import NUMPY_NAME, Dialect
from blocknumba.typing.functions import elementwise

DIALECT = Dialect(NUMPY_NAME, elementwise.binary, elementwise.unary, elementwise.truth)
