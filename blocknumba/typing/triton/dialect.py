"""Triton's dialect, which functions under `blocknumba.triton.jit` are in.

Its types, rounding and precision are those of Triton 3.6.  Source: Triton, triton.language.
"""

from __future__ import annotations

from blocknumba.tile_ir.ir.types import PointerType
from blocknumba.typing.dialect import TRITON_NAME, Dialect
from blocknumba.typing.triton.constants import ATTRIBUTES
from blocknumba.typing.triton.functions import METHODS
from blocknumba.typing.triton.hints import reword
from blocknumba.typing.triton.operators import binary, settled, truth, unary
from blocknumba.typing.triton.promotion import named_dtype
from blocknumba.typing.triton.python_functions import BUILTINS
from blocknumba.typing.triton.syntax import INTRINSICS, written

DIALECT = Dialect(TRITON_NAME, binary, unary, truth, PointerType, settled, named_dtype, ATTRIBUTES,
                  METHODS, BUILTINS, written, INTRINSICS, reword)
