"""Triton's names: a file that was written for Triton runs with its imports changed.

    import blocknumba.triton as triton
    import blocknumba.triton.language as tl

Functions under `triton.jit` have Triton's meaning: its types, rounding and precision.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.library import cdiv, next_power_of_2
from blocknumba.tracebacks import without_our_frames
from blocknumba.typing.dialect import TRITON_NAME

__version__ = "3.6.0"  # of Triton, whose meaning functions have

__all__ = ["cdiv", "jit", "next_power_of_2"]


@without_our_frames
def jit(fn: FunctionType | None = None, *, version: object = None, repr: object = None,
        launch_metadata: object = None, do_not_specialize: object = None,
        do_not_specialize_on_alignment: object = None, debug: bool | None = None,
        noinline: bool | None = None) -> Kernel | Callable[[FunctionType], Kernel]:
    """Make a kernel, or a function that kernels call, of a Python function in Triton's dialect.

    debug: check asserts and accesses.  The other keywords are accepted and change nothing: code is
    specialised on divisibility and sign, never on values but 1, and all calls are inlined.
    """
    options = Options(debug=bool(debug), dialect=TRITON_NAME)
    if fn is None:
        return without_our_frames(lambda function: Kernel(function, options))
    return Kernel(fn, options)
