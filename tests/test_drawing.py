"""SVG pictures: the canvas, its sizes, and that texts do not cover each other."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from blocknumba.drawing import CHARACTER, SIZE, Drawing, colour, shortened, text_width

SVG = "{http://www.w3.org/2000/svg}"
DOCS = Path(__file__).resolve().parent.parent / "docs"
# those of performance are matplotlib's
PICTURES = [path for path in sorted(DOCS.rglob("*.svg")) if path.parent.name != "performance"]
_MOVED = re.compile(r"translate\((\S+) (\S+)\)")


def parsed(drawing):
    return ElementTree.fromstring(drawing.svg("a title"))


def texts(element, x=0.0, y=0.0):
    """(left, right, base line, text) of every text below an element, in the picture's pixels."""
    moved = _MOVED.match(element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    for child in element:
        if child.tag == f"{SVG}text":
            width = text_width(child.text or "", int(child.get("font-size", SIZE)))
            before = {"start": 0.0, "middle": 0.5, "end": 1.0}[child.get("text-anchor", "start")]
            left = x + float(child.get("x")) - before * width
            yield left, left + width, y + float(child.get("y")), child.text
        else:
            yield from texts(child, x, y)


def test_a_canvas_is_as_large_as_what_is_on_it():
    drawing = Drawing()

    drawing.rectangle(10, 20, 30, 40, "#ffffff")
    assert (drawing.width, drawing.height) == (40, 60)

    drawing.line(0, 0, 50, 5, "#000000")
    assert (drawing.width, drawing.height) == (50, 60)

    drawing.text(0, 10, "0123456789")
    assert drawing.width == pytest.approx(10 * SIZE * CHARACTER)


def test_a_placed_drawing_is_moved_and_named():
    inner, outer = Drawing(), Drawing()
    inner.rectangle(0, 0, 10, 10, "#ffffff")

    outer.place(inner, 5, 7.25, "inner")

    (group,) = parsed(outer).iter(f"{SVG}g")
    assert (group.get("id"), group.get("transform")) == ("inner", "translate(5 7.2)")
    assert (outer.width, outer.height) == (15, 17.25)


def test_text_of_any_characters_is_shown_as_it_is():
    drawing = Drawing()
    drawing.text(0, 10, 'x < y & "z" > \'w\'')

    (shown,) = parsed(drawing).iter(f"{SVG}text")
    assert shown.text == 'x < y & "z" > \'w\''


def test_a_title_is_for_who_does_not_see_the_picture():
    assert parsed(Drawing()).find(f"{SVG}title").text == "a title"


@pytest.mark.parametrize(("hue", "expected"), [(0, "#ff0000"), (120, "#00ff00"), (600, "#0000ff")])
def test_colours_are_plain_numbers(hue, expected):
    assert colour(hue, 1, 0.5) == expected


@pytest.mark.parametrize(("length", "expected"), [(5, "abcde"), (4, "abc…"), (1, "…")])
def test_a_long_text_ends_in_an_ellipsis(length, expected):
    assert shortened("abcde", length) == expected


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_texts_of_a_picture_of_the_pages_do_not_cover_each_other(picture):
    root = ElementTree.fromstring(picture.read_text())
    by_line = {}
    for left, right, base, text in texts(root):
        by_line.setdefault(base, []).append((left, right, text))

    assert len(by_line) > 20
    for found in by_line.values():
        for (_, right, text), (left, _, following) in itertools.pairwise(sorted(found)):
            assert right <= left, f"{text!r} covers {following!r}"
    width = float(root.get("width"))
    assert max(right for found in by_line.values() for _, right, _ in found) <= width
