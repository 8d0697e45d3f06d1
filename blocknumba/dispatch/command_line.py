"""What a command line names: kernels of files, and values by name."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

from blocknumba.dispatch.kernel import Kernel
from blocknumba.errors import BlockValueError, require


def kernel_of(given: str, command: str) -> Kernel:
    """The kernel that FILE.py:KERNEL names; the file is run as a module.

    command: whose argument it is.
    Errors: BlockValueError when there is no such file or kernel.
    """
    file, _, name = given.rpartition(":")
    require(file and name, "{}: given {!r}, accepted FILE.py:KERNEL", command, given,
            error=BlockValueError)
    path = Path(file).resolve()
    require(path.is_file(), "{}: there is no file {}", command, file, error=BlockValueError)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    require(spec is not None, "{}: {} is not a Python file", command, file, error=BlockValueError)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))  # as `python FILE.py` has it
    spec.loader.exec_module(module)
    kernel = getattr(module, name, None)
    kernels = sorted(key for key, value in vars(module).items() if isinstance(value, Kernel))
    require(isinstance(kernel, Kernel), "{}: {} has no kernel {!r}, accepted {}", command, file,
            name, ", ".join(kernels) or "a @bn.jit function", error=BlockValueError)
    return kernel


def values_by_name(given: list[str], command: str) -> dict[str, object]:
    """NAME=VALUE, the values as Python literals.

    command: whose arguments they are.
    Errors: BlockValueError for any other text.
    """
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        require(name.strip() and equals, "{}: given {!r}, accepted NAME=VALUE", command, text,
                error=BlockValueError)
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            raise BlockValueError(f"{command}: given {text!r}, accepted a literal of Python as "
                                  "the value") from None
    return values
