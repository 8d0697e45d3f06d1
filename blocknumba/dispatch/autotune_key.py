"""What a tuned choice depends on besides the code: the key of timings."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from blocknumba.dispatch.arrays import ArrayFacts
from blocknumba.dispatch.call import Arguments
from blocknumba.dispatch.signature import Signature
from blocknumba.dispatch.specialize import argument_of, freeze
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.arguments import ArrayArgument
from blocknumba.wording import did_you_mean, shown

# read from an array's facts: alike for the arrays of every library
_FACTS = {"shape": lambda facts: facts.shape, "dtype": lambda facts: facts.dtype,
          "strides": lambda facts: facts.strides, "size": lambda facts: facts.size,
          "ndim": lambda facts: len(facts.shape)}


@dataclass(frozen=True, slots=True)
class TuningKey:
    """What one choice is for; hashable.

    text: readable, and the same in every process.
    exact: what text does not tell apart: functions of the same name.
    """

    text: str
    exact: Hashable


def require_keys(keys: Sequence[str], signature: Signature, chosen: frozenset[str]) -> None:
    """Check that keys name arguments, "n" or "a.shape", that are not tuned themselves."""
    require(not isinstance(keys, str), "autotune: given the key {!r}, accepted a list of names",
            keys)
    known = [name for name in signature.names if name not in chosen]
    for key in keys:
        require(isinstance(key, str), "autotune: given the key {!r}, accepted names of arguments",
                key)
        name = key.partition(".")[0]
        if name not in known:
            raise BlockValueError(f"autotune: given the key {shown(key)}, accepted arguments of "
                                  f"{signature.kernel} that are not tuned: {', '.join(known)}",
                                  hint=did_you_mean(name, known))


def tuning_key(arguments: Arguments, bound: Mapping[str, object], keys: Sequence[str],
               options: Mapping[str, object], kernel: str) -> TuningKey:
    """The key of a call.

    It always holds the dtypes, strides and alignment of arrays as far as code is specialised on
    them, the kinds of numbers, constants and options; and the values that keys name.
    arguments: those that are not tuned.  bound: their values.  options: of the launch.
    """
    words = [f"{name}: {_kind(facts)}" for name, facts in arguments.facts.items()]
    words += [f"{name}={_word(value)}" for name, value in arguments.constants.items()]
    words += [f"{name}={value!r}" for name, value in options.items()]
    words += [f"{key}={_word(_named_value(key, arguments, bound, kernel))}" for key in keys
              if key not in arguments.constants]
    exact = tuple(freeze(value, f"{kernel}: argument {name}")
                  for name, value in arguments.constants.items())
    return TuningKey(", ".join(words), exact)


def _kind(facts: object) -> str:
    """An argument's class: float32[:*16, ::1]:16 for a matrix whose rows are aligned.

    A Python number, whose dtype is weak, is "float (float64)", or "int (int32)" and the like.
    """
    argument = argument_of(facts)
    if not isinstance(argument, ArrayArgument):
        python = "float" if argument.dtype.is_float else "int"
        return f"{python} ({argument.dtype})" if argument.weak else str(argument.dtype)
    axes = [f"::{stride}" if stride is not None else f":*{divisor}"
            for stride, divisor in zip(argument.strides, argument.stride_divisibility)]
    wide = ", wide" * argument.wide
    return f"{argument.dtype}[{', '.join(axes)}]:{argument.alignment}{wide}"


def _named_value(key: str, arguments: Arguments, bound: Mapping[str, object],
                 kernel: str) -> object:
    name, _, attribute = key.partition(".")
    facts = arguments.facts.get(name)
    is_array = isinstance(facts, ArrayFacts)
    if not attribute:
        require(not is_array, "{}: the key {!r} is an array, accepted numbers and attributes",
                kernel, key, hint=f"use {name}.shape or {name}.dtype")
        return bound[name]
    if is_array and attribute in _FACTS:
        return _FACTS[attribute](facts)
    try:
        return operator.attrgetter(attribute)(bound[name])
    except AttributeError:
        raise BlockTypeError(f"{kernel}: argument {name} has no {attribute}, which is in the key "
                             "to tune by") from None


def _word(value: object) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_word, value))})"
    return getattr(value, "__qualname__", None) or str(value)
