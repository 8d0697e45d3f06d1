"""Pictures of layouts, and the command that draws them."""

import argparse
import xml.etree.ElementTree as ElementTree

import pytest

from blocknumba.errors import BlockValueError
from blocknumba.gpu_layout.layouts import render
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import blocked


def run(*arguments):
    parser = argparse.ArgumentParser()
    render.add_arguments(parser)
    return render.run(parser.parse_args(arguments))


def test_a_cell_says_warp_lane_and_register(capsys):
    status = run("blocked", "--shape", "4x16", "--order", "1,0", "--vector", "2", "--warps", "1")

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[1] == "2 registers, 32 lanes, 1 warps, 1 of each element"
    assert lines[4].split()[:4] == ["0.0:0", "0.0:1", "0.1:0", "0.1:1"]
    assert len(lines) == 4 + 4


def test_copies_are_marked(capsys):
    run("blocked", "--shape", "16", "--warps", "2")

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("4 of each element")
    assert lines[4].split()[0] == "0.0:0+"


def test_the_text_of_a_layout_is_drawn(capsys):
    run("offset:1.2.5.10/dim1:2;dim0:2")

    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[3:]] == [
        ["0", "1", "2", "3"],
        ["5", "4", "7", "6"],
        ["10", "11", "8", "9"],
        ["15", "14", "13", "12"],
    ]


def test_a_big_tile_is_cut(capsys):
    run("blocked", "--shape", "64x64", "--limit", "8")

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 + 8 + 1
    assert lines[4].endswith(" ...") and lines[-1] == "..."


def test_an_svg_has_a_cell_for_every_element(tmp_path, capsys):
    picture = tmp_path / "layout.svg"

    run("blocked", "--shape", "8x16", "--svg", str(picture))

    root = ElementTree.fromstring(picture.read_text())
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 8 * 16
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "layout: given 'nonsense', accepted"),
        (["blocked", "--shape", "3x4"], "given shape 3x4, vector 1 and 4 warps, accepted powers"),
        (["blocked", "--shape", "axb"], "--shape: given 'axb', accepted ints separated by 'x'"),
        (["blocked", "--order", "0"], "--order: given 0, accepted the axes of 32x32"),
    ],
)
def test_an_argument_that_is_no_layout_is_refused(arguments, message):
    with pytest.raises(BlockValueError, match=message):
        run(*arguments)


def test_text_of_a_scalar_layout_has_one_cell():
    assert "0.0:0" in render.text(LinearLayout.parse("register:;lane:0.0.0.0.0;warp:/"))
    assert render.text(blocked((1,), (0,), 1, 1)).count(":0") >= 1
