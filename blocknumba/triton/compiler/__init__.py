"""`triton.compiler`: code made ahead of a launch.

Example:
>>> triton.compiler.compile is triton.compile
True
"""

from blocknumba.triton.compiler.compiler import ASTSource, compile
from blocknumba.triton.compiler.errors import CompilationError
from blocknumba.triton.runtime.compiled_kernel import CompiledKernel

__all__ = ["ASTSource", "CompilationError", "CompiledKernel", "compile"]
