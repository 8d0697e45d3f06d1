"""Run docs/notebooks.md and the steps of the tutorial as notebooks, by nbclient, and check them.

    python tests/run_notebooks.py [FOLDER]      FOLDER gets the notebooks that were run

A cell that ends with a value or with plt.show() shows HTML or a picture.  What a cell prints is
what the page says.  An error has at most MAX_LINES lines, the last ones as in the page.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "notebooks.md"
STEPS = sorted((ROOT / "examples" / "tutorial").glob("step_*.py"))
MAX_LINES = 15
TIMEOUT = 120  # seconds of a cell
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
PICTURES = ("text/html", "image/svg+xml", "image/png")


@dataclass(frozen=True)
class Cell:
    """A cell: its code, what is written below it, and whether it fails."""

    code: str
    expected: str = ""
    fails: bool = False

    @property
    def shows(self) -> bool:
        """Whether it ends with a value or with plt.show()."""
        last = ast.parse(self.code).body[-1]
        return (isinstance(last, ast.Expr) and not self.fails
                and (not isinstance(last.value, ast.Call) or ast.unparse(last) == "plt.show()"))


def cells_of_page(text: str) -> list[Cell]:
    """The cells of a page: `python` blocks, and `py` blocks, which fail."""
    blocks = _FENCED.findall(text)
    return [Cell(code, following if kind == "text" else "", language == "py")
            for (language, code), (kind, following) in zip(blocks, [*blocks[1:], ("", "")])
            if language in ("python", "py")]


def cells_of_step(text: str) -> list[Cell]:
    """The cells of a step of the tutorial, which `# %%` parts."""
    return [Cell(code) for part in text.split("\n# %%\n")
            if ast.parse(code := part.strip()).body]


def run(name: str, cells: list[Cell], folder: Path | None) -> list[list[dict]]:
    """The outputs of each cell, run in a kernel of its own."""
    notebook = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_code_cell(cell.code.rstrip(), metadata={
            "tags": ["raises-exception"] * cell.fails}) for cell in cells])
    NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(
        ROOT / "examples" / "tutorial")}}).execute()
    if folder is not None:
        nbformat.write(notebook, folder / f"{name}.ipynb")
    return [cell.outputs for cell in notebook.cells]


def check(cell: Cell, outputs: list[dict]) -> None:
    """Errors: AssertionError where a cell does not show what it has to."""
    if cell.fails:
        errors = [output for output in outputs if output.output_type == "error"]
        assert errors, "no error"
        lines = _COLOURS.sub("", "\n".join(errors[0].traceback)).rstrip().splitlines()
        assert len(lines) <= MAX_LINES, "\n".join(lines)
        expected = cell.expected.rstrip().splitlines()
        assert lines[-len(expected):] == expected, "\n".join(lines)
        return
    printed = "".join(output.text for output in outputs
                      if output.output_type == "stream" and output.name == "stdout")
    assert not cell.expected or printed == cell.expected, printed
    shown = [kind for output in outputs for kind in output.get("data", ())]
    assert not cell.shows or set(shown) & set(PICTURES), f"shows {shown}"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    notebooks = {"notebooks": cells_of_page(PAGE.read_text())}
    notebooks |= {step.stem: cells_of_step(step.read_text()) for step in STEPS}
    for name, cells in notebooks.items():
        for number, (cell, outputs) in enumerate(zip(cells, run(name, cells, folder))):
            try:
                check(cell, outputs)
            except AssertionError as error:
                raise AssertionError(f"{name}, cell {number}:\n{cell.code}\n{error}") from None
        print(f"{name}: {len(cells)} cells")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of the libraries that run cells
    main()
