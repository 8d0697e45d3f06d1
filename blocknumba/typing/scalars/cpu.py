"""Scalar functions on the CPU: Numba's own compiler, and loops over the elements of arrays."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Sequence
from types import FunctionType

import numpy as np
from numba import njit
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.map import HostCode, Raised
from blocknumba.typing.scalars.preparation import Preparation, passes, with_passes
from blocknumba.typing.scalars.signature import (
    Signature, container, described_exception, returned,
)

_LOOP = """\
def loop(count, {arrays}):
    for i in range(count):
        {results} = function({operands})
"""
# for functions that raise: Numba leaves the loop at the first exception
_CAREFUL_LOOP = """\
def loop(count, {arrays}):
    for i in range(count):
        try:
            {results} = function({operands})
        except Exception:
            {zeros}
"""


_PASSES = passes(FunctionPass, register_pass, NopythonTypeInference)


class _Compiler(Compiler):
    """Numba's compiler with our passes; preparation: of the function."""

    preparation: Preparation

    def define_pipelines(self) -> list:
        return with_passes(super().define_pipelines(), _PASSES, NopythonTypeInference)


class CpuFunction:
    """A function compiled for the CPU.

    results: dtypes, one of each result.  container: class of the tuple of them, or None.
    preparation: of the function, which knows where float64 appears.
    is_known: as of ScalarBody.
    is_checked: an index beyond a constant array raises IndexError.
    Errors: Numba's; BlockTypeError for results that are no numbers.
    """

    def __init__(self, function: FunctionType, signature: Signature, is_checked: bool = False):
        self._is_checked, self._code = is_checked, function.__code__
        self.preparation = Preparation(signature.is_weak, self._dispatcher)
        self._function = self.preparation.function(function)
        self._function.compile(signature.types(self.preparation.weakened))
        compiled = self._function.overloads[self._function.signatures[0]]
        made = compiled.signature.return_type
        self.results: tuple[DType, ...] = returned(function, made)
        self.container = container(made)
        self._library, self._symbol = compiled.library, compiled.fndesc.llvm_func_name
        # addresses of this process are in the code
        self.is_known = self.preparation.is_known and not self._library.has_dynamic_globals
        self._loops: dict[str, FunctionType] = {}

    @functools.cached_property
    def code(self) -> HostCode:
        """As of ScalarBody."""
        return HostCode(self._library.get_llvm_str(), self._symbol)

    def _dispatcher(self, function: FunctionType) -> object:
        compiler = type("Compiler", (_Compiler,), {"preparation": self.preparation})
        # as on the GPU: x / 0 is infinite, not an error
        return njit(pipeline_class=compiler, error_model="numpy", nogil=True,
                    boundscheck=self._is_checked)(function)

    def run(self, operands: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        """The results of count elements; those that raise are 0."""
        results = tuple(np.empty(count, dtype.numpy) for dtype in self.results)
        try:
            self._loop(_LOOP, len(operands))(count, *operands, *results)
        except Exception:  # whatever the user's function raises
            self._loop(_CAREFUL_LOOP, len(operands))(count, *operands, *results)
        return results

    def first_raised(self, operands: Sequence[np.ndarray],
                     count: int) -> tuple[int, Raised] | None:
        """The first of count elements that raises, and what."""
        for index in range(count):
            try:
                self._function(*(operand[index] for operand in operands))
            except Exception as error:  # whatever the user's function raises
                return index, Raised(index + 1, described_exception(type(error), error.args),
                                     *self._place(error))
        return None

    def _place(self, error: Exception) -> tuple[str, int, str]:
        """File, line and function of an exception; Numba's own ones do not say where they are."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if frame.filename == __file__:
            return self._code.co_filename, self._code.co_firstlineno, self._code.co_name
        return frame.filename, frame.lineno or 0, frame.name

    def _loop(self, template: str, count: int) -> FunctionType:
        """A loop over arrays: count operands, then the results."""
        if template not in self._loops:
            operands = [f"x{number}[i]" for number in range(count)]
            results = [f"y{number}[i]" for number in range(len(self.results))]
            comma = "," if self.container is not None and len(results) == 1 else ""
            text = template.format(
                arrays=", ".join(array.removesuffix("[i]") for array in (*operands, *results)),
                results=", ".join(results) + comma, operands=", ".join(operands),
                zeros=" = ".join((*results, "0")))
            namespace = {"function": self._function}
            exec(text, namespace)
            self._loops[template] = njit(nogil=True)(namespace["loop"])
        return self._loops[template]
