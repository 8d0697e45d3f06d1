"""`@bn.autotune`: a kernel that measures its configurations and launches in the fastest."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from blocknumba.dispatch.compile.cache import user_cache
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.fingerprint import fingerprint
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.call import (
    Arguments, device_of, read_arguments, resolve_grid, target_of,
)
from blocknumba.dispatch.launch.driver import Driver
from blocknumba.dispatch.launch.forks import Lock
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.dispatch.launch.native import thread_count
from blocknumba.dispatch.launch.signature import Signature
from blocknumba.dispatch.launch.specialize import Specialization, processor_of
from blocknumba.dispatch.tiles.auto import Auto
from blocknumba.dispatch.tune.key import (
    Config, Hook, Memo, Pruning, TuningKey, require_configs, require_keys, tuning_key,
)
from blocknumba.dispatch.tune.layers import Layer
from blocknumba.dispatch.tune.store import Row, Store, Timing, Timings
from blocknumba.dispatch.tune.trial import Measurement, Trial, progress
from blocknumba.errors import AutotuneError, BlockError, ResourceError, require, require_known
from blocknumba.tracebacks import without_our_frames

# measurements at the same time would disturb each other
_ONE_AT_A_TIME = Lock()
TIMED_TILES = 8  # choices of tiles, of those that the compiler thinks best


@dataclass(frozen=True, slots=True)
class Request:
    """A launch that a configuration is wanted for.

    arguments, keywords: as they were passed.  launch: grid and stream.
    read: the arguments that are not tuned.
    driver, device: where it runs; driver is None for the CPU.
    options: of the launch.
    """

    arguments: tuple
    keywords: dict[str, object]
    launch: tuple
    read: Arguments
    key: TuningKey
    driver: Driver | None
    device: int
    options: Options

    @property
    def device_name(self) -> str:
        """Name of the kind of device that the timings are for."""
        if self.driver is not None:
            return self.driver.device_name(self.device)
        processor = processor_of(self.options)
        return "CPU, interpreted" if processor is None else f"{processor} x {thread_count()}"


class Autotuner(Layer):
    """A kernel that is launched in the fastest of several configurations.

    The first launch with new arguments, as far as the key tells them apart, measures every
    configuration; later ones, in later processes too, know.  While it measures, the arrays that
    the kernel stores to are replaced with copies.

    configs: all of them.  One that leaves extents of tiles to the compiler (bn.auto) stands for
        the TIMED_TILES choices that are estimated to be fastest.
    cache: (device, key) -> the fastest.
    best_config: of the last launch; None before the first.
    """

    def __init__(self, kernel: Kernel | Layer, configs: Iterable[Config], keys: Sequence[str],
                 pruning: Pruning, measurement: Measurement, cache_results: bool):
        self.configs = require_configs(configs)
        left = _left_to_the_compiler(kernel)
        super().__init__(kernel, "autotune", left.union(
            *(config.all_kwargs() for config in self.configs)))
        require_keys(keys, self.signature, self.all_chosen)
        require_known("autotune: given to reset or restore",
                      (*measurement.reset_to_zero, *measurement.restore_value),
                      self.signature.names)
        self.keys = tuple(keys)
        self.cache: dict[tuple[str, TuningKey], Config] = {}
        self.best_config: Config | None = None
        self._pruning, self._measure = pruning, measurement
        self._persistent = cache_results
        self._has_tiles = bool(left) or any(
            type(value) is Auto for config in self.configs for value in config.kwargs.values())
        self._only = None if self._has_tiles or len(self.configs) > 1 else self.configs[0]
        self._memo = Memo(self.signature, self.keys, self._has_tiles)
        self._measured: dict[tuple[str, TuningKey], dict[str, Timing]] = {}

    def remake(self) -> tuple[type, tuple]:
        """See Named.remake."""
        return Autotuner, (self.kernel, self.configs, self.keys, self._pruning, self._measure,
                           self._persistent)

    def _repr_html_(self) -> str:
        """Tables for notebooks: the timings, and what the kernel was compiled for."""
        return self.timings._repr_html_() + self.kernel._repr_html_()

    @property
    def timings(self) -> Timings:
        """The timings so far, measured or read from disk: str() of it is a table."""
        return Timings([
            Row(f"{key.text} on {device}", label, timing)
            for (device, key), timings in self._measured.items()
            for label, timing in sorted(timings.items(), key=lambda item: item[1].median_ms)])

    @without_our_frames
    def warmup(self, *arguments: object, grid: object = 1, **keywords: object) -> list[Compiled]:
        """Compile every configuration that can be, without running anything.

        Errors: AutotuneError when none can.
        """
        request = self._request(arguments, keywords, (grid, None))
        trials, errors = self._compile(self._with_tiles(request), request)
        if not trials:
            raise self._failure(request, {label: Timing.failed(_reason(error))
                                          for label, error in errors.items()}, errors)
        return [trial.call.compiled for trial in trials]

    def last_choice(self) -> dict[str, object] | None:
        """See Named.last_choice."""
        below = self.kernel.last_choice()
        config = self._only or self.best_config
        if below is None or config is None or config.pre_hook is not None:
            return None
        return below | config.all_kwargs()

    def complete(self, arguments: tuple, keywords: dict, launch: tuple) -> dict[str, object]:
        """See Layer.complete."""
        config = self._choose(arguments, keywords, launch)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook(self.named(arguments, keywords) | config.all_kwargs())
        return super().complete(arguments, keywords | config.all_kwargs(), launch)

    def _choose(self, arguments: tuple, keywords: dict, launch: tuple) -> Config:
        if self._only is not None:
            self.require_free(arguments, keywords)
            return self._only
        memo_key = self._memo.key(arguments, keywords)
        found = self._memo.find(memo_key)
        if found is not None:
            return found
        request = self._request(arguments, keywords, launch)
        with _ONE_AT_A_TIME:
            found = self.cache.get((request.device_name, request.key)) or self._tune(request)
        if (request.device_name, request.key) in self.cache:
            self._memo.add(memo_key, found)
        return found

    def _request(self, arguments: tuple, keywords: dict, launch: tuple) -> Request:
        """Errors: those of a launch with wrong arguments."""
        self.require_free(arguments, keywords)
        bound, changes = self.signature.bind(
            arguments, {**keywords, **dict.fromkeys(self.all_chosen)})
        changes = {name: value for name, value in changes.items() if name in keywords}
        flat, parts = self.base.nested.taken_apart(bound)
        given = replace(flat.signature, formals=tuple(
            formal for formal in flat.signature.formals if formal.name not in self.all_chosen))
        read = read_arguments(given, parts)
        key = tuning_key(read, parts | bound, self.keys, changes, self.signature.kernel,
                         self._has_tiles)
        options = self.base.options.override(changes)
        return Request(arguments, keywords, launch, read, key,
                       *device_of(given, read, options), options)

    def _with_tiles(self, request: Request) -> list[Config]:
        """The configurations to try: those with bn.auto have the tiles that are estimated best."""
        found: dict[str, Config] = {}
        for config in self.configs:
            bound, changes, _ = self._bound(config, request)
            choices = [{}]
            if any(type(value) is Auto for value in bound.values()):
                choices = self.base.tiles.best(bound, changes, request.launch[0], TIMED_TILES)
            for choice in choices:
                chosen = replace(config, kwargs={**config.kwargs, **choice})
                found.setdefault(str(chosen), chosen)
        return list(found.values())

    def _tune(self, request: Request) -> Config:
        named = self.named(request.arguments, request.keywords)
        configs = {str(config): config for config in
                   self._pruning.keep(self._with_tiles(request), named, request.keywords)}
        digests = self._digests(configs, request)
        timings = (self._store.read(request.device_name, request.key.text, digests) if digests
                   else {})
        new = [config for label, config in configs.items() if label not in timings]
        trials, errors = self._compile(new, request) if new else ([], {})
        if any(not all(trial.grid) for trial in trials):
            return trials[0].config  # no programs, nothing to measure
        timings |= {label: Timing.failed(_reason(error)) for label, error in errors.items()}
        fresh = {label: timings[label] for label, error in errors.items()
                 if isinstance(error, BlockError)}
        fresh |= self._measure_all(trials, errors)
        timings |= fresh | {label: Timing.failed(_reason(error)) for label, error in errors.items()}
        if digests and fresh:
            self._store.write(request.device_name, request.key.text, fresh, digests)
        if self._measure.pre_hook is not None:
            self._measure.pre_hook(named, reset_only=True)
        self._measured[request.device_name, request.key] = timings
        best = min(configs, key=lambda label: timings[label].median_ms)
        if timings[best].reason:
            raise self._failure(request, timings, errors)
        self.cache[request.device_name, request.key] = configs[best]
        return configs[best]

    def _measure_all(self, trials: list[Trial], errors: dict[str, Exception]) -> dict[str, Timing]:
        """The timings of the trials that run; the errors of others are added to errors."""
        measured = {}
        with progress(trials, f"tuning {self.signature.kernel}") as shown:
            for trial in shown:
                label = str(trial.config)
                try:
                    measured[label] = self._measure(trial)
                except BlockError as error:
                    errors[label] = error
        return measured

    def _compile(self, configs: Sequence[Config], request: Request,
                 ) -> tuple[list[Trial], dict[str, Exception]]:
        """The configurations that compile, several at once, and the errors of the others."""
        # here and not above: it imports more than blocknumba does
        from concurrent.futures import ThreadPoolExecutor

        trials, errors = [], {}
        with ThreadPoolExecutor(min(len(configs), os.cpu_count() or 1)) as pool:
            waiting = {str(config): pool.submit(self._trial, config, request)
                       for config in configs}
        for label, future in waiting.items():
            error = future.exception()
            if error is None:
                trials.append(future.result())
            elif isinstance(error, Exception):
                errors[label] = error
            else:
                raise error
        return trials, errors

    def _trial(self, config: Config, request: Request) -> Trial:
        """Errors: those of the kernel in this configuration; ResourceError when it spills more
        than it may."""
        if request.driver is not None:
            request.driver.enter_thread(request.device)  # a new thread's device is the first one
        bound, changes, keywords = self._bound(config, request)
        options = self.base.options.override(changes)
        grid, stream = request.launch
        extents = resolve_grid(grid, self.signature, bound, options)
        call = self.base.prepare(bound, options)
        limit = self._pruning.max_spills
        if limit is not None and call.compiled.machine is not None:
            spills = call.compiled.stats.spills
            require(spills <= limit, "{}: spills {} bytes per thread, accepted {}",
                    self.signature.kernel, spills, limit, error=ResourceError)
        return Trial(config, call, extents, self.named(request.arguments, keywords), stream)

    def _bound(self, config: Config, request: Request,
               ) -> tuple[dict[str, object], dict[str, object], dict[str, object]]:
        """The arguments and changed options of a configuration; and the keywords that say them."""
        keywords = super().complete(request.arguments, request.keywords | config.all_kwargs(),
                                    request.launch)
        bound, changes = self.signature.bind(request.arguments, keywords)
        return bound, changes, keywords

    def _digests(self, configs: Mapping[str, Config], request: Request) -> dict[str, str]:
        """Digests of the code of configurations; none for what can only be known by compiling."""
        if not self._persistent or self._store is None:
            return {}
        target = None if request.driver is None else target_of(request.driver, request.device)
        digests = {}
        for label, config in configs.items():
            bound, changes, _ = self._bound(config, request)
            constants = {formal.name: bound[formal.name] for formal in self.signature.formals
                         if formal.is_constant}
            digest = fingerprint(self.base.python_function,
                                 Specialization((), (), (),
                                                self.base.options.override(changes), target),
                                 constants)
            if digest is not None:
                digests[label] = digest
        return digests

    @cached_property
    def _store(self) -> Store | None:
        cache = user_cache()
        return None if cache is None else Store(cache.folder, self.base.python_function)

    def _failure(self, request: Request, timings: Mapping[str, Timing],
                 errors: Mapping[str, Exception]) -> AutotuneError:
        """The error of a kernel none of whose configurations can be used: all reasons, with the
        lines of the source where they are known, which those from disk do not have."""
        reasons: dict[str, list[str]] = {}
        for label, timing in timings.items():
            reasons.setdefault(timing.reason, []).append(label)
        lines, shown_locations = [], {None}
        for reason, labels in reasons.items():
            error = errors.get(labels[0])
            loc = getattr(error, "loc", None)
            if loc not in shown_locations:
                reason = f"{type(error).__name__}: {error}"
                shown_locations.add(loc)
            lines.append(f"\n  {'; '.join(labels)}: {textwrap.indent(reason, '  ').lstrip()}")
        return AutotuneError(f"{self.signature.kernel}: all {len(timings)} configurations failed "
                             f"for {request.key.text} on {request.device_name}:{''.join(lines)}")


@without_our_frames
def autotune(configs: Iterable[Config] = (), key: Sequence[str] = (),
             prune_configs_by: Mapping[str, object] | None = None,
             reset_to_zero: Sequence[str] | None = None,
             restore_value: Sequence[str] | None = None, pre_hook: Hook | None = None,
             post_hook: Hook | None = None, warmup: float | None = None,
             rep: float | None = None, use_cuda_graph: bool = False,
             do_bench: Callable[..., object] | None = None,
             cache_results: bool = True) -> Callable[[Kernel | Layer], Autotuner]:
    """Launch a kernel in the fastest of several configurations; it goes above @bn.jit.

    configs: Config objects.  Where constants are bn.auto, in a Config or as the kernel's defaults,
        the compiler proposes the few choices of tiles that are timed; without any Config, that is
        all that is tuned.
    key: measure again when these change: arguments ("n") and attributes ("a.shape"); dtypes,
        strides, alignment and constants are always part of it.
    prune_configs_by: see Pruning.
    reset_to_zero, restore_value: arrays that get 0, or their first values, before each run.
    pre_hook, post_hook: called around each measured run; pre_hook(arguments, reset_only=True)
        once after measuring.
    warmup, rep: ms per configuration; 25 and 100 on a GPU.
    use_cuda_graph: measure in CUDA graphs, without the cost of launches.
    do_bench: (function, quantiles=) -> quantiles in ms; measures instead of bn.testing.do_bench.
    cache_results: keep timings on disk.

    Example:
    >>> @bn.autotune([bn.Config({"BLOCK": 16}), bn.Config({"BLOCK": 64})], key=["x.shape"])
    ... @bn.jit
    ... def double(x, BLOCK: bn.constexpr):
    ...     for r in bn.grid_spans(x.size, BLOCK):
    ...         x[r] = x[r] * 2
    >>> x = np.arange(100)
    >>> _ = double[2](x)
    >>> x[-1], double.best_config.kwargs["BLOCK"] in (16, 64)
    (np.int64(198), True)
    """
    measurement = Measurement(tuple(reset_to_zero or ()), tuple(restore_value or ()), pre_hook,
                              post_hook, warmup, rep, use_cuda_graph, do_bench)
    pruning = Pruning.of(prune_configs_by)
    return without_our_frames(
        lambda kernel: Autotuner(kernel, configs, key, pruning, measurement, cache_results))


def _left_to_the_compiler(kernel: object) -> frozenset[str]:
    """The constants of a kernel whose default is bn.auto."""
    signature = getattr(kernel, "signature", None)
    formals = signature.formals if isinstance(signature, Signature) else ()
    return frozenset(formal.name for formal in formals
                     if formal.has_default and type(formal.default) is Auto)


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
