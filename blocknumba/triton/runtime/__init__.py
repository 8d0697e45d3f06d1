"""`triton.runtime`: kernels, tuners, the driver and their exceptions.

Example:
>>> triton.runtime.JITFunction is triton.JITFunction
True
"""

from blocknumba.triton.runtime.autotuner import (
    Autotuner, Config, Heuristics, autotune, heuristics,
)
from blocknumba.triton.runtime.driver import driver
from blocknumba.triton.runtime.errors import InterpreterError, OutOfResources
from blocknumba.triton.runtime.jit import (
    JITFunction, KernelInterface, MockTensor, TensorWrapper, reinterpret,
)

__all__ = ["Autotuner", "Config", "Heuristics", "InterpreterError", "JITFunction",
           "KernelInterface", "MockTensor", "OutOfResources", "TensorWrapper", "autotune", "driver",
           "heuristics", "reinterpret"]
