"""Sites of callers in Numba's cache.

Numba pickles machine code together with the environments whose symbols are in it.  A launch has an
environment of its own, so that it is pickled wherever the code of the launch goes: into the body
of a prange loop, into callers of callers.  It holds a `Reference`, which is read before the code
is linked: it finds the kernel by its name, makes the site anew, and so defines the symbol of its
launch table.  Where the kernel's parameters, the meaning of its name in the caller or blocknumba
changed meanwhile it raises `Stale`, an OSError, which to Numba's cache is a file that went away:
the caller is compiled again.
"""

from __future__ import annotations

import itertools
import pickle
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from numba.core.lowering import Environment

from blocknumba.dispatch.compile.fingerprint import digest, source_digest
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.compile.references import Named, found
from blocknumba.dispatch.njit.record import Layout
from blocknumba.dispatch.njit.site import Description, Site, target_of_device

_ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba knows the symbols of environments
_KEPT: dict[str, Environment] = {}  # Numba holds them weakly
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
        """Errors: those of pickling a constant."""
        description = self.site.description
        constants = {name: _portable(value) for name, value in description.constants.items()}
        # as bytes, so that whatever is wrong with them is found in linked_again
        named, nesting = _origin(self.site.kernel)
        return linked_again, (pickle.dumps((
            ByName.of(named), nesting, description.layout, constants, description.options,
            self.symbol, self.key_words, self.paths)),)


def link(kernel: Named, description: Description, key_words: int, file: str) -> Reference:
    """The site of a launch, made now unless there is one.  file: the caller's."""
    symbol = _symbol(kernel, description)
    if symbol is None:
        symbol = f"blocknumba_launch_table_of_this_process_{next(_LOCAL)}"
        site = Site(kernel, description, symbol, key_words)
        return Reference(site, symbol, key_words, False, ())
    site = _site(kernel, description, symbol, key_words)
    reference = Reference(site, symbol, key_words, True, tuple(_paths(_origin(kernel)[0], file)))
    return reference if _is_pickled(reference) else Reference(site, symbol, key_words, False, ())


def environment(reference: Reference) -> str:
    """The symbol of a new environment that holds a reference."""
    name = f"{_ENVIRONMENT}{reference.symbol}_{uuid.uuid4().hex}"  # of no other process either
    made = Environment(globals())
    made.env_name = name
    made.consts.append(reference)
    Environment._memo[name] = _KEPT[name] = made
    return name


def _site(kernel: Named, description: Description, symbol: str, key_words: int) -> Site:
    site = _SITES.get(symbol)
    if site is None or site.kernel is not kernel or not site.is_current:
        site = _SITES[symbol] = Site(kernel, description, symbol, key_words)
    return site


def linked_again(pickled: bytes) -> Reference:
    """The reference in another process.  Its name and this module's are in users' caches.

    Errors: Stale, also for what another version of blocknumba wrote.
    """
    try:
        return _linked_again(*pickle.loads(pickled))
    except Exception as error:
        raise Stale(str(error)) from error


def _linked_again(kernel: ByName, nesting: tuple | None, layout: Layout,
                  constants: Mapping[str, object], options: Options, symbol: str, key_words: int,
                  paths: tuple[ByName, ...]) -> Reference:
    there = named = kernel.found()
    constants = {name: value.found() if isinstance(value, ByName) else value
                 for name, value in constants.items()}
    description = Description(layout, constants, options)
    if isinstance(named, Named) and nesting is not None:
        there = named.nested.of(nesting)
    if not isinstance(there, Named) or _symbol(there, description) != symbol:
        raise Stale(kernel.name)
    if any(path.found() is not named for path in paths):
        raise Stale(kernel.name)
    return Reference(_site(there, description, symbol, key_words), symbol, key_words, True, paths)


def _symbol(kernel: Named, description: Description) -> str | None:
    """The name of a launch table, the same in every process; None for one that has none.

    It says all that the caller's machine code relies on: the kernel's parameters, the record, the
    GPU, of which the key depends, and blocknumba itself, which defines them.
    """
    named, nesting = _origin(kernel)
    name = ByName.of(named)
    if name is None:
        return None
    formals = [(formal.name, formal.is_constant, formal.dtype, formal.is_weak, formal.keyword_only,
                formal.is_divisor, formal.has_default) for formal in kernel.signature.formals]
    found = digest((source_digest(), name, repr(nesting), formals, repr(description.layout.entries),
                    sorted(description.layout.mapped), description.options,
                    target_of_device(description.device)),
                   tuple(description.constants.values()))
    return None if found is None else f"blocknumba_launch_table_{found}"


def _origin(kernel: Named) -> tuple[Named, tuple | None]:
    """The kernel that has a name; and how arguments are nested, of a kernel of their parts."""
    return (kernel, None) if kernel.origin is None else kernel.origin


def _paths(kernel: Named, file: str) -> Iterator[ByName]:
    """Names by which the modules of a file reach a kernel: their own, those in modules they name.
    """
    for module, held in list(sys.modules.items()):
        if getattr(held, "__file__", None) != file:
            continue
        for name, value in list(vars(held).items()):
            if value is kernel:
                yield ByName(module, name)
            elif isinstance(value, ModuleType):
                for inner, found_there in list(vars(value).items()):
                    if found_there is kernel:
                        yield ByName(module, f"{name}.{inner}")


def _portable(value: object) -> object:
    """A constant as it is pickled."""
    return ByName.of(value) or value


def _is_pickled(reference: Reference) -> bool:
    try:
        pickle.dumps(reference)
    except Exception:  # whatever a user's class raises
        return False
    return True
