"""LinearLayout: algebra and text."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout

I = LinearLayout.identity
ROW = I("register", "dim0", 2) * I("lane", "dim0", 3) * I("warp", "dim0", 1)
SQUARE = (
    I("register", "dim1", 1) * I("lane", "dim1", 2) * I("lane", "dim0", 2) * I("warp", "dim0", 1)
)
COPIES = I("register", "dim0", 2) * LinearLayout.zeros("lane", 3)
SMALL = (ROW, SQUARE, COPIES, LinearLayout((), (), ()))


@st.composite
def layouts(draw):
    ins = tuple((name, draw(st.integers(0, 4))) for name in ("register", "lane", "warp"))
    outs = tuple((name, draw(st.integers(0, 4))) for name in ("dim1", "dim0"))
    size = sum(bits for _, bits in outs)
    count = sum(bits for _, bits in ins)
    columns = draw(st.lists(st.integers(0, (1 << size) - 1), min_size=count, max_size=count))
    return LinearLayout(ins, outs, tuple(columns))


def points(layout):
    names = [name for name, _ in layout.ins]
    for values in itertools.product(*(range(1 << bits) for _, bits in layout.ins)):
        yield dict(zip(names, values))


@given(layouts())
def test_the_text_of_a_layout_parses_back_exactly(layout):
    text = str(layout)

    assert LinearLayout.parse(text) == layout
    assert not set(text) & set(" ,<>(){}[]\n")


def test_a_doubling_run_of_columns_is_written_short():
    assert str(ROW) == "register:1.2;lane:4..16;warp:32/dim0:6"


@pytest.mark.parametrize(
    "text", ["", "lane:1", "lane:2..9/dim0:4", "lane:x/dim0:1", "lane:..4/dim0:3"]
)
def test_text_that_is_no_layout_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="accepted 'register:1.2;lane:4..64;warp:128.256/dim0:9'"):
        LinearLayout.parse(text)


@pytest.mark.parametrize("layout", SMALL, ids=str)
def test_equal_layouts_are_equal_and_hash_alike_however_they_were_made(layout):
    again = LinearLayout(layout.ins, layout.outs, layout.columns)

    assert again == layout and hash(again) == hash(layout)
    assert len({again, layout}) == 1


@pytest.mark.parametrize("layout", SMALL, ids=str)
def test_the_inverse_brings_every_element_home(layout):
    there_and_back = layout.then_inverse(layout)

    for point in points(layout):
        assert layout(**there_and_back(**point)) == layout(**point)


def test_a_product_puts_the_right_factor_above_the_left():
    for point in points(SQUARE):
        column = point["register"] | (point["lane"] & 3) << 1
        row = point["lane"] >> 2 | point["warp"] << 2
        assert SQUARE(**point) == {"dim1": column, "dim0": row}


@given(layouts())
def test_with_outs_renames_places_and_not_images(layout):
    moved = layout.with_outs(tuple(reversed(layout.outs)))

    for point in points(layout):
        assert moved(**point) == layout(**point)


@given(layouts())
def test_injective_and_surjective_are_what_they_say(layout):
    images = [tuple(layout(**point).values()) for point in points(layout)]

    assert layout.is_injective == (len(set(images)) == len(images))
    assert layout.is_surjective == (len(set(images)) == 1 << layout.out_bits)


def test_a_name_that_is_no_input_is_an_error():
    with pytest.raises(KeyError):
        ROW(thread=1)
