"""NumPy's dialect, which functions under `blocknumba.jit` are in."""

from __future__ import annotations

from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.dialect import NUMPY_NAME, Dialect
from blocknumba.typing.functions import elementwise


def _element(dtype: DType) -> DType:
    """The dtype of an array is that of its elements."""
    return dtype


DIALECT = Dialect(NUMPY_NAME, elementwise.binary, elementwise.unary, elementwise.truth, _element)
