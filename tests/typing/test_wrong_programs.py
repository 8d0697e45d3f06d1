"""Wrong kernels and wrong launches, each with the whole message that it gets.

wrong_programs.txt has them: a title, the lines of a kernel of (x, y, i, n), or a module that
defines `kernel`; after ">>>" the launch, where it is not `kernel[1](X, Y, I, 3)`; below "|" the
message.  `pytest --bless` writes the messages; read them as the user who made the mistake.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

FILE = Path(__file__).with_suffix(".txt").with_name("wrong_programs.txt")
LAUNCH = "kernel[1](X, Y, I, 3)"
MIN_PROGRAMS = 120


class Thing:
    value = 3


@dataclass(frozen=True)
class WrongProgram:
    """A program and its message, without the error's class where it has none yet."""

    title: str
    lines: tuple[str, ...]
    launch: str
    message: str

    @classmethod
    def parse(cls, text: str) -> WrongProgram:
        title, *rest = text.splitlines()
        message = [line[2:] for line in rest if line.startswith("|")]
        launch = [line[4:] for line in rest if line.startswith(">>>")]
        lines = [line for line in rest if line.strip() and not line.startswith(("|", ">>>"))]
        return cls(title, tuple(lines), launch[0] if launch else LAUNCH, "\n".join(message))

    def __str__(self) -> str:
        launch = [] if self.launch == LAUNCH else [f">>> {self.launch}"]
        message = [f"| {line}".rstrip() for line in self.message.splitlines()]
        return "\n".join([f"# {self.title}", *self.lines, *launch, *message])

    @property
    def source(self) -> str:
        """The module that defines the kernel."""
        if any(line.startswith("def ") for line in self.lines):
            return "\n".join([*self.lines, ""])
        return "\n".join(["def kernel(x, y, i, n):", *("    " + line for line in self.lines), ""])

    def raised(self) -> str:
        """The class and the message of what it raises.

        Errors: AssertionError where nothing is raised.
        """
        name, source = f"<{self.title}>", self.source
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        space = {"bn": bn, "np": np, "TABLE": {3: 1}, "OBJECT": Thing(),
                 "X": np.zeros(16, np.float32), "Y": np.zeros((8, 8), np.float32),
                 "I": np.zeros(16, np.int32)}
        exec(compile(source, name, "exec"), space)
        space["kernel"] = bn.jit(device="cpu")(space["kernel"])
        try:
            exec(self.launch, space)
        except BlockError as error:
            return f"{type(error).__name__}: {error}"
        raise AssertionError(f"{self.title}: no error")


def _read() -> list[WrongProgram]:
    parts = ("\n" + FILE.read_text()).split("\n# ")[1:]
    return [WrongProgram.parse(part) for part in parts]


PROGRAMS = _read()


@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=[p.title for p in PROGRAMS])
def test_a_wrong_program_has_one_whole_message(number, request):
    program = PROGRAMS[number]

    raised = program.raised()

    if request.config.getoption("--bless"):
        PROGRAMS[number] = replace(program, message=raised)
        FILE.write_text("\n\n".join(map(str, PROGRAMS)) + "\n")
    assert raised == program.message or request.config.getoption("--bless")


def test_there_are_many_and_none_is_there_twice():
    assert len(PROGRAMS) >= MIN_PROGRAMS
    assert len({program.title for program in PROGRAMS}) == len(PROGRAMS)
    assert len({(program.lines, program.launch) for program in PROGRAMS}) == len(PROGRAMS)


def test_messages_speak_of_the_users_program_alone():
    for program in PROGRAMS:
        lowered = program.message.lower()
        assert "numba." not in lowered and "llvm" not in lowered and "traceback" not in lowered
