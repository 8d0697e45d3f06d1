"""`python -m blocknumba draw`: kernels at every stage, as pictures; those of the documents too."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from blocknumba.__main__ import main
from blocknumba.dispatch.cli.command_line import kernel_of, values_by_name
from blocknumba.dispatch.cli.draw import toolchain
from blocknumba.dispatch.cli.stages import Stages
from blocknumba.dispatch.compile.ahead import specialized
from blocknumba.errors import BlockValueError

pytest.importorskip("cuda.bindings.nvvm")

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "compiler"
SVG = "{http://www.w3.org/2000/svg}"
# The columns that no compiler of NVIDIA's has a part in.
OURS = ("typed", "optimised", "laid_out", "memory")
HALF = "f16[:,::1]:16"
SOFTMAX = ("softmax.py:softmax", "f32[:,::1]:16, f32[:,::1]:16", "BLOCK=1024")
MATMUL = ("matmul.py:matmul", f"{HALF}, {HALF}, {HALF}", "BM=128", "BN=256", "BK=64")
ON_PAGES = {"softmax.svg": SOFTMAX, "matmul.svg": MATMUL}


def draw(path, kernel, signature, *constants, target="sm_90a", options=()):
    given = [flag for constant in constants for flag in ("--constant", constant)]
    given += [flag for option in options for flag in ("--option", option)]
    status = main(["draw", str(ROOT / "examples" / kernel), "--signature", signature, "--target",
                   target, *given, "-o", str(path)])
    return status, path.read_text()


def stages(kernel, signature, *constants, target="sm_90a"):
    kernel = kernel_of(str(ROOT / "examples" / kernel), "draw")
    return Stages.of(kernel, *specialized(kernel, signature,
                                          values_by_name(list(constants), "draw"), target,
                                          {"lineinfo": True}))


def columns(picture):
    """The text of each column, by its name."""
    groups = {group.get("id"): group for group in ElementTree.fromstring(picture).iter(f"{SVG}g")}
    return {name: ["".join(text.itertext()) for text in group.iter(f"{SVG}text")]
            for name, group in groups.items() if name}


@pytest.mark.parametrize("name", ON_PAGES)
def test_a_picture_of_the_pages_is_what_the_command_draws(name, tmp_path, pytestconfig):
    _, drawn = draw(tmp_path / name, *ON_PAGES[name])
    if pytestconfig.getoption("--bless"):
        (PAGES / name).write_text(drawn)
    kept = (PAGES / name).read_text()

    if toolchain(stages(*ON_PAGES[name])) in kept:
        assert drawn == kept, "look at the new picture: pytest tests/dispatch/test_draw.py --bless"
    else:  # another release of NVIDIA's compiler may use other registers
        assert {column: columns(drawn)[column] for column in OURS} == {
            column: columns(kept)[column] for column in OURS}


def test_the_page_says_how_its_pictures_are_drawn():
    page = (PAGES / "README.md").read_text()

    for name, (kernel, signature, *constants) in ON_PAGES.items():
        given = " ".join(f"--constant {constant}" for constant in constants)
        assert f"python -m blocknumba draw examples/{kernel} --target sm_90a {given} \\\n" \
               f'    --signature "{signature}" -o {name}' in page
        assert f"({name})" in page


def test_a_picture_is_the_same_every_time(tmp_path):
    assert draw(tmp_path / "a.svg", *SOFTMAX) == draw(tmp_path / "b.svg", *SOFTMAX)


def test_nothing_of_the_machine_is_in_a_picture(tmp_path):
    status, picture = draw(tmp_path / "softmax.svg", *SOFTMAX)

    assert status == 0
    assert str(ROOT) not in picture and str(tmp_path) not in picture


def test_each_stage_has_a_column(tmp_path):
    _, picture = draw(tmp_path / "softmax.svg", *SOFTMAX)
    found = columns(picture)

    assert list(found) == ["source", "typed", "optimised", "laid_out", "memory", "machine"]
    assert "    row = bn.load(x.at[i, columns], other=float(\"-inf\")).to(bn.float32)" in \
        found["source"]
    assert any("= load" in row for row in found["typed"])
    assert any("partial_reduce" in row for row in found["laid_out"])
    assert any(row.startswith("ld.global.v4") for row in found["machine"])


def test_a_kernel_without_shared_memory_has_no_column_of_it(tmp_path):
    vector = "f32[::1]:16"
    _, picture = draw(tmp_path / "add.svg", "vector_add.py:add", f"{vector}, {vector}, {vector}",
                      "BLOCK=1024")

    assert "memory" not in columns(picture)


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
def test_the_pipeline_of_other_targets_is_drawn(tmp_path, target):
    _, picture = draw(tmp_path / "matmul.svg", "matmul.py:matmul", MATMUL[1], "BM=128", "BN=128",
                      "BK=64", target=target)

    assert {"slot 0", "fill 0", "read 0"} <= set(columns(picture)["machine"])


def test_rows_stand_for_every_op_but_constants_and_yields_of_nothing():
    of = stages(*MATMUL)

    for fn in (of.typed, of.optimised, of.laid_out):
        shown = [op for row in of.rows(fn) for op in row.ops]
        assert len(shown) == len(set(shown))
        hidden = set(_all(fn.body)) - set(shown)
        assert {op.name for op in hidden} <= {"constant"}


def _all(region):
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from _all(inner)


def test_a_pass_says_what_it_removed_and_added():
    runs = {run.name: run for run in stages(*MATMUL).passes}

    assert ("dot", 1) in runs["map_wgmma"].gone and ("wgmma", 1) in runs["map_wgmma"].made
    assert not runs["map_dots"].changed


def test_ops_of_inlined_functions_are_those_of_the_line_that_calls(tmp_path):
    file = tmp_path / "inlined.py"
    file.write_text("import blocknumba as bn\n\n\ndef twice(x):\n    return x + x\n\n\n"
                    "@bn.jit\ndef f(x, N: bn.constexpr):\n    i = bn.span(0, N)\n"
                    "    x[i] = twice(x[i])\n")
    of = stages(str(file) + ":f", "f32[::1]", "N=128")

    assert {row.line for row in of.rows(of.typed) if "add" in row.text} == {11}
    assert set(of.ptx_by_line) == {11}


def test_every_machine_instruction_is_of_one_kind():
    of = stages(*SOFTMAX)
    listed = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", of.compiled.asm["sass"], re.MULTILINE)

    assert sum(counts.total() for counts in of.sass_by_kind.values()) == len(listed)
    assert of.sass_by_kind["shuffles"] == {"SHFL": 10}


def test_a_kernel_whose_source_is_in_no_file_is_refused(tmp_path):
    file = tmp_path / "made.py"
    file.write_text("import blocknumba as bn\nexec('def f(x):\\n    x[0] = 1')\nf = bn.jit(f)\n")

    with pytest.raises(BlockValueError, match="draw: the source of f is in no file"):
        stages(f"{file}:f", "f32[::1]")


def test_a_kernel_that_is_not_there_is_one_message(capsys):
    status = main(["draw", str(ROOT / "examples/softmax.py:nothing"), "--signature", "f32[:]",
                   "--target", "sm_90a"])

    assert status == 1
    assert "softmax.py has no kernel 'nothing', accepted softmax" in capsys.readouterr().err
