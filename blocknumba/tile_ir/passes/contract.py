"""The contract of passes, and the driver that runs them in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.ir.verifier import Level, verify

# Properties that a function always has; a pass establishes the others.
GIVEN = frozenset(("ops",))

Observer = Callable[["Pass", Function, float], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A function (fn, target) -> fn that changes nothing it was given.

    name: on the command line.  summary: one line.
    reads, writes: properties that it relies on, and that it establishes or changes, by names that
        the passes of one pipeline share ("ops", "layouts", "shared_memory", ...).
    """

    name: str
    summary: str
    run: Callable[[Function, object], Function]
    reads: frozenset[str]
    writes: frozenset[str]

    def __call__(self, fn: Function, target: object = None) -> Function:
        return self.run(fn, target)


def declared(*, reads: Iterable[str], writes: Iterable[str]) -> Callable[[Callable], Pass]:
    """Decorator: makes a Pass of a function, named after it."""

    def declare(function: Callable[[Function, object], Function]) -> Pass:
        summary = (function.__doc__ or "").partition("\n")[0]
        assert summary, f"{function.__name__} does not say what it does"
        return Pass(function.__name__, summary, function, frozenset(reads), frozenset(writes))

    return declare


class Pipeline(Sequence[Pass]):
    """Passes in the order in which they run.

    Asserts that each property that a pass reads is written by an earlier pass, or is given.
    """

    def __init__(self, passes: Iterable[Pass], given: Iterable[str] = GIVEN):
        self._given = frozenset(given)
        self._passes = self._in_order(tuple(passes))

    def __getitem__(self, index: int | slice) -> Pass | tuple[Pass, ...]:
        return self._passes[index]

    def __len__(self) -> int:
        return len(self._passes)

    @property
    def written(self) -> frozenset[str]:
        """The properties of a function after all passes."""
        return self._given.union(*(pass_.writes for pass_ in self._passes))

    def register(self, pass_: Pass, *, before: str) -> None:
        """Enter a pass before the first one of a name."""
        index = [other.name for other in self._passes].index(before)
        self._passes = self._in_order((*self._passes[:index], pass_, *self._passes[index:]))

    def unregister(self, pass_: Pass) -> None:
        """Take a pass out."""
        self._passes = self._in_order(tuple(other for other in self._passes if other != pass_))

    def _in_order(self, passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
        present = set(self._given)
        for pass_ in passes:
            missing = sorted(pass_.reads - present)
            assert not missing, f"{pass_.name} reads {missing}, which no earlier pass writes"
            present |= pass_.writes
        return passes


def run_passes(fn: Function, passes: Iterable[Pass], target: object = None, *,
               level: Level | None = None, observer: Observer | None = None) -> Function:
    """Apply passes in order.

    level: when given, the function is verified at it after each pass.
    observer: called after each pass with the pass, its result and its time in seconds.
    """
    for pass_ in passes:
        started = time.perf_counter()
        fn = pass_(fn, target)
        seconds = time.perf_counter() - started
        if level is not None:
            verify(fn, level)
        if observer is not None:
            observer(pass_, fn, seconds)
    return fn
