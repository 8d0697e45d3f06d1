"""Signatures of kernels: parameters, binding, and conversion of scalars."""

from __future__ import annotations

import dis
import inspect
import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType

import numpy as np

from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.errors import BlockOverflowError, BlockTypeError, BlockValueError, Loc, require
from blocknumba.tile_ir.ir.types import (
    DTYPES, DType, bool_, dtype_of, float64, int32, int64, uint64,
)
from blocknumba.typing.dialect import NUMPY_NAME, TRITON_NAME
from blocknumba.typing.function import own_signature
from blocknumba.typing.numba_ir.written import written_code
from blocknumba.wording import did_you_mean, shown


@dataclass(frozen=True, slots=True)
class ScalarInfo:
    """A scalar argument of one launch.

    dtype: dtype of the kernel's parameter.
    value: a NumPy scalar of that dtype.
    weak: given as a Python int or float: in an expression it takes the dtype of the other
        operand.  Kernels are specialised on the value of such an int, not of a float.
    """

    dtype: DType
    value: np.generic
    weak: bool = False

    @property
    def bits(self) -> int:
        """The value in the low bits of a 64-bit slot, as the driver reads it."""
        return int.from_bytes(self.value.tobytes(), "little")


def scalar_info(value: object, declared: DType | None, where: str,
                 weak: bool = False) -> ScalarInfo | None:
    """Information on a scalar argument; None for a value that is not a number.

    declared: the dtype that annotates the parameter, which the value is converted to; without
        one an int is the narrowest of int32, int64 and uint64 that holds it, a float is
        float64, and a NumPy scalar keeps its dtype.
    weak: the parameter is annotated with `float`, and declared is float64.
    where: the kernel and the argument, for messages.
    Errors: BlockValueError for a value out of the dtype's range; BlockTypeError for a value of
    another kind: a float for an integer, anything but a bool for a bool.
    """
    if isinstance(value, np.generic):
        dtype = _numpy_dtype(value, where)
        if declared in (None, dtype):
            return ScalarInfo(dtype, value, weak)
    if not isinstance(value, (bool, int, float, np.generic)):
        return None
    if declared is not None:
        return replace(_converted(value, declared, where), weak=weak)
    if isinstance(value, bool):
        return ScalarInfo(bool_, np.bool_(value))
    if isinstance(value, int):
        return _python_integer(operator.index(value), where)
    return ScalarInfo(float64, np.float64(value), weak=True)


def scalar_of_array(value: np.ndarray, declared: DType, where: str,
                    weak: bool = False) -> ScalarInfo:
    """A 0-d NumPy array given for a parameter that is annotated with a dtype."""
    return scalar_info(value[()], declared, where, weak)


def _python_integer(value: int, where: str) -> ScalarInfo:
    for dtype in (int32, int64, uint64):
        if dtype.minimum <= value <= dtype.maximum:
            return ScalarInfo(dtype, dtype.numpy.type(value), weak=True)
    raise BlockOverflowError(f"{where}: given {shown(value)}, accepted ints that fit in 64 bits",
                             hint="pass it as a float")


def _numpy_dtype(value: np.generic, where: str) -> DType:
    try:
        return dtype_of(value.dtype)
    except BlockTypeError:
        raise BlockTypeError(f"{where}: given a scalar of {value.dtype}, "
                             f"accepted {', '.join(DTYPES)}") from None


def _converted(value: bool | int | float | np.generic, declared: DType,
               where: str) -> ScalarInfo:
    """A value in the declared dtype: floats are rounded, ints must fit."""
    is_bool = isinstance(value, (bool, np.bool_))
    is_integer = isinstance(value, (int, np.integer)) and not is_bool
    fits = is_integer if declared.is_integer else is_bool != declared.is_float
    require(fits, "{}: given {!r}, accepted {}", where, value, declared)
    if declared.is_float:
        return ScalarInfo(declared, _rounded(value, declared, where))
    value = operator.index(value) if is_integer else bool(value)
    require(declared.minimum <= value <= declared.maximum,
            "{}: given {}, accepted {} ({} to {})", where, value, declared, declared.minimum,
            declared.maximum, error=BlockValueError)
    return ScalarInfo(declared, declared.numpy.type(value))


def _rounded(value: bool | int | float | np.generic, declared: DType, where: str) -> np.generic:
    """A number as the nearest float of the declared dtype; finite numbers must stay finite."""
    try:
        with np.errstate(over="ignore"):
            rounded = declared.numpy.type(value)
    except OverflowError:  # an int beyond float64
        rounded = math.inf
    is_lost = not math.isfinite(rounded) and (isinstance(value, int) or math.isfinite(value))
    require(not is_lost,
            "{}: given {!r}, accepted numbers in the range of {}", where, value, declared,
            error=BlockValueError,
            hint="" if declared == float64 else "annotate the parameter with bn.float64")
    return rounded


REQUIRED = inspect.Parameter.empty
MISSING = object()  # the default of every argument of a launcher: it is never passed on as one
_PYTHON_HINTS = frozenset(("bool", "int", "float"))  # name no dtype of NumPy's


@dataclass(frozen=True, slots=True)
class Formal:
    """A parameter of a kernel.

    is_constant: annotated with constexpr; its argument is a value at compile time.
    dtype: the dtype it is annotated with, which numbers are converted to; else None.
    is_weak: annotated with `float`: numbers are converted to Python's floats, of dtype float64.
    default: value when it is not passed; REQUIRED when there is none.
    keyword_only: after a * in the signature.
    is_specialized: code may be made for what is known of a number: divisibility, sign, that it is
        1.
    is_rest: `*name`, which takes all further arguments by position, as a tuple.
    label: how messages call it; empty for its name.
    is_divisor: the code takes remainders by it directly, as in `x % M`; or the sign of ints
        decides about its divisions, as in Triton's dialect, where they truncate.
    """

    name: str
    is_constant: bool = False
    dtype: DType | None = None
    is_weak: bool = False
    default: object = REQUIRED
    keyword_only: bool = False
    is_divisor: bool = False
    is_specialized: bool = True
    is_rest: bool = False
    label: str = ""

    @property
    def called(self) -> str:
        """The name that messages have for it."""
        return self.label or self.name

    @property
    def has_default(self) -> bool:
        """Whether it may be left out of a call."""
        return self.default is not REQUIRED


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, in order.

    kernel: its name, for messages.
    """

    kernel: str
    formals: tuple[Formal, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(formal.name for formal in self.formals)

    @cached_property
    def positional_names(self) -> tuple[str, ...]:
        """The parameters that are passed by position, in order."""
        return tuple(formal.name for formal in self.formals
                     if not formal.keyword_only and not formal.is_rest)

    @cached_property
    def rest(self) -> str | None:
        """The parameter that takes all further arguments by position."""
        return next((formal.name for formal in self.formals if formal.is_rest), None)

    def called(self, name: str) -> str:
        """The name that messages have for a parameter."""
        return next((formal.called for formal in self.formals if formal.name == name), name)

    @cached_property
    def options(self) -> frozenset[str]:
        """The parameters whose names are those of compile options too."""
        return OPTION_NAMES.intersection(self.names)

    def passed(self, arguments: tuple, keywords: Mapping[str, object],
               ) -> tuple[tuple, dict[str, object]]:
        """The arguments that are not MISSING; those after one that is were passed by name."""
        for count, value in enumerate(arguments):
            if value is MISSING:
                keywords = dict(zip(self.positional_names[count:], arguments[count:])) | keywords
                arguments = arguments[:count]
                break
        return arguments, {name: value for name, value in keywords.items() if value is not MISSING}

    def bind(self, positional: Sequence[object], keywords: Mapping[str, object],
             ) -> tuple[dict[str, object], dict[str, object]]:
        """The arguments by name, defaults filled in, in order; and the compile options.

        A keyword that is the name of a parameter and of an option is both, as in Triton.
        Errors: BlockTypeError for arguments that are missing, left over or given twice.
        """
        names, rest = self.positional_names, self.rest
        require(rest is not None or len(positional) <= len(names),
                "{}: given {} positional arguments, accepted {}",
                self.kernel, len(positional), self._listed(names))
        given = dict(zip(names, positional))
        if rest is not None:
            require(rest not in keywords, "{}: given {}= by name, accepted arguments by position",
                    self.kernel, rest)
            given[rest] = tuple(positional[len(names):])
        options = {}
        for name, value in keywords.items():
            require(name not in given, "{}: given {} twice, by position and by name", self.kernel,
                    name)
            self._require_known(name, given.keys() | keywords.keys())
            if name in self.names:
                given[name] = value
            if name in OPTION_NAMES:
                options[name] = value
        bound = {formal.name: given.get(formal.name, formal.default) for formal in self.formals}
        missing = [name for name, value in bound.items() if value is REQUIRED]
        require(not missing, "{}: missing {}", self.kernel, ", ".join(missing),
                hint=f"it takes {', '.join(self.names)}" + (
                    "; a kernel is no method, define it outside of the class"
                    if self.names[:1] == ("self",) else ""))
        return bound, options

    def _require_known(self, name: str, given: Collection[str]) -> None:
        known = [*self.names, *sorted(OPTION_NAMES)]
        if name in known:
            return
        raise BlockTypeError(
            f"{self.kernel}: given {name}=, accepted {self._listed(self.names)} and the options "
            f"{', '.join(sorted(OPTION_NAMES))}",
            hint=did_you_mean(name, known) or self._left_out(given))

    def _left_out(self, given: Collection[str]) -> str:
        """A hint at the parameters that have no value, one of which may have been meant."""
        names = [formal.name for formal in self.formals
                 if formal.default is REQUIRED and formal.name not in given]
        return f"no value is given for {', '.join(names)}" if names else ""

    @staticmethod
    def _listed(names: Sequence[str]) -> str:
        return f"{len(names)} ({', '.join(names)})" if names else "none"


def read_signature(function: FunctionType, dialect: str = NUMPY_NAME) -> Signature:
    """The signature of a kernel's Python function.

    Errors: BlockTypeError for what is no such function, for **keywords, and for a parameter named
    `stream`, which a launch takes itself.
    """
    require(isinstance(function, FunctionType), "jit: given {!r}, accepted a Python function",
            function, hint=f"write @{type(function).__name__} above @jit" if isinstance(
                function, (staticmethod, classmethod)) else "")
    name = function.__name__
    formals, divisors = [], _divisors(function)
    for parameter in own_signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise BlockTypeError(f"{name}: given a parameter **{parameter.name}, accepted "
                                 "parameters with one name each, and *names"
                                 ).at(Loc.of(function))
        if parameter.name == "stream":
            raise BlockTypeError(f"{name}: given a parameter named stream, which is the keyword "
                                 "that chooses a launch's stream").at(Loc.of(function))
        formals.append(replace(
            annotated_formal(parameter.name, parameter.annotation), default=parameter.default,
            keyword_only=parameter.kind is parameter.KEYWORD_ONLY,
            is_divisor=dialect == TRITON_NAME or parameter.name in divisors,
            is_rest=parameter.kind is parameter.VAR_POSITIONAL))
    return Signature(name, tuple(formals))


def annotated_formal(name: str, annotation: object) -> Formal:
    """A parameter with an annotation, as far as that says what it is."""
    annotation = getattr(annotation, "__forward_arg__", annotation)  # of a NamedTuple's source
    is_weak = annotation in (float, "float")
    return Formal(name, _last_name(annotation) == "constexpr",
                  float64 if is_weak else _declared_dtype(annotation), is_weak)


def _divisors(function: FunctionType) -> set[str]:
    """The local names that stand after a %."""
    found, before = set(), None
    for instruction in dis.get_instructions(written_code(function)):
        is_remainder = instruction.opname == "BINARY_OP" and instruction.argrepr in ("%", "%=")
        if is_remainder and before.opname.startswith("LOAD_FAST"):
            # one instruction may load two names
            found.add(before.argval[-1] if isinstance(before.argval, tuple) else before.argval)
        before = instruction
    return found


def _declared_dtype(annotation: object) -> DType | None:
    """The dtype that an annotation names in any of the spellings of dtypes; else None."""
    name = _last_name(annotation)
    if annotation in (bool, int, float) or annotation in _PYTHON_HINTS:
        return None
    return DTYPES.get(name.rstrip("_"))


def _last_name(annotation: object) -> str:
    """The last name of an annotation, which may still be source text: constexpr of bn.constexpr."""
    if annotation is REQUIRED:
        return ""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2]
    name = getattr(annotation, "__name__", None) or getattr(annotation, "name", None)
    return name if isinstance(name, str) else type(annotation).__name__
