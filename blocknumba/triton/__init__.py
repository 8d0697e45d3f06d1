"""Triton's names: a file that was written for Triton runs with its imports changed.

    import blocknumba.triton as triton
    import blocknumba.triton.language as tl

Functions under `triton.jit` have Triton's meaning: its types, rounding and precision.
`blocknumba.triton.install("package")` gives the imports of a whole package that meaning.
"""

from __future__ import annotations

from blocknumba.library import cdiv, next_power_of_2
from blocknumba.triton import compiler, language, runtime, testing, tools
from blocknumba.triton.compiler import CompilationError, compile
from blocknumba.triton.errors import InterpreterError, OutOfResources, TritonError
from blocknumba.triton.language.aggregates import aggregate
from blocknumba.triton.language.types import constexpr_function, must_use_result
from blocknumba.triton.loading import install
from blocknumba.triton.runtime import (
    Config, JITFunction, KernelInterface, MockTensor, TensorWrapper, autotune, heuristics,
    reinterpret,
)
from blocknumba.triton.runtime.allocation import set_allocator
from blocknumba.triton.runtime.jit import jit

__version__ = "3.6.0"  # of Triton, whose meaning functions have

__all__ = ["CompilationError", "Config", "InterpreterError", "JITFunction", "KernelInterface",
           "MockTensor", "OutOfResources", "TensorWrapper", "TritonError", "aggregate", "autotune",
           "cdiv", "compile", "compiler", "constexpr_function", "heuristics", "install", "jit",
           "language", "must_use_result", "next_power_of_2", "reinterpret", "runtime",
           "set_allocator", "testing", "tools"]
