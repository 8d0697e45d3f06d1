"""Errors in cells of a notebook: short, with the hint at their end."""

import contextlib
import io

import pytest

interactiveshell = pytest.importorskip(
    "IPython.core.interactiveshell", reason="IPython, which runs the cells, is not installed")
from traitlets.config import Config  # noqa: E402  of IPython

MAX_LINES = 15
IMPORTS = "import numpy as np\nimport blocknumba as bn"
KERNEL = """
@bn.jit
def halve(x, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    x[r] = x[r] / 2 + bn.zeros((SIZE,), bn.float32)
"""


@pytest.fixture
def shell():
    # none of this belongs in the history of the user's own sessions
    made = interactiveshell.InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    made.run_cell(IMPORTS)
    return made


def printed(shell, cell):
    """The lines that a cell prints, its error among them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shell.run_cell(cell)
    return out.getvalue().rstrip().splitlines()


@pytest.mark.parametrize("size, call, hint", [
    (3, "halve[1](np.ones(5, np.float32), BLOCK=8)", "the next valid extent is 4"),
    (8, "x = np.ones(5)\nhalve[1](x, BLOK=8)", "did you mean BLOCK?"),
    (8, "halve(np.ones(5), BLOCK=8)", "use halve[1](...)"),
    (8, "bn.sum(np.ones(5))", "bn.evaluate(bn.sum, ...)"),
    (8, "bn.jit(num_warp=4)", "did you mean num_warps?")])
def test_an_error_of_a_cell_has_few_lines_and_ends_with_the_hint(shell, size, call, hint):
    assert printed(shell, f"SIZE = {size}{KERNEL}") == []

    lines = printed(shell, call)

    assert len(lines) <= MAX_LINES, "\n".join(lines)
    assert "hint: " in lines[-1] and hint in lines[-1]
    assert "Error" in "".join(lines)


def shown(shell, expression):
    """The HTML by which a notebook shows what an expression gives."""
    return shell.display_formatter.format(shell.ev(expression))[0]["text/html"]


TUNED = """
@bn.autotune([bn.Config({"BLOCK": size}) for size in (64, 100)])
@bn.jit
def fill(x, BLOCK: bn.constexpr):
    bn.store(x + bn.arange(0, BLOCK), 1.0)

compiled = fill[1](np.zeros(64, np.float32))
"""


def test_timings_are_a_table_of_html_with_the_names_of_configurations(shell):
    assert printed(shell, TUNED) == []

    table = shown(shell, "fill.timings")

    assert table.count("<tr>") == 3
    assert "<td>BLOCK=64</td>" in table and "<td>BLOCK=100</td>" in table
    assert "must be a power of two, got 100</td>" in table


def test_results_of_a_benchmark_are_a_table_of_html(shell):
    printed(shell, """
sizes = bn.testing.Benchmark(["n"], [1, 2], "power", [1, 2], ["n", "n < 9"], "powers")
results = bn.testing.perf_report(sizes)(lambda n, power: n**power).run()
""")

    table = shown(shell, "results")

    assert table.startswith("<table><caption>powers</caption>")
    assert "<th>n &lt; 9</th>" in table and "<tr><td>2</td><td>2</td><td>4</td></tr>" in table
