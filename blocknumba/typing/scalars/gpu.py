"""Scalar functions on a GPU: numba-cuda makes NVVM IR of them, which no GPU is needed for.

Only this module of the package knows numba-cuda, and it is imported when a kernel needs it.
"""

from __future__ import annotations

import re
from types import FunctionType

from numba.core import types
from numba.cuda import utils
from numba.cuda.compiler import CUDACompiler, compile_extra
from numba.cuda.core.callconv import CUDACallConv
from numba.cuda.core.compiler_machinery import FunctionPass, register_pass
from numba.cuda.core.typed_passes import NopythonTypeInference
from numba.cuda.cudadrv.nvvm import llvm_replace
from numba.cuda.descriptor import cuda_target
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.flags import CUDAFlags

from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.map import DeviceCode, Raised
from blocknumba.typing.scalars.preparation import Preparation, passes, with_passes
from blocknumba.typing.scalars.signature import (
    Signature, container, described_exception, returned,
)

_TARGET = re.compile(r"sm_(\d+)(\d)([a-z]?)")
# of a module of Numba's, for calls from Python
_ENVIRONMENT = re.compile(r'^@"_ZN08NumbaEnv[^"]*" = common global i8\* null\n', re.MULTILINE)
# What is not a matter of one element: text in the IR, the same in words.
_NOT_SCALAR = (
    (re.compile(r"llvm\.nvvm\.(barrier|bar\.|membar|shfl|vote|match)"), "barriers and shuffles"),
    (re.compile(r"llvm\.nvvm\.read\.ptx\.sreg"), "indices of threads and blocks"),
    (re.compile(r"\b(atomicrmw|cmpxchg)\b|___numba_atomic"), "atomics"),
    (re.compile(r"addrspace\(3\)"), "shared memory"),
    (re.compile(r"@\"?NRT_"), "arrays, lists or strings that it makes"),
)


_PASSES = passes(FunctionPass, register_pass, NopythonTypeInference)


class _Compiler(CUDACompiler):
    """numba-cuda's compiler with our passes; preparation: of the function."""

    preparation: Preparation

    def define_pipelines(self) -> list:
        return with_passes(super().define_pipelines(), _PASSES, NopythonTypeInference)


class _Exceptions:
    """Exceptions of functions, numbered from 1.  Numba calls this a call helper."""

    def __init__(self):
        self.raised: list[Raised] = []

    def _add_exception(self, kind: type | None, arguments: tuple | None,
                       location: tuple[str, str, int] | None) -> int:
        function, file, line = location or ("", "", 0)
        code = len(self.raised) + 1
        self.raised.append(Raised(code, described_exception(kind, arguments or ()), file, line,
                                  function))
        return code


class _Convention(CUDACallConv):
    """Numba's calling convention, with codes that are unique among functions that call each other.

    A callee's code is its caller's too, and numba-cuda numbers them function by function.
    """

    def __init__(self):
        super().__init__(cuda_target.target_context)
        self.exceptions = _Exceptions()

    def _make_call_helper(self, builder: object) -> _Exceptions:
        return self.exceptions

    def return_dynamic_user_exc(self, builder: object, exc: type, exc_args: tuple,
                                nb_types: tuple, **where: object) -> None:
        """An exception with values of run time: the message has their types.

        nb_types: None for a constant.
        """
        shown = tuple(value if of is None else f"<{of}>" for value, of in zip(exc_args, nb_types))
        self.return_user_exc(builder, exc, shown, **where)


class _Dispatcher(CUDADispatcher):
    """A function that Numba's code calls; it is compiled as a part of a scalar function."""

    def __init__(self, function: FunctionType, whole: GpuFunction):
        super().__init__(function, {"device": True})
        self._whole = whole

    def compile_device(self, args: tuple, return_type: object = None) -> object:
        """numba-cuda's result for arguments of some types."""
        if args not in self.overloads:
            with self._compiling_counter:
                compiled = self._whole.compile(self.py_func, args)
            self.overloads[args] = compiled
            compiled.target_context.insert_user_function(compiled.entry_point, compiled.fndesc,
                                                         [compiled.library])
        return self.overloads[args]


class GpuFunction:
    """A function compiled for one target.

    results: dtypes, one of each result.  container: class of the tuple of them, or None.
    code: NVVM IR.
    preparation: of the function, which knows where float64 appears.
    is_known: as of ScalarBody.
    Errors: Numba's; BlockTypeError for results that are no numbers, and for what is not a matter
    of one element.
    """

    def __init__(self, function: FunctionType, signature: Signature, target: str, lineinfo: bool):
        self._capability, self._lineinfo = _capability(target), lineinfo
        self._convention = _Convention()
        self.preparation = Preparation(signature.is_weak, lambda made: _Dispatcher(made, self))
        compiled = self.preparation.function(function).compile_device(
            signature.types(self.preparation.weakened))
        self.results: tuple[DType, ...] = returned(function, compiled.signature.return_type)
        self.container = container(compiled.signature.return_type)
        first, *needed = compiled.library.llvm_strs
        modules = tuple(map(_as_nvvm, (first, *sorted(needed))))
        _require_scalar(function, modules)
        self.code = DeviceCode(modules, compiled.fndesc.llvm_func_name,
                               tuple(self._convention.exceptions.raised))
        self.is_known = self.preparation.is_known

    def compile(self, function: FunctionType, argument_types: tuple[types.Type, ...]) -> object:
        """Numba's result for one of the functions, for arguments of these types."""
        flags = CUDAFlags()
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.forceinline = True
        flags.error_model = "numpy"
        flags.compute_capability = self._capability
        if self._lineinfo:
            flags.debuginfo = flags.dbg_directives_only = True
        compiler = type("Compiler", (_Compiler,), {"preparation": self.preparation})
        with utils.numba_target_override():
            compiled = compile_extra(
                cuda_target.typing_context, cuda_target.target_context, function, argument_types,
                None, flags, {}, pipeline_class=compiler, call_conv=self._convention, abi_info={})
        compiled.library.finalize()
        return compiled


def _as_nvvm(text: str) -> str:
    """A module of llvmlite's as libNVVM takes it, without variables that nobody reads."""
    return _ENVIRONMENT.sub("", llvm_replace(text))


def _require_scalar(function: FunctionType, modules: tuple[str, ...]) -> None:
    """Errors: BlockTypeError for a function that needs to know of other elements."""
    for text in modules:
        for pattern, what in _NOT_SCALAR:
            if pattern.search(text):
                raise BlockTypeError(
                    f"map: {function.__name__} uses {what}, accepted a function of one element",
                    hint="pass what it needs to know as one more tile, such as r.index")


def _capability(target: str) -> tuple[int, int, str]:
    major, minor, suffix = _TARGET.fullmatch(target).groups()
    return int(major), int(minor), suffix
