"""Types of scalar functions: dtypes of elements as Numba's types, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType

from numba.core import types

from blocknumba.errors import BlockTypeError, Loc
from blocknumba.tile_ir.ir.types import (
    DType, bool_, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8,
)
from blocknumba.typing.function import own_signature, signature_text

_TYPES = {bool_: types.boolean, **{dtype: getattr(types, dtype.name) for dtype in (
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64)}}
_DTYPES = {of: dtype for dtype, of in _TYPES.items()}
_RESULTS = "numbers and bools, or a tuple of them"


@dataclass(frozen=True, slots=True)
class Signature:
    """Dtypes that a scalar function is called with.

    parameters: dtypes of the arguments; defaults: of the parameters that are given nothing.
    """

    parameters: tuple[DType, ...]
    defaults: tuple[object, ...] = ()

    @staticmethod
    def of(function: FunctionType, parameters: tuple[DType, ...]) -> Signature:
        """The signature of a call with arguments of these dtypes.

        Errors: BlockTypeError for too many or too few.
        """
        signature = own_signature(function)
        kinds = {parameter.kind for parameter in signature.parameters.values()}
        named = f"{function.__name__}{signature_text(signature)}"
        if kinds - {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
            raise BlockTypeError(f"map: given {named}, accepted a function of positional "
                                 "parameters", hint="wrap it in one that has a name for each")
        try:
            signature.bind(*parameters)
        except TypeError as error:
            raise BlockTypeError(f"map: {function.__name__}: {error}, accepted {named}") from None
        rest = list(signature.parameters.values())[len(parameters):]
        return Signature(parameters, tuple(parameter.default for parameter in rest))

    @property
    def is_weak(self) -> bool:
        """Whether Python floats are float32: no argument is float64."""
        return float64 not in self.parameters

    def types(self, weakened: Callable[[object], object]) -> tuple[types.Type, ...]:
        """Numba's types of the parameters.  weakened: a default -> what stands for it."""
        return (*(_TYPES[dtype] for dtype in self.parameters),
                *(types.Omitted(weakened(default)) for default in self.defaults))


def returned(function: FunctionType, made: types.Type) -> tuple[DType, ...]:
    """The dtypes of the results of a function that returns a value of Numba's type.

    Errors: BlockTypeError for what is neither a number nor a tuple of numbers.
    """
    found = made.types if isinstance(made, types.BaseTuple) else (made,)
    dtypes = tuple(_DTYPES.get(types.unliteral(item)) for item in found)
    if None in dtypes or not dtypes:
        item = next((item for item, dtype in zip(found, dtypes) if dtype is None), made)
        raise BlockTypeError(
            f"map: {function.__name__} returns {_described(item)}, accepted {_RESULTS}",
            loc=Loc(function.__code__.co_filename, function.__code__.co_firstlineno,
                    function=function.__name__), hint=_hint(item))
    return dtypes


def container(made: types.Type) -> type | None:
    """The class of tuples of Numba's type; None for a type of one value."""
    return getattr(made, "instance_class", tuple) if isinstance(made, types.BaseTuple) else None


def described_exception(kind: type | None, arguments: tuple) -> str:
    """An exception in a message: its class and its arguments."""
    name = "an exception" if kind is None else kind.__name__
    shown = ", ".join(map(str, arguments))
    return f"{name}: {shown}" if shown else name


def _described(item: types.Type) -> str:
    return "None" if item == types.none else str(item)


def _hint(item: types.Type) -> str:
    if isinstance(item, types.Complex):
        return "return z.real, z.imag"
    if isinstance(item, types.Optional):
        return "return a number on every path"
    return "return a value on every path" if item == types.none else ""
