"""The scalar functions of one kernel: from what the user names to what the op `map` calls."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType

import numpy as np
from numba.core.errors import NumbaError

from blocknumba.errors import BlockError, BlockTypeError, Loc, UnsupportedError, require
from blocknumba.installation import pip_install
from blocknumba.tile_ir.ir.remarks import DOUBLES, Remark
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.map import DeviceCode, HostCode, Raised, ScalarFunction
from blocknumba.typing.function import BlockFunction, python_function
from blocknumba.typing.scalars.cpu import CpuFunction
from blocknumba.typing.scalars.signature import Signature
from blocknumba.typing.values import Function, is_constant

ACCEPTED = ("a Python function, or what numba.njit, numba.vectorize or cuda.jit(device=True) made "
            "of one")
_NOT_IN_NAMES = re.compile(r"\W+")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_STAGE = re.compile(r"Failed in \S+ mode pipeline \(step: [^)]*\)")
# where Numba's explanations begin, after its first sentence
_FURTHER = re.compile(r"There are \d+ candidate|During: |Enable logging|File \"|\(\d+ ?\)|\n\n")
_PLACE = re.compile(r"File \"([^\"]+)\", line (\d+)")
MAX_REASON = 300  # characters of Numba's message


class NumbaFunction:
    """The code of a scalar function, compiled when it is first asked for.

    target: of a GPU, whose typing decides the dtypes of the results; "" for the CPU.
    Errors: as of the compilation, when it is made.
    """

    def __init__(self, function: FunctionType, signature: Signature, target: str):
        self._function, self._signature = function, signature
        self._cpu: dict[bool, CpuFunction] = {}
        self._gpu: dict[tuple[str, bool], object] = {}
        made = self._compiled_for(target, False) if target else self._compiled_for_cpu()
        self.results: tuple[DType, ...] = made.results
        self.double: Loc = made.preparation.double
        self._container: type | None = made.container

    def joined(self, results: tuple) -> object:
        """The value of a call: the only result, or a tuple of the class that the function made."""
        if self._container is None:
            return results[0]
        return results if self._container is tuple else self._container(*results)

    def run(self, operands: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        """As of ScalarBody."""
        return self._compiled_for_cpu().run(operands, count)

    def first_raised(self, operands: Sequence[np.ndarray],
                     count: int) -> tuple[int, Raised] | None:
        """As of ScalarBody."""
        return self._compiled_for_cpu(is_checked=True).first_raised(operands, count)

    @property
    def is_known(self) -> bool:
        """As of ScalarBody."""
        return all(made.is_known for made in (*self._cpu.values(), *self._gpu.values()))

    def host_code(self) -> HostCode:
        """As of ScalarBody."""
        return self._compiled_for_cpu().code

    def device_code(self, target: str, lineinfo: bool = False) -> DeviceCode:
        """As of ScalarBody."""
        return self._compiled_for(target, lineinfo).code

    def _compiled_for_cpu(self, is_checked: bool = False) -> CpuFunction:
        if is_checked not in self._cpu:
            with _explained(self._function, self._signature):
                self._cpu[is_checked] = CpuFunction(self._function, self._signature, is_checked)
        return self._cpu[is_checked]

    def _compiled_for(self, target: str, lineinfo: bool) -> object:
        key = target, lineinfo
        if key not in self._gpu:
            try:
                # here and not above: numba-cuda is needed for kernels on a GPU only
                from blocknumba.typing.scalars.gpu import GpuFunction
            except ImportError as error:
                raise UnsupportedError(
                    f"map: functions for a GPU are compiled by numba-cuda: {error}",
                    hint=pip_install("numba-cuda", "cu13")) from None
            with _explained(self._function, self._signature):
                self._gpu[key] = GpuFunction(self._function, self._signature, target, lineinfo)
        return self._gpu[key]


class ScalarFunctions:
    """The scalar functions of one kernel, each compiled once for each tuple of dtypes.

    target: the GPU that the kernel is compiled for; "" for the CPU.
    remarks: where a function computes in float64 though nothing that it is given has 64 bits.
    """

    def __init__(self, target: str = ""):
        self._target = target
        self._made: dict[tuple[FunctionType, tuple[DType, ...]], ScalarFunction] = {}
        self._of_kernel: dict[Hashable, FunctionType] = {}
        self.remarks: list[Remark] = []

    def get(self, value: object, parameters: tuple[DType, ...], loc: Loc) -> ScalarFunction:
        """The scalar function that a value of the kernel is, for arguments of these dtypes.

        loc: of the call.
        Errors: BlockTypeError for what is no such function, and for what Numba cannot compile.
        """
        function = self._nested(value) if isinstance(value, Function) else _function_of(value)
        key = function, parameters
        if key not in self._made:
            signature = Signature.of(function, parameters)
            try:
                body = NumbaFunction(function, signature, self._target)
            except BlockTypeError as error:
                raise error.called_from(loc) from None
            self._made[key] = ScalarFunction(self._name(function), parameters, body.results, body)
            if body.double.line and not any(dtype.bits == 64 for dtype in parameters):
                self.remarks.append(Remark.of(DOUBLES, body.double, function=function.__name__))
        return self._made[key]

    def _nested(self, value: Function) -> FunctionType:
        """The same function for the same value, in inference and in translation."""
        if all(map(is_constant, value.kept)):
            key = value.nested, tuple((type(kept), kept) for kept in value.kept)
        else:
            key = value
        if key not in self._of_kernel:
            self._of_kernel[key] = value.settled()
        return self._of_kernel[key]

    def _name(self, function: FunctionType) -> str:
        """A name that no other function of the kernel has."""
        stem = _NOT_IN_NAMES.sub("", function.__name__) or "function"
        taken = {made.name for made in self._made.values()}
        names = (f"{stem}.{number}" if number else stem for number in range(len(taken) + 1))
        return next(name for name in names if name not in taken)


def _function_of(value: object) -> FunctionType:
    """The Python function that a value stands for.

    Errors: BlockTypeError for what is no scalar function.
    """
    function = python_function(value)
    hint = ""
    if isinstance(value, BlockFunction):
        hint = f"call it: {value.__name__}(...) works on tiles"
    elif getattr(value, "python_function", None) is not None:
        function, hint = None, "call it as it is: a function under @bn.jit works on tiles"
    elif isinstance(value, np.ufunc) or callable(value):
        hint = "wrap it in a function: def f(x): return ..."
    require(function is not None, "map: given {!r}, accepted " + ACCEPTED, value, hint=hint)
    return function


@contextmanager
def _explained(function: FunctionType, signature: Signature) -> Iterator[None]:
    """Make errors of Numba's about a function our own, at its line."""
    try:
        yield
    except NumbaError as error:
        given = ", ".join(map(str, signature.parameters))
        text = _ESCAPES.sub("", str(error))
        raise BlockTypeError(
            f"map: Numba cannot compile {function.__name__}({given}): {_reason(text)}",
            loc=_location(function, text)) from None
    except BlockError:
        raise
    except Exception as error:  # Numba's libraries have others, of the driver for instance
        raise BlockTypeError(f"map: Numba cannot compile {function.__name__}: "
                             f"{type(error).__name__}: {_reason(str(error))}",
                             loc=_location(function, ""),
                             hint="use numbers and tuples only") from None


def _reason(text: str) -> str:
    """The first sentence of a message of Numba's, on one line."""
    text = _STAGE.sub("", text).strip()
    first = " ".join(_FURTHER.split(text, maxsplit=1)[0].split()).rstrip(":. ")
    return first if len(first) <= MAX_REASON else f"{first[:MAX_REASON]} ..."


def _location(function: FunctionType, text: str) -> Loc:
    """The last line of the function's file that a message of Numba's names, else the first one."""
    code = function.__code__
    places = [int(line) for file, line in _PLACE.findall(text)
              if code.co_filename.endswith(file.lstrip("./"))]
    line = places[-1] if places else code.co_firstlineno
    return Loc(code.co_filename, line, function=function.__name__)


