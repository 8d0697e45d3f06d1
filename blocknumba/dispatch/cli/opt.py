"""`python -m blocknumba opt`: passes applied to the text of a function."""

from __future__ import annotations

import argparse
import sys

from blocknumba.errors import BlockError, BlockValueError, ParseError, require
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import layout_passes
from blocknumba.text_files import read_text
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.ir.verifier import ANY_LEVEL, problems
from blocknumba.tile_ir.passes.contract import Pass, run_passes
from blocknumba.tile_ir.passes.pipeline import OPTIONAL_PASSES, TILE_PASSES
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text

NUMBERS_OF_WARPS = (1, 2, 4, 8, 16, 32)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of run."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "passes:\n" + "\n".join(f"  {pass_.name:18} {pass_.summary}"
                                            for pass_ in _passes().values())
    parser.add_argument("file", help="the text of a function; - is the standard input")
    parser.add_argument("--passes", default="tile", metavar="NAME,NAME",
                        help="passes or pipelines (tile, layout); tile by default")
    parser.add_argument("--num-warps", type=int, default=4, choices=NUMBERS_OF_WARPS,
                        help="of a program; for layout passes")
    parser.add_argument("--dump", action="store_true", help="print the function after each pass")
    parser.add_argument("--time", action="store_true", help="print how long each pass took")


def run(arguments: argparse.Namespace) -> int:
    """Print what passes make of a function; the exit status.

    The function is verified before and after each pass.
    Errors: BlockValueError for an unknown pass or file, and for a function that a pass does not
    take; ParseError.
    """
    passes = [pass_ for name in arguments.passes.split(",") for pass_ in _named(name)]
    fn = parse(_read(arguments.file), LinearLayout.parse, file=arguments.file)
    found = list(problems(fn))
    require(not found, "opt: {} is not well formed: {}", fn.name, "; ".join(map(str, found)),
            error=ParseError)

    def observe(pass_: Pass, after: Function, seconds: float) -> None:
        if arguments.time:
            sys.stderr.write(f"{pass_.name:18} {seconds * 1e3:8.3f} ms\n")
        if arguments.dump:
            sys.stdout.write(f"# after {pass_.name}\n{text(after)}\n")

    try:
        fn = run_passes(fn, passes, LayoutOptions(arguments.num_warps), level=ANY_LEVEL,
                        observer=observe)
    except BlockError:
        raise
    except Exception as error:  # passes trust each other, not whoever wrote the text
        raise BlockValueError("opt: a pass does not take this function: "
                              f"{type(error).__name__}: {error}",
                              hint="each pass takes what those before it make: --help lists them "
                                   "in order") from error
    if not arguments.dump:
        sys.stdout.write(text(fn))
    return 0


def _named(name: str) -> tuple[Pass, ...]:
    """The passes of a pipeline, or the one of that name."""
    name, passes = name.strip(), _passes()
    pipelines = {"tile": tuple(TILE_PASSES), "layout": layout_passes()}
    if name in pipelines:
        return pipelines[name]
    require(name in passes, "opt: given pass {!r}, accepted {}", name,
            ", ".join((*pipelines, *passes)), error=BlockValueError)
    return (passes[name],)


def _passes() -> dict[str, Pass]:
    """All passes by name, in the order in which they run."""
    return {pass_.name: pass_ for pass_ in (
        *TILE_PASSES, *OPTIONAL_PASSES, *layout_passes())}


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.buffer.read().decode(errors="replace")  # what is no text is no name either
    return read_text(file, "opt")
