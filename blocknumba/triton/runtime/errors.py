"""Exceptions of launches; see blocknumba.triton.errors."""

from blocknumba.triton.errors import (
    AutotunerError, InterpreterError, OutOfResources, PTXASError, TritonError,
)

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError", "TritonError"]
