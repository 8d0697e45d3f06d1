"""The environment variables that change what blocknumba does."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from blocknumba.errors import BlockValueError, require
from blocknumba.wording import did_you_mean, quoted

LEVELS = ("tile", "gpu", "nvvm", "ptx", "sass")  # of the code, as text
DEFAULT_CACHE_BYTES = 1 << 30
_PREFIX = "BLOCKNUMBA_"
_YES = frozenset(("1", "true", "yes", "on"))
_NO = frozenset(("", "0", "false", "no", "off"))
_SIZE = re.compile(r"([0-9]{1,18})([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
# where NVIDIA's libraries are looked for besides Python's packages
_TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "LD_LIBRARY_PATH")
# which code Numba makes of scalar functions
_NUMBA_VARIABLES = ("NUMBA_BOUNDSCHECK", "NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME",
                    "NUMBA_ENABLE_AVX", "NUMBA_LOOP_VECTORIZE", "NUMBA_OPT",
                    "NUMBA_SLP_VECTORIZE")


@dataclass(frozen=True, slots=True)
class Limits:
    """The greatest sizes that are compiled, each of which BLOCKNUMBA_MAX_... in capitals changes.

    They keep a slip, a size with a zero too many, from taking minutes or all memory.  What is
    below them takes seconds: perf/NOTES.md, "Limits".
    unrolled: iterations of a loop that is unrolled.
    statements: of a kernel, in Python's bytecode, after inlining and unrolling.
    elements_per_thread: of a tile that threads hold in registers.
    instructions: of the NVVM IR of a kernel.
    tile_bytes: of a tile on the CPU device.
    """

    unrolled: int = 4096
    statements: int = 50_000
    elements_per_thread: int = 1024
    instructions: int = 50_000
    tile_bytes: int = 1 << 27


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from the environment, read when blocknumba is imported.

    threads: NUMBA_NUM_THREADS, of a launch on the CPU; 0 for one on each processor.
    interpret: BLOCKNUMBA_INTERPRET=1 runs every kernel in the interpreter, even where there is a
        GPU.
    cache: BLOCKNUMBA_CACHE=0 neither reads nor writes compiled kernels on disk.
    cache_folder: BLOCKNUMBA_CACHE_DIR, where they are; by default the user's folder for caches.
        None when there is no home directory.
    cache_bytes: BLOCKNUMBA_CACHE_SIZE ("500M", "2G"), the most that they may take; least recently
        used ones go first.
    dump: BLOCKNUMBA_DUMP=tile,ptx writes these levels of each compiled kernel to standard error.
    time: BLOCKNUMBA_TIME=1 writes how long each compilation took to standard error.
    full_traceback: BLOCKNUMBA_FULL_TRACEBACK=1 keeps the frames of blocknumba in the tracebacks of
        errors.
    toolkit: the variables that say where CUDA is.
    numba: the variables that say which code Numba makes.
    limits: BLOCKNUMBA_MAX_UNROLLED and the others, see Limits.
    """

    threads: int = 0
    interpret: bool = False
    cache: bool = True
    cache_folder: Path | None = None
    cache_bytes: int = DEFAULT_CACHE_BYTES
    dump: tuple[str, ...] = ()
    time: bool = False
    full_traceback: bool = False
    toolkit: tuple[str, ...] = ()
    numba: tuple[str, ...] = ()
    limits: Limits = Limits()


class Environment:
    """The settings of an environment, each read when it is first asked for.

    The attributes are those of Settings.  A variable that does not say what it should is an error
    of what needs it, not of the import.
    """

    def __init__(self, environment: Mapping[str, str]):
        self._environment = {name: environment[name] for name in _VARIABLES if name in environment}

    def __getattr__(self, name: str) -> object:
        """Errors: BlockValueError that names the variable."""
        if name not in _READERS:
            raise AttributeError(f"settings have no {name!r}")
        value = _READERS[name](self._environment)
        setattr(self, name, value)
        return value


def read_settings(environment: Mapping[str, str]) -> Settings:
    """All settings that an environment asks for.

    Errors: BlockValueError for a variable that does not say what it should.
    """
    found = Environment(environment)
    return Settings(**{name: getattr(found, name) for name in _READERS})


def warn_of_unknown(environment: Mapping[str, str]) -> None:
    """Warn of variables that look like ours and are none."""
    known = [name for name in _VARIABLES if name.startswith(_PREFIX)]
    for name in environment:
        if name.startswith(_PREFIX) and name not in known:
            advice = did_you_mean(name, known) or f"accepted {', '.join(known)}"
            warnings.warn(f"{name} is not an environment variable of blocknumba: {advice}")


def as_set() -> dict[str, str]:
    """The variables of this process that may change what kernels do, for the report of a bug."""
    return {name: os.environ[name] for name in sorted(os.environ)
            if name.startswith((_PREFIX, "CUDA_", "NUMBA_"))}


def raises(limit: str) -> str:
    """The hint of an error that a limit is the reason of.  limit: a field of Limits."""
    return f"{_variable(limit)} in the environment raises the limit"


def _flag(environment: Mapping[str, str], name: str, default: str = "") -> bool:
    text = environment.get(name, default).strip().lower()
    require(text in _YES | _NO, "{}: given {}, accepted 0 or 1", name, quoted(text),
            error=BlockValueError)
    return text in _YES


def _size(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    found = _SIZE.fullmatch(text)
    require(found or not text, "{}: given {}, accepted a number, as 1000, 500M or 2G", name,
            quoted(text), error=BlockValueError)
    return int(found[1]) * _UNITS[found[2].lower()] if found else default


def _limits(environment: Mapping[str, str]) -> Limits:
    return Limits(**{field.name: _size(environment, _variable(field.name), field.default)
                     for field in fields(Limits)})


def _variable(limit: str) -> str:
    return f"BLOCKNUMBA_MAX_{limit.upper()}"


def _levels(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    given = [level.strip() for level in environment.get(name, "").lower().split(",")]
    given = [level for level in given if level not in _NO]
    if given == ["all"] or given == ["1"]:
        return LEVELS
    unknown = [level for level in given if level not in LEVELS]
    require(not unknown, "{}: given {}, accepted all, {}", name, quoted(",".join(unknown)),
            ", ".join(LEVELS), error=BlockValueError)
    return tuple(given)


def _cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Source: XDG Base Directory Specification; elsewhere the system's folder of the same kind."""
    chosen = environment.get("BLOCKNUMBA_CACHE_DIR", "").strip()
    if chosen:
        return _absolute(chosen)
    variable, below = {"win32": ("LOCALAPPDATA", "AppData/Local"),
                       "darwin": ("", "Library/Caches")}.get(sys.platform,
                                                             ("XDG_CACHE_HOME", ".cache"))
    caches = Path(environment.get(variable, ""))
    if not caches.is_absolute():
        home = environment.get("HOME") or environment.get("USERPROFILE") or ""
        caches = Path(home, below)
    return caches / "blocknumba" if caches.is_absolute() else None


def _absolute(folder: str) -> Path:
    """The cache's folder as an absolute path; ~ is the home directory."""
    path = os.path.expanduser(folder)
    with contextlib.suppress(OSError):  # relative to a working directory that was removed
        if not path.startswith("~"):
            return Path(path).absolute()
    raise BlockValueError(f"BLOCKNUMBA_CACHE_DIR: given {quoted(folder)}, accepted a folder whose "
                          "absolute path is known")


def _as_written(environment: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}={environment[name]}" for name in names if environment.get(name))


_READERS: dict[str, Callable[[Mapping[str, str]], object]] = {
    "interpret": partial(_flag, name="BLOCKNUMBA_INTERPRET"),
    "threads": partial(_size, name="NUMBA_NUM_THREADS", default=0),
    "cache": partial(_flag, name="BLOCKNUMBA_CACHE", default="1"),
    "cache_folder": _cache_folder,
    "cache_bytes": partial(_size, name="BLOCKNUMBA_CACHE_SIZE", default=DEFAULT_CACHE_BYTES),
    "dump": partial(_levels, name="BLOCKNUMBA_DUMP"),
    "time": partial(_flag, name="BLOCKNUMBA_TIME"),
    "full_traceback": partial(_flag, name="BLOCKNUMBA_FULL_TRACEBACK"),
    "toolkit": partial(_as_written, names=_TOOLKIT_VARIABLES),
    "numba": partial(_as_written, names=_NUMBA_VARIABLES),
    "limits": _limits,
}
_VARIABLES = ("NUMBA_NUM_THREADS", "BLOCKNUMBA_INTERPRET", "BLOCKNUMBA_CACHE",
              "BLOCKNUMBA_CACHE_DIR",
              "BLOCKNUMBA_CACHE_SIZE", "BLOCKNUMBA_DUMP", "BLOCKNUMBA_TIME",
              "BLOCKNUMBA_FULL_TRACEBACK", "HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME",
              *_TOOLKIT_VARIABLES, *_NUMBA_VARIABLES,
              *(_variable(field.name) for field in fields(Limits)))

warn_of_unknown(os.environ)
SETTINGS = Environment(os.environ)
