"""Named tuples and dataclasses in kernels: values with named fields, made and read there.

A kernel has a dataclass as a named tuple of its fields.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import namedtuple
from collections.abc import Callable
from functools import lru_cache

from blocknumba.errors import BlockError, BlockTypeError, UnsupportedError
from blocknumba.typing.function import keyword_hint, python_function, signature_text


METHOD_NAMES: set[str] = set()  # of all aggregates that there are


def record_of(cls: object) -> type | None:
    """The named tuple class that a kernel has for a class; None for what is no class of records.

    Errors: UnsupportedError for a dataclass whose fields named tuples cannot have.
    """
    if not isinstance(cls, type):
        return None
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return cls
    return _twin(cls) if dataclasses.is_dataclass(cls) else None


@lru_cache(maxsize=None)
def _twin(cls: type) -> type:
    """A named tuple class with the fields of a dataclass."""
    names = [field.name for field in dataclasses.fields(cls)]
    hidden = [name for name in names if name.startswith("_")]
    if hidden:
        raise UnsupportedError(f"{cls.__name__}: given a dataclass with the field {hidden[0]}, "
                               "accepted names that do not begin with an underscore")
    twin = namedtuple(cls.__name__, names)
    twin.__module__ = cls.__module__
    return twin


def fields_of(value: object) -> tuple:
    """The values of the fields of a named tuple or of a dataclass, in order."""
    if isinstance(value, tuple):
        return tuple(value)
    return tuple(getattr(value, field.name) for field in dataclasses.fields(value))


def method_of(kind: type, name: str) -> object | None:
    """A method of a class of records that is a function of kernels; None for anything else."""
    member = inspect.getattr_static(kind, name, None) if name not in kind._fields else None
    return member if python_function(member) is not None and not name.startswith("_") else None


def _called(name: str, function: Callable, arguments: tuple,
            keywords: dict[str, object]) -> dict[str, object]:
    """The result of a function of the user's that runs at compile time.

    Errors: BlockError for whatever it raises.
    """
    try:
        return function(*arguments, **keywords)
    except BlockError:
        raise
    except Exception as error:
        raise BlockTypeError(f"{name}: its __init__ raises {type(error).__name__}: {error}, "
                             "accepted one that passes values on") from error


def made_record(cls: type, arguments: tuple, keywords: dict[str, object]) -> tuple:
    """The record that a call of a class makes in a kernel.

    Errors: BlockTypeError for arguments that it does not take; UnsupportedError for a dataclass
    that computes its fields itself.
    """
    record, name = record_of(cls), cls.__name__
    made_by = getattr(record, "made_by", None)  # of an aggregate with an __init__
    if made_by is not None:
        return record(**_called(name, made_by, arguments, keywords))
    if record is not cls and hasattr(cls, "__post_init__"):
        raise UnsupportedError(f"{name}: given a dataclass with __post_init__, accepted "
                               "dataclasses whose fields are what they are given")
    signature = inspect.signature(cls)
    signature = signature.replace(return_annotation=signature.empty, parameters=[
        parameter.replace(annotation=parameter.empty)
        for parameter in signature.parameters.values()])
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise BlockTypeError(f"{name}: {error}, accepted {name}{signature_text(signature)}",
                             hint=keyword_hint(keywords, signature)) from None
    bound.apply_defaults()
    if record is cls:
        return record(*bound.args, **bound.kwargs)
    missing = [field.name for field in dataclasses.fields(cls)
               if not field.init or field.name not in keywords
               and field.default_factory is not dataclasses.MISSING
               and field.name not in list(signature.parameters)[:len(arguments)]]
    if missing:
        raise UnsupportedError(f"{name}: given no value of the field {missing[0]}, which a "
                               "function makes, accepted one of each such field")
    return record(**bound.arguments)
