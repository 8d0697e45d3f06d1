"""Configurations to tune over, and which of them are worth trying."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from blocknumba.dispatch.compile.options import Options
from blocknumba.errors import BlockTypeError, BlockValueError, require, require_known
from blocknumba.tracebacks import without_our_frames

Hook = Callable[..., object]


@dataclass(frozen=True)
class Config:
    """One choice of constants and compile options.

    kwargs: constants by name; compile options are accepted among them.
    num_warps, num_stages, num_ctas, maxnreg: compile options; None leaves the kernel's own.
    pre_hook: called with the dict of all arguments before every launch with this configuration.
    Errors: BlockTypeError or BlockValueError for an option out of its range.
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
