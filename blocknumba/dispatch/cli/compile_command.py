"""`python -m blocknumba compile`: a kernel as files for a GPU that need not be there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from blocknumba.dispatch.cli.command_line import kernel_of, values_by_name
from blocknumba.dispatch.compile.ahead import compile
from blocknumba.dispatch.compile.export import export, require_name
from blocknumba.dispatch.compile.options import Options

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
    add_kernel_arguments(parser)
    parser.add_argument("-o", "--output", default=".", metavar="DIR", type=Path)
    parser.add_argument("--name", help="of the files; the kernel's own by default")


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what is compiled: kernel, signature, target, constants, options."""
    parser.add_argument("kernel", metavar="FILE.py:KERNEL", help="a @bn.jit function of a file")
    parser.add_argument("--signature", required=True,
                        help="a type for each parameter, and a value for each constant; "
                             "Numba's spelling or Triton's")
    parser.add_argument("--target", required=True, help="sm_90a and the like")
    parser.add_argument("--constant", action="append", default=[], metavar="NAME=VALUE",
                        help="a constant that the signature leaves out")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help=f"a compile option: {', '.join(sorted(Options().named()))}")


def run(arguments: argparse.Namespace) -> int:
    """Compile and write; the exit status.

    Errors: BlockError for a kernel that is not there or does not compile.
    """
    require_name(arguments.name)  # before the work of compiling
    compiled = compile(kernel_of(arguments.kernel, "compile"), arguments.signature,
                       values_by_name(arguments.constant, "compile"), target=arguments.target,
                       **values_by_name(arguments.option, "compile"))
    for file in export(compiled, arguments.output, arguments.name):
        sys.stdout.write(f"{file}\n")
    return 0
