"""Which configuration a launch like an earlier one takes, without reading its arguments again.

For each form of call, a tuple of the arguments' classes, a function is generated that makes a key
of all that a TuningKey depends on.  It is finer than a TuningKey, and far cheaper: for
`tuned[grid](x, n)` with the keys "x.shape" and "n",

    lambda x, n: (x.dtype, x.shape, x.strides, x.data.ptr & 15, n)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, NoneType

import numpy as np

from blocknumba.dispatch.arrays import library_of
from blocknumba.dispatch.autotune_config import Config
from blocknumba.dispatch.driver import Driver, find_driver, host_pointer
from blocknumba.dispatch.launcher import MAX_PLANS
from blocknumba.dispatch.signature import Formal, Signature
from blocknumba.dispatch.specialize import ALIGNMENT, freeze
from blocknumba.tile_ir.types import DType

# constants of these classes are equal only when they mean the same
_EXACT = (int, bool, str, NoneType, type, FunctionType, BuiltinFunctionType, DType, np.dtype)

Form = tuple[Hashable, ...]


class Memo:
    """The configurations of earlier launches of one tuned kernel.

    keys: what the user wants to be told apart.
    """

    def __init__(self, signature: Signature, keys: Sequence[str]):
        self._signature, self._keys = signature, keys
        self._functions: dict[Form, Callable[..., Hashable] | None] = {}
        self._configs: dict[tuple[Form, Hashable], Config] = {}

    def key(self, arguments: tuple, keywords: Mapping[str, object]) -> Hashable | None:
        """The key of a launch; None when its arguments must be read."""
        form = (len(arguments), *map(type, arguments), *keywords, *map(type, keywords.values()))
        try:
            function = self._functions[form]
        except KeyError:
            places = self._signature.names[:len(arguments)]
            if len(places) < len(arguments) or not keywords.keys().isdisjoint(places):
                return None  # a mistake that binding reports
            given = dict(zip(self._signature.names, map(type, arguments)))
            given |= {name: type(value) for name, value in keywords.items()}
            function = _key_function(find_driver(), self._signature, given, len(arguments),
                                     self._keys)
            self._functions[form] = function
        if function is None:
            return None
        try:
            key = form, function(*arguments, **keywords)
            hash(key)
        except (AttributeError, TypeError):
            return None  # a mistake that reading the arguments reports, or a value without a hash
        return key

    def find(self, key: Hashable | None) -> Config | None:
        """What add was told of a key."""
        return self._configs.get(key)

    def add(self, key: Hashable | None, config: Config) -> None:
        """Remember the configuration of launches with a key."""
        if key is None:
            return
        if len(self._configs) >= MAX_PLANS:
            self._configs.clear()
        self._configs[key] = config


def _key_function(driver: Driver | None, signature: Signature, given: Mapping[str, type],
                  positional: int, keys: Sequence[str]) -> Callable[..., Hashable] | None:
    """given: class of every argument, in the order in which it is passed, keywords after the
    first `positional`."""
    if any(name.startswith("_") for name in given):
        return None
    formals = {formal.name: formal for formal in signature.formals}
    devices = driver.device_count if driver is not None else 0
    expressions = ["_current_device()"] if devices > 1 else []
    for name, cls in given.items():
        found = _expressions(name, formals.get(name, Formal(name, is_constant=True)), cls, devices,
                             name in keys)
        if found is None:
            return None
        expressions += found
    getters = {f"_get{number}": operator.attrgetter(key.partition(".")[2])
               for number, key in enumerate(keys) if "." in key}
    expressions += [f"_get{number}({key.partition('.')[0]})" for number, key in enumerate(keys)
                    if "." in key and key.partition(".")[0] in given]
    names = list(given)
    passed = [*names[:positional], *(["*"] if len(names) > positional else []),
              *names[positional:]]
    scope = {"_freeze": freeze, "_host_pointer": host_pointer,
             "_current_device": driver and driver.current_device,
             "_pointer_device": driver and driver.pointer_device, **getters}
    return eval(f"lambda {', '.join(passed)}: ({''.join(f'{e}, ' for e in expressions)})", scope)


def _expressions(name: str, formal: Formal, cls: type, devices: int,
                 is_key: bool) -> list[str] | None:
    """What of an argument may change the choice; None when it must be read to know."""
    if formal.is_constant or cls is NoneType:
        return [name if issubclass(cls, _EXACT) else f"_freeze({name}, {name!r})"]
    library = library_of(cls)
    if library is None:
        if cls not in (int, bool, float) and not issubclass(cls, np.generic):
            return None
        # a small int is an int32 whatever its value
        small = f"-2147483648 <= {name} <= 2147483647"
        return [name if is_key else f"{small} or {name}" if cls is int else "0"]
    if not library.is_fast and library.name != "numpy":
        return None
    pointer = library.pointer.format(name) or f"_host_pointer({name})"
    found = [text.format(name) for text in (library.dtype, library.shape, library.strides)]
    found.append(f"{pointer} & {ALIGNMENT - 1}")
    if library.name == "torch":
        found.append(library.device.format(name))
    elif devices > 1 and library.name != "numpy":
        found.append(library.device.format(name) or f"_pointer_device({pointer})")
    return found
