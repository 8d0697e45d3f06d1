"""`triton.compile(ASTSource(...))`: code for arguments of given types, with no GPU."""

from __future__ import annotations

from collections.abc import Mapping

from blocknumba.dispatch.compile.ahead import specialized
from blocknumba.errors import BlockTypeError, UnsupportedError, require
from blocknumba.triton.backends.compiler import target_named
from blocknumba.triton.runtime.compiled_kernel import CompiledKernel
from blocknumba.triton.runtime.jit import JITFunction

__all__ = ["ASTSource", "CompiledKernel", "compile"]

CONSTEXPR = "constexpr"
_DIVISIBILITY = "tt.divisibility"


class ASTSource:
    """A kernel with the types of its arguments.

    fn: the kernel.  name: its name.
    signature: name -> "*fp32", "i32" and the like, or "constexpr".
    constants: name -> value of a constexpr, also under the position of the parameter.
    attrs: position -> [["tt.divisibility", 16]].
    """

    def __init__(self, fn: JITFunction, signature: Mapping[str, str],
                 constexprs: Mapping[object, object] | None = None,
                 attrs: Mapping[object, object] | None = None):
        require(isinstance(fn, JITFunction), "ASTSource: given {!r}, accepted a kernel", fn)
        self.fn, self.name, self.attrs = fn, fn.__name__, dict(attrs or {})
        self.signature = {self._parameter(key): value for key, value in signature.items()}
        self.constants = {self._parameter(key): value
                          for key, value in (constexprs or {}).items()}

    def types(self) -> dict[str, str]:
        """The types of the arguments that are no constants, with what is known of them."""
        known = {self._parameter(key): dict(value)[_DIVISIBILITY]
                 for key, value in self.attrs.items() if _DIVISIBILITY in dict(value)}
        return {name: f"{given}:{known[name]}" if name in known else given
                for name, given in self.signature.items()
                if given != CONSTEXPR and name not in self.constants}

    def _parameter(self, key: object) -> str:
        """The name of a parameter that is given by name, by position or by a path of one."""
        if isinstance(key, tuple) and len(key) == 1:
            key = key[0]
        names = self.fn.arg_names
        if isinstance(key, int) and 0 <= key < len(names):
            return names[key]
        require(key in names, "{}: given the parameter {!r}, accepted {}", self.name, key,
                ", ".join(names), error=BlockTypeError)
        return key


def compile(src: ASTSource, target: object = None,
            options: Mapping[str, object] | None = None) -> CompiledKernel:
    """The code of a kernel.

    src: the kernel and the types of its arguments.
    target: GPUTarget("cuda", 90, 32) and the like; None for the current device.
    options: compile options.
    Errors: those of errors.py; UnsupportedError for a file of another compiler's text.

    Example:
    >>> @triton.jit
    ... def fill(x, BLOCK: tl.constexpr):
    ...     tl.store(x + tl.arange(0, BLOCK), 1.0)
    >>> from blocknumba.triton.backends.compiler import GPUTarget
    >>> source = triton.compiler.ASTSource(fill, {"x": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 8})
    >>> compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    >>> ".entry fill" in compiled.asm["ptx"]
    True
    """
    require(isinstance(src, ASTSource), "compile: given {!r}, accepted an ASTSource", src,
            error=UnsupportedError)
    kernel, chosen = src.fn.chosen(options or {})
    return kernel.compile(*specialized(kernel, src.types(), src.constants,
                                       None if target is None else target_named(target), chosen))
