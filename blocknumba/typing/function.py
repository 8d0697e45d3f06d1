"""Functions: `bn.load` outside of a kernel and its rule inside; the signature of a user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType

from blocknumba.errors import BlockTypeError, UnsupportedError
from blocknumba.tracebacks import without_our_frames
from blocknumba.wording import did_you_mean, shown


class BlockFunction:
    """A function that can be called in a kernel.

    rule: (context, ...) -> value; it emits the ops of a call.  Type inference runs it too, on
    stand-ins of the arguments, so that what a call means is written once.
    fold: what is known of the arguments -> what is known of the result at compile time; None
        where nothing ever is.
    """

    fold: Callable | None = None

    def __init__(self, rule: Callable, name: str):
        self.rule = rule
        self.__name__ = self.__qualname__ = name
        self.__doc__ = rule.__doc__
        self.__module__ = "blocknumba.language"
        parameters = list(inspect.signature(rule).parameters.values())[1:]
        self.__signature__ = inspect.Signature(
            [parameter.replace(annotation=parameter.empty) for parameter in parameters])

    @without_our_frames
    def __call__(self, *arguments: object, **keywords: object) -> object:
        raise UnsupportedError(f"bn.{self.__name__} can only be called in a @bn.jit kernel",
                               hint=f"to try it on arrays: bn.evaluate(bn.{self.__name__}, ...)")

    def __get__(self, instance: object, owner: type | None = None) -> BlockFunction:
        """Itself: an attribute of a class, and a routine to `help`, which shows its parameters."""
        return self

    def __repr__(self) -> str:
        return f"<function bn.{self.__name__}>"

    def bind(self, arguments: tuple, keywords: dict[str, object]) -> inspect.BoundArguments:
        """The arguments by parameter.

        Errors: BlockTypeError for too many, too few, or unknown keywords.
        """
        arguments, keywords = self._by_own_names(arguments, keywords)
        try:
            return self.__signature__.bind(*arguments, **keywords)
        except TypeError as error:
            raise BlockTypeError(f"{self.__name__}: {error}, accepted "
                                 f"{self.__name__}{signature_text(self.__signature__)}",
                                 hint=keyword_hint(keywords, self.__signature__)) from None


    def _by_own_names(self, arguments: tuple,
                      keywords: dict[str, object]) -> tuple[tuple, dict[str, object]]:
        """Arguments, the keywords that Triton has other names for by those of the parameters."""
        parameters = self.__signature__.parameters
        if keywords.keys() <= parameters.keys():
            return arguments, keywords
        renamed: dict[str, object] = {}
        repeated: tuple = ()
        for keyword, value in keywords.items():
            names = (keyword,) if keyword in parameters else TRITON_NAMES.get(keyword, ())
            name = next((n for n in names if n in parameters and n not in renamed), keyword)
            if name in parameters and parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                repeated = (value,)
            else:
                renamed[name] = value
        if repeated and not arguments:  # what stands before a parameter with a star
            arguments = tuple(renamed.pop(name) for name in list(parameters)[:1] if name in renamed)
        return arguments + repeated, renamed


# Triton's name of a parameter -> ours, the first that a function has
TRITON_NAMES = {
    "input": ("x", "a", "tiles"), "a": ("x",), "b": ("y",), "other": ("y", "b"),
    "cond": ("condition",), "msg": ("message",), "end": ("stop",), "val": ("value",),
    "value": ("val",), "dim": ("axis",), "axis": ("dim",), "dims": ("axes",), "shape": ("shape",),
    "num_bins": ("bins",),
}


def signature_text(signature: inspect.Signature) -> str:
    """A signature in a message: defaults are shown by their short names."""
    return str(signature.replace(parameters=[
        parameter if parameter.default is parameter.empty
        else parameter.replace(default=_Shown(parameter.default))
        for parameter in signature.parameters.values()]))


class _Shown:
    """Stands for a default in the text of a signature."""

    def __init__(self, value: object):
        self._value = value

    def __repr__(self) -> str:
        return shown(self._value)


def keyword_hint(keywords: Iterable[str], signature: inspect.Signature) -> str:
    """A hint at the parameter that a keyword which none has may mean."""
    unknown = [name for name in keywords if name not in signature.parameters]
    if unknown[:1] == ["out"]:
        return "a function gives a new tile: assign it, and store it if it is for an array"
    return did_you_mean(unknown[0], signature.parameters) if unknown else ""


def function(rule: Callable) -> BlockFunction:
    """Declare a function of the language by its rule; a trailing underscore is dropped."""
    return BlockFunction(rule, rule.__name__.rstrip("_"))


def described(rule: Callable, name: str, doc: str) -> BlockFunction:
    """Declare a function of a family by its rule, with a docstring of its own."""
    rule.__doc__ = doc
    return BlockFunction(rule, name)


@dataclass(frozen=True)
class MustUse:
    """A mark of functions, __must_use__: not to use their results is a mistake.   hint: why."""

    hint: str = ""


# attributes under which decorators, ours and Numba's, keep the function that they were given
KEPT_FUNCTIONS = ("python_function", "py_func", "_dispatcher")  # the last of numba.vectorize


def python_function(value: object) -> FunctionType | None:
    """The Python function that a value stands for: itself, or what a decorator made of it."""
    if isinstance(value, FunctionType):
        return value
    if isinstance(value, type):
        return None
    for name in KEPT_FUNCTIONS:
        try:
            function = getattr(value, name, None)
            if name == "_dispatcher":
                function = getattr(function, "py_func", None)
        except Exception:  # of a user's __getattr__
            continue
        if isinstance(function, FunctionType):
            return function
    return None


def is_of_numba(value: object) -> bool:
    """Whether a decorator of Numba's made a value of a function: njit, vectorize, cuda.jit."""
    return type(value).__module__.startswith("numba.") and python_function(value) is not None


def bare(function: FunctionType) -> FunctionType:
    """A function without its attributes: no `__wrapped__`, no `__signature__`.

    What inspect and Numba say of it is what its code does, and not what functools.wraps says.
    """
    made = FunctionType(function.__code__, function.__globals__, function.__name__,
                        function.__defaults__, function.__closure__)
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def own_signature(function: FunctionType) -> inspect.Signature:
    """The signature of a function's own code, with the defaults that it has now."""
    return inspect.signature(bare(function))
