"""`python -m blocknumba compile`: a kernel as files for a GPU that need not be there."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
from pathlib import Path

from blocknumba.dispatch.ahead import compile
from blocknumba.dispatch.export import export
from blocknumba.dispatch.kernel import Kernel
from blocknumba.dispatch.options import Options
from blocknumba.errors import BlockValueError, require

_EPILOG = """\
example:
  python -m blocknumba compile vector_add.py:add --target sm_90a -o out \\
      --signature "f32[::1]:16, f32[::1]:16, f32[::1]:16, 1024"

writes add.cubin, add.ptx, add.json and add.h, a C header with a launcher
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of run."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernel", metavar="FILE.py:KERNEL", help="a @bn.jit function of a file")
    parser.add_argument("--signature", required=True,
                        help="a type for each parameter, and a value for each constant; "
                             "Numba's spelling or Triton's")
    parser.add_argument("--target", required=True, help="sm_90a and the like")
    parser.add_argument("-o", "--output", default=".", metavar="DIR", type=Path)
    parser.add_argument("--name", help="of the files; the kernel's own by default")
    parser.add_argument("--constant", action="append", default=[], metavar="NAME=VALUE",
                        help="a constant that the signature leaves out")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help=f"a compile option: {', '.join(sorted(Options().named()))}")


def run(arguments: argparse.Namespace) -> int:
    """Compile and write; the exit status.

    Errors: BlockError for a kernel that is not there or does not compile.
    """
    kernel = _kernel(arguments.kernel)
    compiled = compile(kernel, arguments.signature, _named(arguments.constant),
                       target=arguments.target, **_named(arguments.option))
    for file in export(compiled, arguments.output, arguments.name):
        sys.stdout.write(f"{file}\n")
    return 0


def _kernel(given: str) -> Kernel:
    file, _, name = given.rpartition(":")
    require(file and name, "compile: given {!r}, accepted FILE.py:KERNEL", given,
            error=BlockValueError)
    path = Path(file).resolve()
    require(path.is_file(), "compile: there is no file {}", file, error=BlockValueError)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    require(spec is not None, "compile: {} is not a Python file", file, error=BlockValueError)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))  # as `python FILE.py` has it
    spec.loader.exec_module(module)
    kernel = getattr(module, name, None)
    kernels = sorted(key for key, value in vars(module).items() if isinstance(value, Kernel))
    require(isinstance(kernel, Kernel), "compile: {} has no kernel {!r}, accepted {}", file, name,
            ", ".join(kernels) or "a @bn.jit function", error=BlockValueError)
    return kernel


def _named(given: list[str]) -> dict[str, object]:
    """NAME=VALUE, the values as Python literals."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        require(name.strip() and equals, "compile: given {!r}, accepted NAME=VALUE", text,
                error=BlockValueError)
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            raise BlockValueError(f"compile: given {text!r}, accepted a literal of Python as "
                                  "the value") from None
    return values
