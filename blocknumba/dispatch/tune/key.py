"""Configurations to tune over, and the keys under which choices are kept."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, NoneType

import numpy as np

from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.arrays import ArrayInfo, library_of
from blocknumba.dispatch.launch.call import Arguments
from blocknumba.dispatch.launch.driver import Driver, find_driver, host_pointer
from blocknumba.dispatch.launch.launcher import MAX_PLANS
from blocknumba.dispatch.launch.signature import Formal, Signature
from blocknumba.dispatch.launch.specialize import ALIGNMENT, argument_of, freeze
from blocknumba.dispatch.tiles.choice import bucket, bucketed
from blocknumba.errors import BlockTypeError, BlockValueError, require, require_known
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tracebacks import without_our_frames
from blocknumba.wording import did_you_mean, shown


Hook = Callable[..., object]


@dataclass(frozen=True)
class Config:
    """One choice of constants and compile options.

    kwargs: constants by name; compile options are accepted among them.
    num_warps, num_stages, num_ctas, maxnreg: compile options; None leaves the kernel's own.
    pre_hook: called with the dict of all arguments before every launch with this configuration.
    Errors: BlockTypeError or BlockValueError for an option out of its range.

    Example:
    >>> bn.Config({"BLOCK": 128}, num_warps=8).kwargs
    {'BLOCK': 128}
    """

    kwargs: Mapping[str, object]
    num_warps: int | None = None
    num_stages: int | None = None
    num_ctas: int | None = None
    maxnreg: int | None = None
    pre_hook: Hook | None = None

    def __post_init__(self):
        require(isinstance(self.kwargs, Mapping) and all(isinstance(n, str) for n in self.kwargs),
                "Config: given {!r}, accepted a dict of constants by name", self.kwargs)
        Options(**self._options())  # its errors are better here than at the first launch

    def all_kwargs(self) -> dict[str, object]:
        """The constants and the options, as keywords of a launch."""
        return {**self.kwargs, **self._options()}

    def __str__(self) -> str:
        return ", ".join(f"{name}={_shown(value)}" for name, value in self.all_kwargs().items())

    def _options(self) -> dict[str, object]:
        named = {"num_warps": self.num_warps, "num_stages": self.num_stages,
                 "num_ctas": self.num_ctas, "maxnreg": self.maxnreg}
        return {name: value for name, value in named.items() if value is not None}


Config.__init__ = without_our_frames(Config.__init__)  # which calls __post_init__


@dataclass(frozen=True, slots=True)
class Pruning:
    """Rules that drop configurations before they are timed.

    early_config_prune: (configurations, arguments by name, **keywords of the launch) -> some of
        the configurations.
    perf_model: (**arguments, constants and options) -> estimated time, in any unit.
    top_k: how many of the fastest estimates to keep: a count, or a fraction up to 1.0.
    max_spills: bytes of spilled registers per thread that a configuration may have.
    """

    early_config_prune: Callable[..., Iterable[Config]] | None = None
    perf_model: Callable[..., float] | None = None
    top_k: int | float = 1.0
    max_spills: int | None = None

    @staticmethod
    def of(rules: Mapping[str, object] | None) -> Pruning:
        """Triton's prune_configs_by.  Errors: BlockTypeError for a rule that does not exist."""
        require_known("autotune: given prune_configs_by", rules or {},
                      list(Pruning.__dataclass_fields__))
        return Pruning(**(rules or {}))

    def keep(self, configs: Sequence[Config], named: Mapping[str, object],
             keywords: Mapping[str, object]) -> list[Config]:
        """The configurations to try.

        named: the arguments by name.  keywords: of the launch.
        Errors: BlockValueError when early_config_prune keeps none.
        """
        kept = list(configs)
        if self.early_config_prune is not None:
            kept = list(self.early_config_prune(kept, dict(named), **keywords))
            require(kept, "autotune: early_config_prune kept none of {} configurations",
                    len(configs), error=BlockValueError)
        count = self.top_k
        if isinstance(count, float) and count <= 1:
            count = max(1, int(len(configs) * count))
        if self.perf_model is None or len(kept) <= count:
            return kept
        estimates = [self.perf_model(**{**named, **keywords, **config.all_kwargs()})
                     for config in kept]
        order = sorted(range(len(kept)), key=estimates.__getitem__)
        return [kept[number] for number in order[:int(count)]]


def require_configs(configs: Iterable[object]) -> tuple[Config, ...]:
    """Configurations that are different from each other; the one without constants for none.

    Errors: BlockTypeError for anything that is not a Config; BlockValueError for two alike.
    """
    configs = tuple(configs) or (Config({}),)
    labels = [str(config) for config in configs]
    for config, label in zip(configs, labels):
        require(isinstance(config, Config), "autotune: given {!r} among configs, accepted Config",
                config, error=BlockTypeError)
        require(labels.count(label) == 1, "autotune: given the configuration {} twice", label,
                error=BlockValueError)
    return configs


def _shown(value: object) -> str:
    return getattr(value, "__qualname__", None) or repr(value)


# read from ArrayInfo, so that arrays of every library give the same key
_ATTRIBUTES = {"shape": lambda info: info.shape, "dtype": lambda info: info.dtype,
               "strides": lambda info: info.strides, "size": lambda info: info.size,
               "ndim": lambda info: len(info.shape)}


@dataclass(frozen=True, slots=True)
class TuningKey:
    """Key of a choice; hashable.

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
               options: Mapping[str, object], kernel: str, tiles: bool = False) -> TuningKey:
    """The key of a call.

    It always holds the dtypes, strides and alignment of arrays as far as code is specialised on
    them, the kinds of numbers, constants and options; and the values that keys name.
    arguments: those that are not tuned.  bound: their values.  options: of the launch.
    tiles: and what tiles are chosen by, shapes and ints in buckets.
    """
    fields = [f"{name}: {argument_of(info)}" for name, info in arguments.infos.items()]
    fields += [f"{name}={_text(value)}" for name, value in arguments.constants.items()]
    fields += [f"{name}={value!r}" for name, value in options.items()]
    fields += [f"{key}={_text(_named_value(key, arguments, bound, kernel))}" for key in keys
              if key not in arguments.constants]
    if tiles:
        fields += [f"{name} near {_near(info)}" for name, info in arguments.infos.items()]
    exact = tuple(freeze(value, f"{kernel}: argument {name}")
                  for name, value in arguments.constants.items())
    return TuningKey(", ".join(fields), exact)


def _near(info: object) -> object:
    return tuple(map(bucket, info.shape)) if isinstance(info, ArrayInfo) else bucketed(info.value)


def _named_value(key: str, arguments: Arguments, bound: Mapping[str, object],
                 kernel: str) -> object:
    name, _, attribute = key.partition(".")
    info = arguments.infos.get(name)
    is_array = isinstance(info, ArrayInfo)
    if not attribute:
        require(not is_array, "{}: the key {!r} is an array, accepted numbers and attributes",
                kernel, key, hint=f"use {name}.shape or {name}.dtype")
        return bound[name]
    if is_array and attribute in _ATTRIBUTES:
        return _ATTRIBUTES[attribute](info)
    try:
        return operator.attrgetter(attribute)(bound[name])
    except AttributeError:
        raise BlockTypeError(f"{kernel}: argument {name} has no {attribute}, which is in the key "
                             "to tune by") from None


def _text(value: object) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    return getattr(value, "__qualname__", None) or str(value)


# constants of these classes are equal only when they mean the same
_EXACT = (int, bool, str, NoneType, type, FunctionType, BuiltinFunctionType, DType, np.dtype)

CallSignature = tuple[Hashable, ...]


class Memo:
    """The configurations of earlier launches of one tuned kernel.

    keys: what the user wants to be told apart.
    tiles: whether ints are told apart too, by which tiles are chosen.
    """

    def __init__(self, signature: Signature, keys: Sequence[str], tiles: bool):
        self._signature, self._keys, self._tiles = signature, keys, tiles
        self._functions: dict[CallSignature, Callable[..., Hashable] | None] = {}
        self._configs: dict[tuple[CallSignature, Hashable], Config] = {}

    def key(self, arguments: tuple, keywords: Mapping[str, object]) -> Hashable | None:
        """The key of a launch; None when its arguments must be read."""
        call = (len(arguments), *map(type, arguments), *keywords, *map(type, keywords.values()))
        try:
            function = self._functions[call]
        except KeyError:
            positional = self._signature.names[:len(arguments)]
            if len(positional) < len(arguments) or not keywords.keys().isdisjoint(positional):
                return None  # a mistake that binding reports
            given = dict(zip(self._signature.names, map(type, arguments)))
            given |= {name: type(value) for name, value in keywords.items()}
            keys = (*self._keys, *(size_names(given) if self._tiles else ()))
            function = _key_function(find_driver(), self._signature, given, len(arguments), keys)
            self._functions[call] = function
        if function is None:
            return None
        try:
            key = call, function(*arguments, **keywords)
            hash(key)
        except (AttributeError, TypeError):
            return None  # a mistake that reading the arguments reports, or a value without a hash
        return key

    def find(self, key: Hashable | None) -> Config | None:
        """The configuration added for a key, or None."""
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
    expressions = key_expressions(driver, signature, given, keys)
    if expressions is None:
        return None
    getters = {f"_get{number}": operator.attrgetter(key.partition(".")[2])
               for number, key in enumerate(keys) if "." in key}
    expressions += [f"_get{number}({key.partition('.')[0]})" for number, key in enumerate(keys)
                    if "." in key and key.partition(".")[0] in given]
    names = list(given)
    passed = [*names[:positional], *(["*"] if len(names) > positional else []),
              *names[positional:]]
    scope = key_scope(driver) | getters
    return eval(f"lambda {', '.join(passed)}: ({''.join(f'{e}, ' for e in expressions)})", scope)


def key_expressions(driver: Driver | None, signature: Signature, given: Mapping[str, type],
                    keys: Collection[str], aligned: bool = True) -> list[str] | None:
    """Source texts of what tells calls with arguments of some classes apart: the shapes, strides
    and dtypes of arrays, constants, and the numbers that keys name.

    aligned: and the alignment of arrays.

    They read the names in `key_scope`; None if an argument must be read by other means.
    """
    formals = {formal.name: formal for formal in signature.formals}
    devices = driver.device_count if driver is not None else 0
    expressions = ["_current_device()"] if devices > 1 else []
    for name, cls in given.items():
        found = _expressions(name, formals.get(name, Formal(name, is_constant=True)), cls, devices,
                             name in keys, aligned)
        if found is None:
            return None
        expressions += found
    return expressions


def size_names(given: Mapping[str, type]) -> list[str]:
    """The arguments that may be sizes, by their classes: a float says nothing about tiles."""
    return [name for name, cls in given.items() if issubclass(cls, (int, np.integer))]


def key_scope(driver: Driver | None) -> dict[str, object]:
    """The names that the texts of `key_expressions` read."""
    return {"_freeze": freeze, "_host_pointer": host_pointer,
            "_current_device": driver and driver.current_device,
            "_pointer_device": driver and driver.pointer_device}


def _expressions(name: str, formal: Formal, cls: type, devices: int, is_key: bool,
                 aligned: bool) -> list[str] | None:
    """Source text of the key of an argument; None if the argument must be read."""
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
    if aligned:
        found.append(f"{pointer} & {ALIGNMENT - 1}")
    if library.name == "torch":
        found.append(library.device.format(name))
    elif devices > 1 and library.name != "numpy":
        found.append(library.device.format(name) or f"_pointer_device({pointer})")
    return found
