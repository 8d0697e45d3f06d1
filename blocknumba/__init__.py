"""Block kernels for Numba: Triton's language on NumPy, CuPy, Numba and Torch arrays."""

import builtins
import importlib
import sys

from blocknumba.dispatch.compile.ahead import compile
from blocknumba.dispatch.launch.kernel import Kernel, jit
from blocknumba.dispatch.tiles.auto import auto
from blocknumba.language import *  # noqa: F403  the language is made of its names
from blocknumba.language import __all__ as _language

# imported when they are asked for: most programs need none of them
_LAZY = {"autotune": ("blocknumba.dispatch.tune.autotune", "autotune"),
         "block_function": ("blocknumba.dispatch.block_functions.block_function", "block_function"),
         "Config": ("blocknumba.dispatch.tune.key", "Config"),
         "current_device": ("blocknumba.dispatch.launch.device", "current_device"),
         "device": ("blocknumba.dispatch.njit.device_array", "device"),
         "evaluate": ("blocknumba.testing.evaluate", "evaluate"),
         "heuristics": ("blocknumba.dispatch.tune.layers", "heuristics"),
         "testing": ("blocknumba.testing", "")}
__version__ = "0.1.0"

_PUBLIC = ("Kernel", "auto", "compile", "jit", *_LAZY, *_language)
# `import *` leaves Python's own max, range and the like alone: kernels call them bn.max
__all__ = [name for name in _PUBLIC if name not in vars(builtins)]


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*_PUBLIC, "errors", *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> object:
    """Import of the public names that are loaded on first use."""
    if name not in _LAZY:
        # Python looks for names that look alike in obj
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name,
                             obj=sys.modules[__name__])
    module, attribute = _LAZY[name]
    found = importlib.import_module(module)
    globals()[name] = getattr(found, attribute) if attribute else found
    return globals()[name]
