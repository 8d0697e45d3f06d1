"""The signature of a kernel: its parameters, and how a call's arguments bind to them."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType

from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.errors import BlockTypeError, Loc, require
from blocknumba.tile_ir.ir.types import DTYPES, DType, float64
from blocknumba.typing.function import own_signature
from blocknumba.typing.numba_ir.written import written_code
from blocknumba.wording import did_you_mean

REQUIRED = inspect.Parameter.empty
_PYTHON_HINTS = frozenset(("bool", "int", "float"))  # name no dtype of NumPy's


@dataclass(frozen=True, slots=True)
class Formal:
    """A parameter of a kernel.

    is_constant: annotated with constexpr; its argument is a value at compile time.
    dtype: the dtype it is annotated with, which numbers are converted to; else None.
    is_weak: annotated with `float`: numbers are converted to Python's floats, of dtype float64.
    default: value when it is not passed; REQUIRED when there is none.
    keyword_only: after a * in the signature.
    is_divisor: the code takes remainders by it directly, as in `x % M`.
    """

    name: str
    is_constant: bool = False
    dtype: DType | None = None
    is_weak: bool = False
    default: object = REQUIRED
    keyword_only: bool = False
    is_divisor: bool = False

    @property
    def has_default(self) -> bool:
        """Whether it may be left out of a call."""
        return self.default is not REQUIRED


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a kernel, in order.

    kernel: its name, for messages.
    """

    kernel: str
    formals: tuple[Formal, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(formal.name for formal in self.formals)

    @property
    def positional_names(self) -> tuple[str, ...]:
        """The parameters that are passed by position, in order."""
        return tuple(formal.name for formal in self.formals if not formal.keyword_only)

    def is_option(self, name: str) -> bool:
        """Whether a parameter's name is that of a compile option too."""
        return name in OPTION_NAMES and name in self.names

    def bind(self, positional: Sequence[object], keywords: Mapping[str, object],
             ) -> tuple[dict[str, object], dict[str, object]]:
        """The arguments by name, defaults filled in, in order; and the compile options.

        A keyword that is the name of a parameter and of an option is both, as in Triton.
        Errors: BlockTypeError for arguments that are missing, left over or given twice.
        """
        names = self.positional_names
        require(len(positional) <= len(names), "{}: given {} positional arguments, accepted {}",
                self.kernel, len(positional), self._listed(names))
        given = dict(zip(names, positional))
        options = {}
        for name, value in keywords.items():
            require(name not in given, "{}: given {} twice, by position and by name", self.kernel,
                    name)
            self._require_known(name)
            if name in self.names:
                given[name] = value
            if name in OPTION_NAMES:
                options[name] = value
        bound = {formal.name: given.get(formal.name, formal.default) for formal in self.formals}
        missing = [name for name, value in bound.items() if value is REQUIRED]
        require(not missing, "{}: missing {}", self.kernel, ", ".join(missing),
                hint=f"it takes {', '.join(self.names)}")
        return bound, options

    def _require_known(self, name: str) -> None:
        known = [*self.names, *sorted(OPTION_NAMES)]
        if name in known:
            return
        raise BlockTypeError(
            f"{self.kernel}: given {name}=, accepted {self._listed(self.names)} and the options "
            f"{', '.join(sorted(OPTION_NAMES))}",
            hint=did_you_mean(name, known))

    @staticmethod
    def _listed(names: Sequence[str]) -> str:
        return f"{len(names)} ({', '.join(names)})" if names else "none"


def read_signature(function: FunctionType) -> Signature:
    """The signature of a kernel's Python function.

    Errors: BlockTypeError for *args and **keywords, and for a parameter named `stream`, which a
    launch takes itself.
    """
    name = function.__name__
    formals, divisors = [], _divisors(function)
    for parameter in own_signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise BlockTypeError(f"{name}: given a parameter {stars}{parameter.name}, "
                                 "accepted parameters with one name each").at(location(function))
        if parameter.name == "stream":
            raise BlockTypeError(f"{name}: given a parameter named stream, which is the keyword "
                                 "that chooses a launch's stream").at(location(function))
        is_weak = parameter.annotation in (float, "float")
        formals.append(Formal(parameter.name, _last_name(parameter.annotation) == "constexpr",
                              float64 if is_weak else _declared_dtype(parameter.annotation),
                              is_weak, parameter.default,
                              parameter.kind is parameter.KEYWORD_ONLY,
                              parameter.name in divisors))
    return Signature(name, tuple(formals))


def location(function: FunctionType) -> Loc:
    """The line where a function begins."""
    code = function.__code__
    return Loc(code.co_filename, code.co_firstlineno, function=function.__name__)


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
