"""Exceptions of compilations; see blocknumba.triton.errors."""

from blocknumba.triton.errors import (
    CompilationError, CompileTimeAssertionFailure, TritonError, UnsupportedLanguageConstruct,
)

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "TritonError",
           "UnsupportedLanguageConstruct"]
