"""`python -m blocknumba port FILE|FOLDER`: does each kernel compile, and what stops it."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from blocknumba.dispatch.compile.ahead import specialized
from blocknumba.dispatch.compile.options import OPTION_NAMES
from blocknumba.errors import UNKNOWN, BlockError, BlockValueError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.triton.loading import install, with_our_imports
from blocknumba.triton.porting.arguments import guessed, uses_of
from blocknumba.triton.runtime.autotuner import Autotuner, Heuristics
from blocknumba.triton.runtime.jit import JITFunction

_EPILOG = """\
examples:
  python -m blocknumba port kernels.py
  python -m blocknumba port src/my_package --target sm_80

Files are imported, with blocknumba.triton for triton, and never changed.  Types of arguments are
guessed from what a kernel does with them.  The exit status is 0 if every kernel compiles.
"""
ELEMENTS = ("fp32", "fp16", "bf16")  # of arrays, tried in this order
COMPILES, FUNCTION, STOPPED, NOT_IMPORTED = "compiles", "function", "stopped", "not imported"


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel, or a file that cannot be imported.

    state: COMPILES; FUNCTION, which kernels call and which is compiled with them; STOPPED or
        NOT_IMPORTED.
    detail: the element type that it compiled with, or what stops it.
    """

    file: str
    kernel: str
    state: str
    detail: str

    @property
    def reason(self) -> str:
        """The class of the error, and its message up to the first thing that was given."""
        kind, _, message = self.detail.partition(": ")
        return f"{kind}: {message.partition(', ')[0]}"

    def __str__(self) -> str:
        return f"{self.file:30}  {self.kernel:40}  {self.state:12}  {self.detail}".rstrip()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of run."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("paths", metavar="FILE|FOLDER", nargs="+", type=Path)
    parser.add_argument("--target", default="sm_90a", help="sm_90a and the like")


def run(arguments: argparse.Namespace) -> int:
    """Compile what there is, and print the table; the exit status.

    Errors: BlockValueError for a path that is not there, or has no kernels.
    """
    target = Target.parse(arguments.target)
    rows = []
    for path in arguments.paths:
        for row in rows_of(path, target):
            rows.append(row)
            print(row, flush=True)  # as it is known: a folder takes minutes
    require(rows, "port: there are no kernels in {}", ", ".join(map(str, arguments.paths)),
            error=BlockValueError, hint="a kernel is a function under @triton.jit")
    print("\n".join(summary(rows, str(target))))
    return int(any(row.state in (STOPPED, NOT_IMPORTED) for row in rows))


def summary(rows: Sequence[Row], target: str) -> Iterator[str]:
    """The lines of the summary: how many compile, and what stops how many."""
    states = Counter(row.state for row in rows)
    kernels = states[COMPILES] + states[STOPPED]
    yield ""
    yield (f"{states[COMPILES]} of {kernels} kernels compile for {target}; {states[FUNCTION]} "
           f"functions that they call; {states[NOT_IMPORTED]} files that cannot be imported")
    reasons = Counter(row.reason for row in rows if row.state in (STOPPED, NOT_IMPORTED))
    for reason, count in reasons.most_common():
        yield f"{count:5}  {reason}"


def rows_of(path: Path, target: Target) -> Iterator[Row]:
    """The rows of a file, or of all files in a folder that name triton."""
    require(path.exists(), "port: there is no {}", path, error=BlockValueError)
    root = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    for file in files:
        if "triton" not in file.read_text(encoding="utf-8", errors="ignore"):
            continue
        shown = str(file.relative_to(root))
        try:
            module = loaded(file)
        except (Exception, SystemExit) as error:
            yield Row(shown, "", NOT_IMPORTED, _said(error))
            continue
        for name, layered in kernels_of(module):
            yield _row(shown, name, layered, target)


def kernels_of(module: ModuleType) -> list[tuple[str, object]]:
    """The kernels that a module defines, with the decorators above them, by name."""
    found = {}
    for name, value in vars(module).items():
        kernel = base_kernel(value)
        if kernel is not None and kernel.module == module.__name__:
            found.setdefault(kernel, (kernel.__name__, value))
    return list(found.values())


def base_kernel(value: object) -> JITFunction | None:
    """The kernel below decorators; None for what is none."""
    for _ in range(16):  # decorators are few, and fn of a user's object may be anything
        if isinstance(value, JITFunction):
            return value
        try:
            value = getattr(value, "fn", None)
        except Exception:
            return None
    return None


def _row(file: str, name: str, layered: object, target: Target) -> Row:
    kernel = base_kernel(layered)
    uses = uses_of(kernel)
    if uses.returns:
        return Row(file, name, FUNCTION, "")
    first = None
    for element in ELEMENTS:
        try:
            chosen = chosen_by_decorators(layered)
            options = {key: value for key, value in chosen.items()
                       if key in OPTION_NAMES and key not in kernel.arg_names}
            types, constants = guessed(kernel, uses, chosen, element)
            kernel.compile(*specialized(kernel, types, constants, target, options))
            return Row(file, name, COMPILES, f"arrays of {element}")
        except Exception as error:  # also a bug of ours: the others are still to be compiled
            first = first or error
    return Row(file, name, STOPPED, _said(first))


def chosen_by_decorators(layered: object) -> dict[str, object]:
    """Constants and options that the first configuration and the heuristics of a kernel choose."""
    chosen: dict[str, object] = {}
    while not isinstance(layered, JITFunction):
        if isinstance(layered, Autotuner) or hasattr(layered, "configs"):
            chosen |= next(iter(layered.configs)).all_kwargs()
        elif isinstance(layered, Heuristics):
            chosen |= _heuristic_values(layered.values, chosen)
        layered = layered.fn
    return chosen


class _Anything(dict):
    """Arguments whose values nobody knows: a number for each."""

    def __missing__(self, name: str) -> int:
        return 64


def _heuristic_values(values: Mapping[str, object], chosen: Mapping[str, object]) -> dict:
    """The values of heuristics that can be computed without arguments; others are guessed."""
    found = {}
    for name, function in values.items():
        with contextlib.suppress(Exception):  # of a user's function that needs real arguments
            found[name] = function(_Anything(chosen | found))
    return found


def loaded(file: Path) -> ModuleType:
    """The module of a file, whose imports of triton get ours.

    A file of a package is imported by its full name; the imports of its neighbours are ours too.
    Errors: whatever the file raises.
    """
    file = file.resolve()
    folder, names = file.parent, [file.stem] if file.stem != "__init__" else []
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    top = names[0] if len(names) > 1 or file.stem == "__init__" else None
    _let_import(folder, [top] if top else [path.stem for path in folder.glob("*.py")])
    if top:
        return importlib.import_module(".".join(names))
    name = file.stem if file.stem not in sys.modules else f"{file.stem} of the port command"
    spec = with_our_imports(importlib.util.spec_from_file_location(name, file))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _let_import(folder: Path, names: Sequence[str]) -> None:
    """Make the modules of a folder importable, with ours for triton where nobody was before."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    for name in names:
        with contextlib.suppress(BlockError):  # no name of a module, or imported before
            install(name)


def _said(error: BaseException) -> str:
    """An error on one line, with the line of the source that it is at."""
    message = getattr(error, "message", None) or str(error)
    loc = getattr(error, "loc", UNKNOWN)
    where = f" (line {loc.line})" if loc is not UNKNOWN else ""
    return f"{type(error).__name__}: {' '.join(message.split())}{where}"
