"""Functions of the language: what `bn.load` is outside of a kernel, and its rule inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from blocknumba.errors import BlockTypeError, UnsupportedError


class BlockFunction:
    """A function that can be called in a kernel.

    rule: (context, ...) -> value; it emits the ops of a call.  Type inference runs it too, on
    stand-ins of the arguments, so that what a call means is written once.
    """

    def __init__(self, rule: Callable, name: str):
        self.rule = rule
        self.__name__ = self.__qualname__ = name
        self.__doc__ = rule.__doc__
        self.__module__ = "blocknumba.language"
        parameters = list(inspect.signature(rule).parameters.values())
        self.__signature__ = inspect.Signature(parameters[1:])

    def __call__(self, *arguments: object, **keywords: object) -> object:
        raise UnsupportedError(f"bn.{self.__name__} can only be called in a @bn.jit kernel")

    def __repr__(self) -> str:
        return f"<function bn.{self.__name__}>"

    def bind(self, arguments: tuple, keywords: dict[str, object]) -> inspect.BoundArguments:
        """The arguments by parameter.

        Errors: BlockTypeError for too many, too few, or unknown keywords.
        """
        try:
            return self.__signature__.bind(*arguments, **keywords)
        except TypeError as error:
            raise BlockTypeError(f"{self.__name__}: {error}, accepted "
                                 f"{self.__name__}{self.__signature__}") from None


def function(rule: Callable) -> BlockFunction:
    """Declare a function of the language by its rule; a trailing underscore is dropped."""
    return BlockFunction(rule, rule.__name__.rstrip("_"))
