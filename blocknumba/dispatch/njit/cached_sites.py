"""Sites of callers in Numba's cache.

Numba pickles the constants of a function with its machine code.  A `Reference` among them is read
before that code is linked: it finds the kernel by its name, makes the site anew, and so defines
the symbol of its launch table.  Where the kernel's parameters, the meaning of its name in the
caller or blocknumba changed meanwhile it raises `Stale`, an OSError, which to Numba's cache is a
file that went away: the caller is compiled again.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from blocknumba.dispatch.compile.fingerprint import digest, source_digest
from blocknumba.dispatch.compile.references import Named, found
from blocknumba.dispatch.njit.site import Description, Site

_LOCAL = itertools.count()
_SITES: dict[str, Site] = {}


class Stale(OSError):
    """A cached caller that was compiled for something else."""


@dataclass(frozen=True, slots=True)
class ByName:
    """A kernel or another object that a name leads to: pickling it could pickle its code."""

    module: str
    name: str

    @staticmethod
    def of(value: object) -> ByName | None:
        """The name of an object; None if there is none that leads to it."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        is_named = isinstance(module, str) and isinstance(name, str)
        return ByName(module, name) if is_named and found(module, name) is value else None

    def found(self) -> object:
        """Errors: Stale when there is nothing of that name."""
        value = found(self.module, self.name)
        if value is None:
            raise Stale(f"{self.module}.{self.name}")
        return value


@dataclass(eq=False, slots=True)
class Reference:
    """A site for Numba's cache.

    symbol: of its table.  is_cacheable: whether another process can make the site again.
    paths: names in modules by which the caller's module reaches the kernel.
    """

    site: Site
    symbol: str
    key_words: int
    is_cacheable: bool
    paths: tuple[ByName, ...]

    def __reduce__(self) -> tuple:
        description = self.site.description
        constants = {name: _portable(value) for name, value in description.constants.items()}
        return _linked_again, (ByName.of(self.site.kernel), description.layout, constants,
                               description.options, self.symbol, self.key_words, self.paths)


def link(kernel: Named, description: Description, key_words: int,
         caller: Mapping[str, object]) -> Reference:
    """The site of a launch, made now unless there is one.  caller: globals of the caller."""
    symbol = _symbol(kernel, description)
    if symbol is None:
        symbol = f"blocknumba_launch_table_of_this_process_{next(_LOCAL)}"
        site = Site(kernel, description, symbol, key_words)
        return Reference(site, symbol, key_words, False, ())
    site = _site(kernel, description, symbol, key_words)
    reference = Reference(site, symbol, key_words, True, tuple(_paths(kernel, caller)))
    return reference if _is_pickled(reference) else Reference(site, symbol, key_words, False, ())


def _site(kernel: Named, description: Description, symbol: str, key_words: int) -> Site:
    site = _SITES.get(symbol)
    if site is None or site.kernel is not kernel or not site.is_current:
        site = _SITES[symbol] = Site(kernel, description, symbol, key_words)
    return site


def _linked_again(kernel: ByName, layout: object, constants: Mapping[str, object], options: object,
                  symbol: str, key_words: int, paths: tuple[ByName, ...]) -> Reference:
    """The reference in another process.  Errors: Stale."""
    there = kernel.found()
    constants = {name: value.found() if isinstance(value, ByName) else value
                 for name, value in constants.items()}
    description = Description(layout, constants, options)
    if not isinstance(there, Named) or _symbol(there, description) != symbol:
        raise Stale(kernel.name)
    if any(path.found() is not there for path in paths):
        raise Stale(kernel.name)
    return Reference(_site(there, description, symbol, key_words), symbol, key_words, True, paths)


def _symbol(kernel: Named, description: Description) -> str | None:
    """The name of a launch table, the same in every process; None for one that has none.

    It says all that the caller's machine code relies on: the kernel's parameters, the record, and
    blocknumba itself, which defines them.
    """
    name = ByName.of(kernel)
    if name is None:
        return None
    formals = [(formal.name, formal.is_constant, formal.dtype, formal.is_weak, formal.keyword_only,
                formal.is_divisor, formal.has_default) for formal in kernel.signature.formals]
    found = digest((source_digest(), name, formals, description.layout, description.options),
                   tuple(description.constants.values()))
    return None if found is None else f"blocknumba_launch_table_{found}"


def _paths(kernel: Named, caller: Mapping[str, object]) -> list[ByName]:
    """Names by which a module reaches a kernel: its own, and those in modules that it names."""
    module = caller.get("__name__")
    if not isinstance(module, str):
        return []
    paths = [ByName(module, name) for name, value in caller.items() if value is kernel]
    return paths + [ByName(module, f"{name}.{inner}") for name, value in caller.items()
                    if isinstance(value, ModuleType) for inner, held in vars(value).items()
                    if held is kernel]


def _portable(value: object) -> object:
    """A constant as it is pickled."""
    return ByName.of(value) or value


def _is_pickled(reference: Reference) -> bool:
    try:
        pickle.dumps(reference)
    except Exception:  # whatever a user's class raises
        return False
    return True
