"""Command-line arguments: kernels in files, and values by name."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from blocknumba.dispatch.compile.ahead import literal
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.errors import UNKNOWN, BlockValueError, Loc, require
from blocknumba.wording import quoted


def kernel_of(given: str, command: str) -> Kernel:
    """The kernel that FILE.py:KERNEL names; the file is run as a module.

    command: whose argument it is.
    Errors: BlockValueError when there is no such file or kernel, and when the file raises.
    """
    file, _, name = given.rpartition(":")
    require(file and name, "{}: given {!r}, accepted FILE.py:KERNEL", command, given,
            error=BlockValueError)
    path = Path(file).resolve()
    require(path.is_file(), "{}: there is no file {}", command, file, error=BlockValueError)
    module = _run(path, command)
    kernel = getattr(module, name, None)
    kernels = sorted(key for key, value in vars(module).items() if isinstance(value, Kernel))
    require(isinstance(kernel, Kernel), "{}: {} has no kernel {!r}, accepted {}", command, file,
            name, ", ".join(kernels) or "a @bn.jit function", error=BlockValueError)
    return kernel


def _run(path: Path, command: str) -> ModuleType:
    """The module that a Python file makes."""
    name = path.stem if path.stem not in sys.modules else f"{path.stem} of the {command} command"
    spec = importlib.util.spec_from_file_location(name, path)
    require(spec is not None, "{}: {} is not a Python file", command, path, error=BlockValueError)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as imports do; modules of others are not replaced
    sys.path.insert(0, str(path.parent))  # as `python FILE.py` has it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        said = " ".join([f"{type(error).__name__}:", *str(getattr(error, "msg", error)).split()])
        raise BlockValueError(
            f"{command}: {path.name} cannot be imported: {said.rstrip(':')}",
            hint='what is only for a script goes under `if __name__ == "__main__":`'
            if isinstance(error, SystemExit) else "").at(_raised_at(error, path)) from None
    return module


def _raised_at(error: BaseException, path: Path) -> Loc:
    """The last line of a file that an error passed through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return Loc(str(path), error.lineno or 0)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename == str(path)]
    return Loc(str(path), frames[-1].lineno) if frames else UNKNOWN


def values_by_name(given: list[str], command: str) -> dict[str, object]:
    """NAME=VALUE, the values as literals of Python or as dtypes.

    command: whose arguments they are.
    Errors: BlockValueError for any other text.
    """
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip()
        require(name and equals, "{}: given {}, accepted NAME=VALUE", command, quoted(text),
                error=BlockValueError)
        require(name not in values, "{}: given {} twice", command, name, error=BlockValueError)
        try:
            values[name] = literal(value)
        except ValueError:
            raise BlockValueError(f"{command}: given {quoted(text)}, accepted a literal of Python "
                                  "as the value") from None
    return values
