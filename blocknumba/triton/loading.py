"""`blocknumba.triton.install`: packages whose imports of triton get blocknumba.triton.

    sys.meta_path --> _Finder: a module of an installed package --> _Loader: before its code runs,
    its globals get builtins of their own, in which __import__ knows what triton is

So every import statement of the package's modules finds ours, those within functions too, and
nobody else's does: `sys.modules["triton"]` is never touched, for Torch imports the real one.  The
package's modules see importlib, importlib.util and importlib.metadata through stand-ins, which
answer for triton likewise.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.wording import shown

THEIRS, OURS = "triton", "blocknumba.triton"
# what must find the real one, or is no package of kernels
_REFUSED = frozenset((THEIRS, "torch", "blocknumba"))


def install(*packages: str) -> None:
    """Let the imports of triton in some packages, and in all modules below them, get ours.

    It comes before the packages are imported.  Naming a package again changes nothing.
    packages: names, "liger_kernel" or "fla.ops".
    Errors: BlockTypeError for what is no name; BlockValueError for a package that was imported
    before, and for triton and torch themselves.

    Example:
    >>> import importlib, pathlib, sys, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "kernels_of_others.py").write_text("import triton")
    >>> sys.path.insert(0, folder)
    >>> triton.install("kernels_of_others")
    >>> importlib.import_module("kernels_of_others").triton.__name__
    'blocknumba.triton'
    >>> sys.path.remove(folder)
    """
    for name in packages:
        require(isinstance(name, str) and all(part.isidentifier() for part in name.split(".")),
                "install: given {!r}, accepted names of packages", name, error=BlockTypeError)
        require(name.partition(".")[0] not in _REFUSED,
                "install: given {}, accepted packages that are written with triton", shown(name),
                error=BlockValueError)
        if _FINDER.is_for(name):
            continue
        early = [module for module in sys.modules if module == name
                 or module.startswith(f"{name}.")]
        require(not early, "install: {} was imported before, accepted packages that are not yet",
                name, error=BlockValueError,
                hint=f'put blocknumba.triton.install("{name}") before the first import of {name}')
        _FINDER.packages.append(name)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def renamed(module: str) -> str | None:
    """The name of our module for one of Triton's; None for any other."""
    if module == THEIRS or module.startswith(f"{THEIRS}."):
        return OURS + module.removeprefix(THEIRS)
    return None


class _Finder:
    """Finder of the modules of installed packages; it lets the others find them."""

    def __init__(self):
        self.packages: list[str] = []
        self._searching: set[str] = set()

    def is_for(self, module: str) -> bool:
        """Whether a module is of an installed package."""
        return any(module == name or module.startswith(f"{name}.") for name in self.packages)

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if name in self._searching or not self.is_for(name):
            return None
        self._searching.add(name)
        try:
            for finder in list(sys.meta_path):
                found = None if finder is self else finder.find_spec(name, path, target)
                if found is not None:
                    return with_our_imports(found)
        finally:
            self._searching.discard(name)
        return None


_FINDER = _Finder()


class _Loader:
    """A loader whose modules get our builtins before their code runs."""

    def __init__(self, loader: object):
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See importlib.abc.Loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """See importlib.abc.Loader."""
        vars(module)["__builtins__"] = _our_builtins()
        self._loader.exec_module(module)


def with_our_imports(spec: ModuleSpec) -> ModuleSpec:
    """A spec whose module will import ours for triton."""
    if hasattr(spec.loader, "exec_module") and not isinstance(spec.loader, _Loader):
        spec.loader = _Loader(spec.loader)
    return spec


@functools.cache
def _our_builtins() -> dict[str, object]:
    """Python's builtins with an __import__ that knows what triton is."""
    return {**vars(builtins), "__import__": _import}


def _import(name: str, globals: dict | None = None, locals: dict | None = None,
            fromlist: Sequence[str] | None = (), level: int = 0) -> ModuleType:
    """See builtins.__import__; of a module of an installed package."""
    ours = renamed(name) if level == 0 else None
    if ours is not None:
        module = _imported(ours, name)
        _import_below(ours, fromlist or ())
        return module if fromlist else sys.modules[OURS]
    found = builtins.__import__(name, globals, locals, fromlist, level)
    return _stand_in(found) if level == 0 and found.__name__ in _STAND_INS else found


def _imported(ours: str, name: str) -> ModuleType:
    """A module of ours.

    Errors: ModuleNotFoundError, whose name is Triton's, for one that there is not.
    """
    try:
        return importlib.import_module(ours)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{ours}.".startswith(f"{error.name}."):
            raise
        raise ModuleNotFoundError(f"No module named {name!r} in blocknumba.triton",
                                  name=name) from None


def _import_below(package: str, names: Sequence[str]) -> None:
    """Import the modules of a package that `from package import names` means."""
    for name in names:
        if name != "*" and not hasattr(sys.modules[package], name):
            try:
                importlib.import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise  # else the statement says that the name is not there


class _StandIn(ModuleType):
    """A module some of whose functions answer for triton; for the rest it is the module."""

    def __init__(self, module: ModuleType, answers: dict[str, object]):
        super().__init__(module.__name__, module.__doc__)
        vars(self).update(answers, _module=module)

    def __getattr__(self, name: str) -> object:
        return _stand_in(getattr(self._module, name))

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _stand_in(value: object) -> object:
    """The stand-in of a module that has one; any other value as it is."""
    if isinstance(value, ModuleType) and value.__name__ in _STAND_INS:
        return _made_stand_in(value.__name__)
    return value


@functools.cache
def _made_stand_in(name: str) -> _StandIn:
    return _StandIn(sys.modules[name], _STAND_INS[name])


def _of_ours(function: Callable[..., object]) -> Callable[..., object]:
    """A function of a module's name that is asked about ours when it is given triton's."""
    @functools.wraps(function)
    def answer(name: str, *arguments: object, **keywords: object) -> object:
        return function(renamed(name) or name, *arguments, **keywords)
    return answer


def _import_module(name: str, package: str | None = None) -> ModuleType:
    """See importlib.import_module."""
    ours = renamed(name)
    return importlib.import_module(name, package) if ours is None else _imported(ours, name)


def _version(distribution_name: str) -> str:
    """See importlib.metadata.version; of triton the version whose meaning functions have."""
    if distribution_name == THEIRS:
        return sys.modules[OURS].__version__
    return importlib.metadata.version(distribution_name)


@functools.wraps(importlib.util.spec_from_file_location)
def _spec_from_file_location(*arguments: object, **keywords: object) -> ModuleSpec | None:
    found = importlib.util.spec_from_file_location(*arguments, **keywords)
    return found if found is None else with_our_imports(found)


_STAND_INS: dict[str, dict[str, object]] = {
    "importlib": {"import_module": _import_module, "__import__": _import},
    "importlib.util": {"find_spec": _of_ours(importlib.util.find_spec),
                       "spec_from_file_location": _spec_from_file_location},
    "importlib.metadata": {"version": _version},
}
