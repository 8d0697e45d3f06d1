"""Torch's compiler leaves our frames alone: a launch in a function that it compiles is a break.

Else Dynamo follows a launch into our code and Numba's, for seconds, and what it makes of them is
not what they do.  It is told when it is there: now, or when the program imports it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from blocknumba.tracebacks import GENERATED

RULES = "torch._dynamo.trace_rules"
SKIPPED = ("blocknumba", "numba", "llvmlite", "ml_dtypes")


def leave_us_alone() -> None:
    """Tell Dynamo, now or when it is imported, to run our frames and not to follow them."""
    if RULES in sys.modules:
        tell(sys.modules[RULES])
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


def tell(rules: ModuleType) -> None:
    """Add our packages, and the functions that we generate, to those that Dynamo skips."""
    with contextlib.suppress(AttributeError):  # of a Torch that has other rules
        for package in SKIPPED:
            rules.add(package)
        rules.SKIP_DIRS.append(GENERATED)
        rules._recompile_re()


class _Waiting:
    """A finder that finds nothing, but is there when the rules are imported."""

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if name != RULES:
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            found = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if found is not None:
                found.loader = _Telling(found.loader)
                return found
        return None


class _Telling:
    """The loader of the rules, which are told when they have been loaded."""

    def __init__(self, loader: object):
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See importlib.abc.Loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """See importlib.abc.Loader."""
        self._loader.exec_module(module)
        tell(module)
