"""Block kernels for Numba: Triton's language on NumPy, CuPy, Numba and Torch arrays."""

import importlib

from blocknumba.dispatch.ahead import compile
from blocknumba.dispatch.autotune import autotune
from blocknumba.dispatch.autotune_config import Config
from blocknumba.dispatch.heuristics import heuristics
from blocknumba.dispatch.kernel import Kernel, jit
from blocknumba.language import *  # noqa: F403  the language is made of its names
from blocknumba.language import __all__ as _language

__all__ = ["Config", "Kernel", "autotune", "compile", "heuristics", "jit", "testing", *_language]


def __getattr__(name: str) -> object:
    """The module testing, imported when it is asked for."""
    if name == "testing":
        return importlib.import_module("blocknumba.testing")
    raise AttributeError(f"module blocknumba has no attribute {name!r}")
