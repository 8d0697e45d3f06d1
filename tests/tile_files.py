"""Tests that are .tile files: what a pass makes of a function, word for word.

A file starts with `# passes: NAME, NAME`.  It holds cases, separated by lines of `=`: a comment
that is the name of the case, the text of a function, a line of `-`, the exact result.
`pytest --bless` writes the results; read the diff before you commit it.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import PLACING_PASSES, layout_passes
from blocknumba.gpu_layout.spec import LAID_OUT, MAPPED
from blocknumba.tile_ir.ir.verifier import ANY_LEVEL, TILE, verify
from blocknumba.tile_ir.passes.contract import run_passes
from blocknumba.tile_ir.passes.pipeline import OPTIONAL_PASSES, TILE_PASSES
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text

_PASSES = {pass_.name: pass_ for pass_ in (*TILE_PASSES, *OPTIONAL_PASSES,
                                         *layout_passes())}
_HEADER = re.compile(r"# passes: (.*)\n")
_BETWEEN_CASES = re.compile(r"^====+\n", re.MULTILINE)
_RULE = re.compile(r"^----+\n", re.MULTILINE)


def pytest_addoption(parser) -> None:
    parser.addoption("--bless", action="store_true",
                     help="write what the passes make of .tile files as what is expected")
    parser.addoption("--all-cases", action="store_true",
                     help="run all conformance cases, not some of each kind, on the CPU device")


def pytest_collect_file(file_path: Path, parent):
    if file_path.suffix == ".tile":
        return TileFile.from_parent(parent, path=file_path)
    return None


@dataclass
class Case:
    """One function and what becomes of it; expected is None before the first --bless."""

    given: str
    expected: str | None

    @property
    def name(self) -> str:
        return self.given.partition("\n")[0].removeprefix("#").strip()

    def __str__(self) -> str:
        return self.given if self.expected is None else f"{self.given}----\n{self.expected}"


def read_cases(content: str) -> tuple[list, list[Case]]:
    """The passes and the cases of a file."""
    header = _HEADER.match(content)
    assert header, "the first line must be: # passes: NAME, NAME"
    passes = [_PASSES[name.strip()] for name in header[1].split(",")]
    cases = []
    for part in _BETWEEN_CASES.split(content[header.end():]):
        given, *expected = _RULE.split(part.lstrip("\n"))
        cases.append(Case(given, expected[0] if expected else None))
    return passes, cases


class TileFile(pytest.File):
    """A .tile file."""

    def collect(self):
        passes, cases = read_cases(self.path.read_text())
        for number, case in enumerate(cases):
            yield TileItem.from_parent(self, name=case.name, number=number, passes=passes)

    def bless(self, number: int, result: str) -> None:
        """Write the result of one case."""
        content = self.path.read_text()
        _, cases = read_cases(content)
        cases[number].expected = result
        header = _HEADER.match(content)[0]
        self.path.write_text(f"{header}\n" + "====\n".join(map(str, cases)))


class TileItem(pytest.Item):
    """One case of a .tile file."""

    def __init__(self, *, number, passes, **rest):
        super().__init__(**rest)
        self._number = number
        self._passes = passes

    def runtest(self) -> None:
        _, cases = read_cases(self.path.read_text())
        case = cases[self._number]
        with_layouts = any(pass_ in layout_passes() for pass_ in self._passes)
        fn = parse(case.given, LinearLayout.parse, file=str(self.path))
        verify(fn, ANY_LEVEL if with_layouts else TILE)

        in_registers = any(pass_ in PLACING_PASSES for pass_ in self._passes)
        level = LAID_OUT if in_registers else MAPPED if with_layouts else TILE
        result = text(run_passes(fn, self._passes, LayoutOptions(), level=level))

        if self.config.getoption("--bless"):
            self.parent.bless(self._number, result)
            return
        assert case.expected is not None, "run pytest --bless, and read what it writes"
        if result != case.expected:
            raise TileMismatch(case.expected, result)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, TileMismatch):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"{self.path.name}: {self.name}"


class TileMismatch(AssertionError):
    """The result of a case is not the expected one."""

    def __init__(self, expected: str, result: str):
        lines = difflib.unified_diff(expected.splitlines(), result.splitlines(), "expected",
                                     "result", lineterm="", n=100)
        super().__init__("\n".join(lines))
