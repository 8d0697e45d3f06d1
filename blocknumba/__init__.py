"""Block kernels for Numba: Triton's language on NumPy, CuPy, Numba and Torch arrays."""

import importlib

from blocknumba.dispatch.ahead import compile
from blocknumba.dispatch.kernel import Kernel, jit
from blocknumba.language import *  # noqa: F403  the language is made of its names
from blocknumba.language import __all__ as _language

# imported when they are asked for: most programs need none of them
_LAZY = {"autotune": ("blocknumba.dispatch.autotune", "autotune"),
         "Config": ("blocknumba.dispatch.autotune_config", "Config"),
         "current_device": ("blocknumba.dispatch.device", "current_device"),
         "heuristics": ("blocknumba.dispatch.heuristics", "heuristics"),
         "testing": ("blocknumba.testing", "")}
__all__ = ["Kernel", "compile", "jit", *_LAZY, *_language]


def __getattr__(name: str) -> object:
    """What is imported when it is asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    found = importlib.import_module(module)
    globals()[name] = getattr(found, attribute) if attribute else found
    return globals()[name]
