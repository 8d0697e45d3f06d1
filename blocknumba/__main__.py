"""`python -m blocknumba COMMAND`: each command is a module with add_arguments and run."""

from __future__ import annotations

import argparse
import importlib
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
    Command("opt", "apply passes to the text of a tile IR function", "blocknumba.opt"),
    Command("compile", "compile a kernel to files, for programs without Python",
            "blocknumba.dispatch.compile_command"),
    Command("emulate", "run a kernel on an emulated GPU, and count what each line does",
            "blocknumba.dispatch.emulate"),
    Command("cache", "show or clear the compiled kernels on disk",
            "blocknumba.dispatch.cache_command"),
    Command("doctor", "check the installation, and say what will not work and the fix",
            "blocknumba.dispatch.doctor"),
    Command("layout", "draw a layout", "blocknumba.gpu_layout.render"),
)


def main(given: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name; the exit status."""
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
    try:
        return modules[arguments.command].run(arguments)
    except BlockError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
