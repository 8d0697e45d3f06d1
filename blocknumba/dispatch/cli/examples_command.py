"""`python -m blocknumba examples`: the programs of examples/, listed, printed or written."""

from __future__ import annotations

import argparse
import ast
import shutil
import sys
from pathlib import Path

import blocknumba
from blocknumba.errors import BlockValueError
from blocknumba.wording import did_you_mean, quoted

_ROOMS, _DATA = ("", "tutorial", "gallery"), "data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A name, and where to write to."""
    parser.add_argument("name", nargs="?", help="of an example; without it, all are listed")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER",
                        help="write it there, with the examples that it imports")


def run(arguments: argparse.Namespace) -> int:
    """List, print or write examples; the exit status.

    Errors: BlockValueError for a name that there is not.
    """
    found = examples()
    if arguments.name is None:
        width = max(map(len, found))
        for name, path in found.items():
            sys.stdout.write(f"{name:{width}}  {title(path)}\n")
        return 0
    name = arguments.name.removesuffix(".py")
    if name not in found:
        raise BlockValueError(
            f"examples: given {quoted(name)}, accepted a name that `examples` alone lists",
            hint=did_you_mean(name, found))
    if arguments.output is None:
        sys.stdout.write(found[name].read_text(encoding="utf-8"))
        return 0
    _write(with_imported(found[name], found), arguments.output)
    return 0


def _write(programs: list[Path], target: Path) -> None:
    """Copy programs to a folder, with the data that they read."""
    target.mkdir(parents=True, exist_ok=True)
    for path in programs:
        shutil.copyfile(path, target / path.name)
        sys.stdout.write(f"{target / path.name}\n")
    if not any(_reads_data(path) for path in programs):
        return
    if (folder() / _DATA).is_dir():
        shutil.copytree(folder() / _DATA, target / _DATA, dirs_exist_ok=True)
        sys.stdout.write(f"{target / _DATA}\n")
    else:
        sys.stdout.write(f"{target / _DATA} is missing: take examples/{_DATA} from the "
                         "repository\n")


def _reads_data(path: Path) -> bool:
    """True of a program that names the folder of data."""
    return any(isinstance(node, ast.Constant) and node.value == _DATA
               for node in ast.walk(_parsed(path)))


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def folder() -> Path:
    """The folder of the examples: in the installed package, or beside it in a clone."""
    package = Path(blocknumba.__file__).parent
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "examples"


def examples() -> dict[str, Path]:
    """The programs by their names; those of the rooms are named as `tutorial/step_1_add`."""
    root = folder()
    return {f"{room}/{path.stem}".lstrip("/"): path
            for room in _ROOMS for path in sorted((root / room).glob("*.py"))}


def title(path: Path) -> str:
    """The first line of a program's docstring that is text."""
    return (ast.get_docstring(_parsed(path)) or "").partition("\n")[0]


def with_imported(path: Path, known: dict[str, Path]) -> list[Path]:
    """An example and those that it imports, and these import, each once."""
    found, waiting = [], [path]
    while waiting:
        one = waiting.pop(0)
        if one in found:
            continue
        found.append(one)
        for node in ast.walk(_parsed(one)):
            modules = ([node.module] if isinstance(node, ast.ImportFrom) else
                       [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
            waiting += [known[name] for name in modules if name in known]
    return found
