"""`triton.compiler`: code made ahead of a launch."""

from blocknumba.triton.compiler.compiler import ASTSource, compile
from blocknumba.triton.compiler.errors import CompilationError
from blocknumba.triton.runtime.compiled_kernel import CompiledKernel

__all__ = ["ASTSource", "CompilationError", "CompiledKernel", "compile"]
