"""Errors in cells of a notebook: short, with the hint at their end."""

import contextlib
import io
import re
import xml.etree.ElementTree as ElementTree

import pytest

from blocknumba.errors import BlockValueError

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
    made = interactiveshell.InteractiveShell.instance(
        config=Config({"HistoryManager": {"enabled": False}}))
    made.run_cell(IMPORTS)
    yield made
    made.clear_instance()


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


COMPILED = """
@bn.jit
def double(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r] * 2

@bn.jit
def product(x, w, out):
    out[bn.block(0, 64), bn.block(1, 64)] = bn.dot(
        x[bn.block(0, 64), bn.span(0, 64)], w[bn.span(0, 64), bn.block(1, 64)])

run = double[1](np.ones(8, np.float32), np.ones(8, np.float32), BLOCK=8, num_warps=2)
made = bn.compile(product, ("f16[:,::1]:16", "f16[:,::1]:16", "f32[:,::1]:16"), target="sm_90a")
"""


def test_an_error_names_the_cell_as_ipython_does(shell):
    shell.run_cell("# the first cell", store_history=True)
    shell.run_cell(f"SIZE = 3{KERNEL}", store_history=True)

    lines = printed(shell, "halve[1](np.ones(5, np.float32), BLOCK=8)")

    place = next(line for line in lines if line.endswith(", in halve"))
    assert re.fullmatch(r"  Cell In\[2\], line 5, in halve", place), lines


def test_kernels_and_code_are_tables_of_html(shell):
    assert printed(shell, COMPILED) == []

    kernel, code, stats = shown(shell, "double"), shown(shell, "run"), shown(shell, "made.stats")

    assert "double(x, out, BLOCK)" in kernel and "x: float32[::1]:16" in kernel
    assert "BLOCK=8, num_warps=2</td>" in code and "ms" in code and "vector loads" in code
    assert "<td>64x64x64, float16 in float32</td>" in stats


def test_layouts_are_pictures_of_svg_in_plain_colours(shell):
    printed(shell, COMPILED)

    table = shown(shell, "made.layouts")
    pictures = [ElementTree.fromstring(shell.display_formatter.format(layout)[0]["image/svg+xml"])
                for layout in shell.ev("made.layouts")]

    assert len(pictures) == table.count("<svg") > 1
    fills = {shape.get("fill") for picture in pictures for shape in picture.iter()} - {None}
    assert all(re.fullmatch("#[0-9a-f]{6}", fill) for fill in fills) and len(fills) > 4
    assert any("shared memory" in "".join(picture.itertext()) for picture in pictures)


def test_a_layout_says_which_tiles_have_it_and_what_makes_them(shell):
    printed(shell, COMPILED)

    lines = str(shell.ev("made.layouts")).splitlines()

    assert any("64x64xfloat32" in line and "warp:" in line for line in lines)
    with pytest.raises(BlockValueError, match="layouts: double was compiled for"):
        shell.ev("run").layouts
