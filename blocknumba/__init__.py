"""Block kernels for Numba: Triton's language on NumPy, CuPy, Numba and Torch arrays."""

from blocknumba.dispatch.ahead import compile
from blocknumba.dispatch.kernel import Kernel, jit
from blocknumba.language import *  # noqa: F403  the language is made of its names
from blocknumba.language import __all__ as _language

__all__ = ["Kernel", "compile", "jit", *_language]
