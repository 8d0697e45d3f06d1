"""Tests that need a GPU name a test that runs the same kernel on the emulator, or why none does."""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KEYWORDS = ("emulated", "not_emulated")


@dataclass(frozen=True)
class Mark:
    """One use of the marker gpu.

    file: where; line: its line; keywords: what it is called with, if it is called.
    """

    file: Path
    line: int
    keywords: dict[str, object]

    def __str__(self) -> str:
        return f"{self.file.relative_to(HERE)}:{self.line}"


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def is_gpu(node: ast.AST) -> bool:
    """Whether a node is `pytest.mark.gpu` or `mark.gpu`."""
    if not (isinstance(node, ast.Attribute) and node.attr == "gpu"):
        return False
    marker = node.value
    return getattr(marker, "attr", getattr(marker, "id", "")) == "mark"


def marks_of(file: Path, module: ast.Module) -> list[Mark]:
    """Every use of the marker gpu in a file, called or not."""
    called = {node.func: {k.arg: getattr(k.value, "value", None) for k in node.keywords}
              for node in ast.walk(module) if isinstance(node, ast.Call) and is_gpu(node.func)}
    return [Mark(file, node.lineno, called.get(node, {}))
            for node in ast.walk(module) if is_gpu(node)]


MARKS = [mark for file in sorted(HERE.rglob("*.py")) for mark in marks_of(file, parsed(file))]


def problem(mark: Mark) -> str | None:
    """What is wrong with a mark."""
    given = [name for name in KEYWORDS if mark.keywords.get(name)]
    if len(given) != 1 or set(mark.keywords) != set(given):
        return ('write gpu(emulated="test") with the name of a test or fixture of this file, or '
                '"file.py::test" of this folder, that runs the kernel on the emulator; or '
                'gpu(not_emulated="reason")')
    if given == ["not_emulated"]:
        return None
    file, _, name = mark.keywords["emulated"].rpartition("::")
    twin = function(mark.file.parent / file if file else mark.file, name)
    if twin is None:
        return f"there is no {mark.keywords['emulated']}"
    if "emulat" not in ast.unparse(twin).lower() or any(map(is_gpu, ast.walk(twin))):
        return f"{name} does not run on the emulator"
    return None


def function(file: Path, name: str) -> ast.FunctionDef | None:
    """The function of a name at the top of a file."""
    if not file.exists():
        return None
    return next((node for node in parsed(file).body
                 if isinstance(node, ast.FunctionDef) and node.name == name), None)


def test_every_test_that_needs_a_gpu_has_an_emulated_twin_or_a_reason():
    problems = {str(mark): found for mark in MARKS if (found := problem(mark))}

    assert not problems
    assert len(MARKS) > 4


@pytest.mark.parametrize("source, message", [
    ("@pytest.mark.gpu\ndef test_x(): pass", "write gpu"),
    ("pytestmark = [mark.gpu]", "write gpu"),
    ("@pytest.mark.gpu(not_emulated='')\ndef test_x(): pass", "write gpu"),
    ("@pytest.mark.gpu(emulated='test_y')\ndef test_x(): pass", "there is no test_y"),
    ("@pytest.mark.gpu(emulated='other.py::test_y')\ndef test_x(): pass", "there is no other.py"),
    ("@pytest.mark.gpu(emulated='test_y')\ndef test_x(): pass\ndef test_y(): pass",
     "test_y does not run on the emulator"),
    ("@pytest.mark.gpu(emulated='test_x')\ndef test_x(): emulated_gpu.launch()",
     "test_x does not run on the emulator"),
])
def test_a_mark_without_a_twin_is_found(tmp_path, source, message):
    file = tmp_path / "test_source.py"
    file.write_text(source)

    (mark,) = marks_of(file, parsed(file))

    assert problem(mark).startswith(message)


@pytest.mark.parametrize("source", [
    "@pytest.mark.gpu(not_emulated='graphs are the driver')\ndef test_x(): pass",
    "@pytest.mark.gpu(emulated='test_y')\ndef test_x(): pass\ndef test_y(): emulated_gpu.launch()",
])
def test_a_mark_with_a_twin_or_a_reason_is_accepted(tmp_path, source):
    file = tmp_path / "test_source.py"
    file.write_text(source)

    (mark,) = marks_of(file, parsed(file))

    assert problem(mark) is None
