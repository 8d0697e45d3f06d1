"""`triton.autotune` and `triton.heuristics`, with the members that tuners of others build on.

    kernel[grid](...) --> Autotuner.run --> Heuristics.run --> JITFunction.run

Each layer is a KernelInterface whose run calls run of the layer below, `fn`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from types import FunctionType

from blocknumba.testing.benchmark import do_bench_cudagraph
from blocknumba.triton.errors import (
    AutotunerError, CompileTimeAssertionFailure, OutOfResources, PTXASError,
)
from blocknumba.triton.runtime.cache import FileCacheManager, digest
from blocknumba.triton.runtime.driver import driver
from blocknumba.triton.runtime.interface import KernelInterface

__all__ = ["Autotuner", "Config", "Heuristics", "KernelInterface", "OutOfResources", "autotune",
           "heuristics"]

QUANTILES = (0.5, 0.2, 0.8)
_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg")
_FAILED = [float("inf")] * len(QUANTILES)


class Config:
    """One choice of constants and options.

    kwargs: constants by name.  num_warps, num_stages, num_ctas, maxnreg: options of the launch.
    pre_hook: called with the dict of all arguments before every launch with this choice.

    Example:
    >>> triton.Config({"BLOCK": 128}, num_warps=8).all_kwargs()["BLOCK"]
    128
    """

    def __init__(self, kwargs: Mapping[str, object], num_warps: int = 4, num_stages: int = 3,
                 num_ctas: int = 1, maxnreg: int | None = None,
                 pre_hook: Callable[[dict], object] | None = None,
                 ir_override: str | None = None):
        self.kwargs = kwargs
        self.num_warps, self.num_ctas, self.num_stages = num_warps, num_ctas, num_stages
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override

    def all_kwargs(self) -> dict[str, object]:
        """The constants and the options, as keywords of a launch."""
        named = {name: getattr(self, name) for name in (*_OPTIONS, "ir_override")}
        return {**self.kwargs,
                **{name: value for name, value in named.items() if value is not None}}

    def __str__(self) -> str:
        fields = {**self.kwargs, **{name: getattr(self, name) for name in _OPTIONS}}
        return ", ".join(f"{name}: {value}" for name, value in fields.items())

    def _key(self) -> tuple:
        return (*self.all_kwargs().items(), self.pre_hook)

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key() == other._key()


class Autotuner(KernelInterface):
    """A kernel that is launched in the fastest of several configurations.

    The kernel is run with the caller's own arrays while it is measured, as often as it takes:
    arrays that it reads and writes belong to restore_value or reset_to_zero.

    fn: the layer below; base_fn: the Python function.  configs: all choices.
    cache: key -> the fastest.  nargs: the positional arguments by name, during a launch.
    best_config: of the last launch.  configs_timings, bench_time: of the last measurement.
    """

    def __init__(self, fn: object, arg_names: Sequence[str], configs: Sequence[Config],
                 key: Sequence[str], reset_to_zero: Sequence[str] | None = None,
                 restore_value: Sequence[str] | None = None,
                 pre_hook: Callable[..., object] | None = None,
                 post_hook: Callable[..., object] | None = None,
                 prune_configs_by: Mapping[str, object] | None = None,
                 warmup: float | None = None, rep: float | None = None,
                 use_cuda_graph: bool = False, do_bench: Callable[..., object] | None = None,
                 cache_results: bool = False):
        self.fn, self.arg_names, self.keys = fn, arg_names, key
        self.configs = configs or [Config({})]
        self.base_fn = base_function(fn)
        self.cache: dict[tuple, Config] = {}
        self.cache_results = cache_results
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), [*(restore_value or ())]
        self.restore_copies: dict[str, object] = {}
        self.user_defined_pre_hook, self.user_defined_post_hook = bool(pre_hook), bool(post_hook)
        self.pre_hook = pre_hook or self._reset
        self.post_hook = post_hook or self._restore
        rules = prune_configs_by or {}
        self.perf_model, self.configs_top_k = rules.get("perf_model"), rules.get("top_k", 1.0)
        self.early_config_prune = rules.get("early_config_prune")
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self._do_bench = do_bench
        self.nargs: dict[str, object] | None = None
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, list[float]] = {}
        self.bench_time = 0.0

    @cached_property
    def do_bench(self) -> Callable[..., object]:
        """(function, quantiles=) -> the quantiles of its times in ms."""
        if self._do_bench is not None:
            return self._do_bench
        if self.use_cuda_graph and driver.active.get_current_target().backend == "cuda":
            bench, budget = do_bench_cudagraph, {"rep": self.num_reps}
        else:
            bench, budget = driver.active.get_benchmarker(), {
                "warmup": self.num_warmups, "rep": self.num_reps}
        chosen = {name: value for name, value in budget.items() if value is not None}
        return lambda call, quantiles: bench(call, quantiles=quantiles, **chosen)

    def run(self, *arguments: object, **keywords: object) -> object:
        """Choose, and launch the choice."""
        self.nargs = dict(zip(self.arg_names, arguments))
        config = self.configs[0] if len(self.configs) == 1 else self._chosen(arguments, keywords)
        self.best_config = config
        chosen = config.all_kwargs()
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **keywords, **chosen})
        result = self.fn.run(*arguments, **keywords, **chosen)
        self.nargs = None
        return result

    def warmup(self, *arguments: object, **keywords: object) -> list[object]:
        """Compile every configuration that is not pruned, without running anything."""
        self.nargs = dict(zip(self.arg_names, arguments))
        compiled = [self.fn.warmup(*arguments, **keywords, **config.all_kwargs())
                    for config in self.prune_configs(keywords)]
        self.nargs = None
        return compiled

    def prune_configs(self, kwargs: Mapping[str, object]) -> list[Config]:
        """The configurations to measure for a launch.  kwargs: what it was given by name.

        Errors: AutotunerError when early_config_prune keeps none; TypeError for a top_k that is
        neither a count nor a fraction.
        """
        kept = self.configs
        if self.early_config_prune:
            kept = self.early_config_prune(kept, self.nargs, **kwargs)
            kept = kept if isinstance(kept, list) else list(kept)
            if not kept:
                raise AutotunerError("autotune: early_config_prune kept no configuration, accepted "
                                     "at least one")
        if not self.perf_model:
            return kept
        count = self.configs_top_k
        if isinstance(count, float) and count <= 1:
            count = int(len(self.configs) * count)
        if not isinstance(count, int):
            raise TypeError(f"autotune: given top_k {count!r}, accepted an int or a float up to 1")
        if len(kept) <= count:
            return kept
        estimates = {config: self.perf_model(**{**self.nargs, **kwargs, **config.all_kwargs()})
                     for config in kept}
        return sorted(estimates, key=estimates.get)[:count]

    def _chosen(self, arguments: tuple, keywords: Mapping[str, object]) -> Config:
        given = {name: value for name, value in {**self.nargs, **keywords}.items()
                 if name in self.arg_names}
        key = tuple([*(given[name] for name in self.keys if name in given),
                     *(str(value.dtype) for value in given.values() if hasattr(value, "dtype"))])
        if key not in self.cache:
            pruned = self.prune_configs(keywords)
            if self.cache_results:
                self._look_up(key, pruned, arguments, keywords)
            else:
                self._measure(key, pruned, arguments, keywords)
        return self.cache[key]

    def _measure(self, key: Hashable, configs: Sequence[Config], arguments: tuple,
                 keywords: Mapping[str, object]) -> None:
        begun = time.perf_counter()
        timings = {config: self._bench(*arguments, config=config, **keywords)
                   for config in configs}
        self.bench_time = time.perf_counter() - begun
        self.cache[key] = min(timings, key=timings.get)
        self.pre_hook({**self.nargs, **keywords, **self.cache[key].all_kwargs()}, reset_only=True)
        self.configs_timings = timings

    def _look_up(self, key: tuple, configs: Sequence[Config], arguments: tuple,
                 keywords: Mapping[str, object]) -> None:
        """Take the timings from disk, or measure and keep them there, unless hooks take part."""
        if not key or any(config.pre_hook for config in configs):
            self._measure(key, configs, arguments, keywords)
            return
        labels = [str(config) for config in configs]
        name = digest(self._kernel.cache_key, str(driver.active.get_current_target()), str(key),
                      *labels)
        files, file = FileCacheManager(name), f"{self.base_fn.__name__}.autotune.json"
        path = files.get_file(file)
        if path is not None:
            with open(path, encoding="utf-8") as stored:
                timings = json.load(stored)
            self.configs_timings = dict(zip(configs, timings))
            self.cache[key] = min(self.configs_timings, key=self.configs_timings.get)
            return
        self._measure(key, configs, arguments, keywords)
        files.put(json.dumps([self.configs_timings[config] for config in configs]), file,
                  binary=False)

    @property
    def _kernel(self) -> object:
        """The kernel at the bottom."""
        below = self.fn
        while hasattr(below, "fn") and not isinstance(below.fn, FunctionType):
            below = below.fn
        return below

    def _bench(self, *args: object, config: Config, **meta: object) -> Sequence[float]:
        """The quantiles of the times of a configuration, in ms; infinite when it cannot be used.

        Errors: ValueError when the launch itself gives what the configuration chooses.
        """
        conflicts = meta.keys() & config.kwargs.keys()
        if conflicts:
            raise ValueError(f"autotune: the launch gives {', '.join(sorted(conflicts))}, which "
                             "the configuration chooses, accepted in one place")
        current = {**meta, **config.all_kwargs()}
        named = {**self.nargs, **current}

        def kernel_call() -> None:
            if config.pre_hook:
                config.pre_hook(named)
            self.pre_hook(named)
            try:
                self.fn.run(*args, **current)
            except Exception as error:
                self.post_hook(named, exception=error)
                raise
            self.post_hook(named, exception=None)

        try:
            return self.do_bench(kernel_call, quantiles=QUANTILES)
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
            return _FAILED

    def _reset(self, named: Mapping[str, object], reset_only: bool = False) -> None:
        """The hook before a run: fill with 0 what is reset, copy what is restored."""
        for name in self.reset_to_zero:
            _fill(named[name], 0)
        if not reset_only:
            self.restore_copies = {name: _copied(named[name]) for name in self.restore_value}

    def _restore(self, named: Mapping[str, object], exception: Exception | None) -> None:
        """The hook after a run."""
        for name, value in self.restore_copies.items():
            _fill(named[name], value)
        self.restore_copies = {}


class Heuristics(KernelInterface):
    """A kernel some of whose arguments are functions of the others.

    A result takes the place of what the caller passes by that name, which the function may read.
    values: name -> function of the dict of all arguments so far.
    """

    def __init__(self, fn: object, arg_names: Sequence[str],
                 values: Mapping[str, Callable[[dict], object]]):
        self.fn, self.arg_names, self.values = fn, arg_names, values

    def run(self, *arguments: object, **keywords: object) -> object:
        """Compute, and launch."""
        named = {**dict(zip(self.arg_names, arguments)), **keywords}
        for name, function in self.values.items():
            keywords[name] = named[name] = function(dict(named))
        return self.fn.run(*arguments, **keywords)


def autotune(configs: Sequence[Config], key: Sequence[str],
             prune_configs_by: Mapping[str, object] | None = None,
             reset_to_zero: Sequence[str] | None = None,
             restore_value: Sequence[str] | None = None,
             pre_hook: Callable[..., object] | None = None,
             post_hook: Callable[..., object] | None = None, warmup: float | None = None,
             rep: float | None = None, use_cuda_graph: bool = False,
             do_bench: Callable[..., object] | None = None,
             cache_results: bool = False) -> Callable[[KernelInterface], Autotuner]:
    """Launch a kernel in the fastest of several configurations; it goes above @triton.jit.

    key: names of arguments for whose values to measure anew; dtypes of tensors always count.
    prune_configs_by: early_config_prune(configs, named_args, **kwargs), perf_model(**arguments)
        and top_k, a count or a fraction.
    reset_to_zero, restore_value: arrays that get 0, or their values back, around each run.
    pre_hook(arguments, reset_only=False), post_hook(arguments, exception): in place of these.
    warmup, rep: ms.  do_bench: (function, quantiles=) -> quantiles in ms.
    cache_results: keep timings on disk.

    Example:
    >>> @triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64})], key=["n"])
    ... @triton.jit
    ... def fill(x, n, BLOCK: tl.constexpr):
    ...     for first in range(0, n, BLOCK):
    ...         i = first + tl.arange(0, BLOCK)
    ...         tl.store(x + i, 7, mask=i < n)
    >>> x = np.zeros(100, np.float32)
    >>> _ = fill[(1,)](x, 100)
    >>> x.min()
    np.float32(7.0)
    """
    return lambda fn: Autotuner(
        fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook=pre_hook,
        post_hook=post_hook, prune_configs_by=prune_configs_by, warmup=warmup, rep=rep,
        use_cuda_graph=use_cuda_graph, do_bench=do_bench, cache_results=cache_results)


def heuristics(values: Mapping[str, Callable[[dict], object]],
               ) -> Callable[[KernelInterface], Heuristics]:
    """Compute arguments: `@triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})`.

    Example:
    >>> @triton.heuristics({"BLOCK": lambda arguments: triton.next_power_of_2(arguments["n"])})
    ... @triton.jit
    ... def fill(x, n, BLOCK: tl.constexpr):
    ...     i = tl.arange(0, BLOCK)
    ...     tl.store(x + i, 7, mask=i < n)
    >>> x = np.zeros(3, np.float32)
    >>> _ = fill[(1,)](x, 3)
    >>> x
    array([7., 7., 7.], dtype=float32)
    """
    return lambda fn: Heuristics(fn, fn.arg_names, values)


def base_function(fn: object) -> FunctionType:
    """The Python function below layers."""
    while not isinstance(fn, FunctionType):
        fn = fn.fn
    return fn


def _fill(array: object, values: object) -> None:
    """Set the elements of an array of any library; values: an array of the same library, or 0."""
    if array is None:  # of an argument that is left out
        return
    if not hasattr(array, "zero_"):
        array[...] = values
    elif isinstance(values, int):  # Torch's, also of tensors that require grad
        array.zero_()
    else:
        array.copy_(values)


def _copied(array: object) -> object:
    if array is None:
        return None
    return array.clone() if hasattr(array, "clone") else array.copy()
