"""`python -m blocknumba COMMAND`: each command is a module with add_arguments and run."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.errors import BlockError


@dataclass(frozen=True, slots=True)
class Command:
    """A module with `add_arguments(parser)` and `run(arguments) -> exit status`."""

    name: str
    summary: str
    module: str


COMMANDS = (
    Command("demo", "run three kernels and check them against NumPy", "blocknumba.demo"),
    Command("opt", "apply passes to the text of a tile IR function", "blocknumba.dispatch.cli.opt"),
    Command("compile", "compile a kernel to files, for programs without Python",
            "blocknumba.dispatch.cli.compile_command"),
    Command("emulate", "run a kernel on an emulated GPU, and count what each line does",
            "blocknumba.dispatch.cli.emulate"),
    Command("cache", "show or clear the compiled kernels on disk",
            "blocknumba.dispatch.cli.cache_command"),
    Command("doctor", "check the installation, and say what will not work and the fix",
            "blocknumba.dispatch.cli.doctor"),
    Command("examples", "list, print or write examples of kernels",
            "blocknumba.dispatch.cli.examples_command"),
    Command("draw", "draw a kernel at every stage of its compilation",
            "blocknumba.dispatch.cli.draw"),
    Command("port", "say which kernels of files that were written for Triton compile",
            "blocknumba.triton.porting.command"),
    Command("layout", "draw a layout", "blocknumba.gpu_layout.layouts.render"),
)


# What a shell says of a program that Ctrl-C or the end of its reader ended: 128 and the signal
INTERRUPTED, READER_LEFT = 130, 141


def main(given: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name; the exit status.

    A mistake is one message on standard error and the status 1; argparse's are SystemExit 2.
    """
    try:
        status = _run(given)
        sys.stdout.flush()  # here, where it is known what to say when nobody reads it
        return status
    except BlockError as error:
        return _said(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _refused(error)
    except MemoryError:
        return _said("there is not enough memory")


def _run(given: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m blocknumba")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    given = sys.argv[1:] if given is None else list(given)
    modules = {}
    for command in COMMANDS:
        subparser = commands.add_parser(command.name, help=command.summary,
                                        description=command.summary)
        if command.name in given[:1]:
            # only the module of the command that runs: a layout is drawn without numba
            modules[command.name] = importlib.import_module(command.module)
            modules[command.name].add_arguments(subparser)
    arguments = parser.parse_args(given)
    return modules[arguments.command].run(arguments)


def _refused(error: OSError) -> int:
    """The status when the system refuses: quietly when whoever reads the output has enough."""
    if isinstance(error, BrokenPipeError):
        return READER_LEFT
    return _said(f"{error.filename or 'standard output'}: {error.strerror}")


def _said(message: str) -> int:
    """The status of a mistake that is told."""
    sys.stderr.write(f"{message}\n")
    return 1


def _process() -> int:
    """Run as a process of its own, whose output may end early."""
    if sys.stdout is None:
        return _said("standard output is closed")
    sys.stdout.reconfigure(errors="backslashreplace")  # source and names may be any text
    try:
        status = main()
    except SystemExit as end:  # argparse has said all
        status = end.code
    try:
        sys.stdout.flush()
    except OSError as error:
        # else Python tries again when it ends, and complains
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return status or _refused(error)
    return status


if __name__ == "__main__":
    sys.exit(_process())
