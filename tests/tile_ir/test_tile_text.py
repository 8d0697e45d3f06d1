"""The text of functions: printed, parsed, compared."""

import math
import time

import pytest
from equal_functions import equal
from random_functions import random_function

from blocknumba.errors import ParseError
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import DTYPES, TileType, int32
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text  # noqa: E402

COPY = """kernel copy(
  %x: ptr<float32> = pointer(x) {divisibility=16}
  %n: int32 = extent(x, 0) {divisibility=16, minimum=0}
  %step: int32 = stride(x, 0)
) {
  %zero = constant {value=0} : int32
  %index = arange {start=0, size=128} : tile<128xint32>
  %0 = splat %x : tile<128xptr<float32>>
  %1 = offset %0, %index : tile<128xptr<float32>>
  %acc = for %zero, %n, %step, %zero {num_stages=3, unroll=2, warp_specialize=True} : int32 (%i: int32, %acc.1: int32) {
    %2 = load %1 {cache=".cg"} : tile<128xfloat32>
    %3 = lt %acc.1, %n : bool
    if %3 {
      store %1, %2
      yield
    } else {
      yield
    }
    yield %i
  }
  return
}
"""


def function_of(*constants):
    """A function that makes constants: pairs of a value and a dtype's name."""
    builder = Builder(folding=False)
    with builder.region() as (body, _):
        for value, dtype in constants:
            builder.emit(OPS["constant"], value=value, dtype=dtype)
        builder.emit(OPS["return"])
    return Function("f", (), body)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_printed_is_parsed_as_the_same_function(seed):
    fn = random_function(seed, folding=bool(seed % 2))

    again = parse(text(fn))

    assert equal(again, fn)
    assert text(again) == text(fn)


def test_text_that_is_parsed_is_printed_as_it_was():
    assert text(parse(COPY)) == COPY


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 0.1, 1e300, -2.5])
def test_floats_are_written_exactly(value):
    fn = function_of((value, "float64"))

    again = parse(text(fn)).body.ops[0].attrs["value"]

    assert math.copysign(1, again) == math.copysign(1, value)
    assert again == value or math.isnan(again) and math.isnan(value)


def test_the_sign_of_nan_is_written():
    again = parse(text(function_of((math.copysign(math.nan, -1), "float32"))))

    assert math.copysign(1, again.body.ops[0].attrs["value"]) == -1


@pytest.mark.parametrize("message", ["plain", 'quote " and \\', "brace } { # : %x = y", "line\nline",
                                     "α\u2028\t", ""])
def test_strings_are_written_exactly(message):
    builder = Builder(folding=False)
    with builder.region() as (body, _):
        builder.emit(OPS["print"], prefix=message)
        builder.emit(OPS["return"])

    again = parse(text(Function("f", (), body)))

    assert again.body.ops[0].attrs["prefix"] == message


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_back(dtype):
    fn = function_of((True if dtype == "bool" else 1.0 if "float" in dtype else 1, dtype))

    again = parse(text(fn))

    assert again.body.ops[0].result.type == TileType(DTYPES[dtype])


def test_layouts_in_types_are_read_by_the_hook():
    layout = "register:1.2;lane:4..64/dim0:7"
    source = ("kernel f(\n) {\n"
              f"  %0 = arange {{start=0, size=128}} : tile<128xint32, {layout}>\n  return\n}}\n")

    fn = parse(source, LinearLayout.parse)

    assert fn.body.ops[0].result.type.layout == LinearLayout.parse(layout)
    assert text(fn) == source


def test_two_values_of_one_name_are_told_apart():
    builder = Builder(folding=False)
    with builder.region(TileType(int32), TileType(int32), hints=("x", "x")) as (body, (x, y)):
        builder.emit(OPS["sub"], x, y, hint="x")
        builder.emit(OPS["return"])
    fn = Function("f", (Parameter("value", "x"), Parameter("value", "y")), body)

    written = text(fn)

    assert "%x.2 = sub %x, %x.1 : int32" in written
    assert [op.result.hint for op in walk(parse(written).body) if op.results] == ["x"]


def test_names_that_are_not_identifiers_are_quoted_or_cleaned():
    builder = Builder(folding=False)
    with builder.region(TileType(int32), hints=("a b",)) as (body, _):
        builder.emit(OPS["return"])
    fn = Function("<lambda>", (Parameter("value", "x[0]"),), body)

    written = text(fn)

    assert written.startswith('kernel "<lambda>"(\n  %a_b: int32 = value("x[0]")\n')
    assert equal(parse(written), fn)


def test_comments_and_locations_do_not_belong_to_the_function():
    fn = parse(COPY, file="copy.tile")

    with_places = text(fn, locs=True)

    assert "  # copy.tile:6\n" in with_places
    assert equal(parse(with_places), fn)


@pytest.mark.parametrize(("written", "line", "message"), [
    ("%0 = add %a, %n : int32", 4, "%a is not defined"),
    ("%0 = plus %n, %n : int32", 4, "there is no op 'plus'"),
    ("%0 = add %n : int32", 4, "the operands of add are x, y"),
    ("%0 = add %n, %n : int33", 4, "int33 is not a type"),
    ("%0 = add %n, %n", 4, "1 results have 0 types"),
    ("%n = add %n, %n : int32", 4, "%n is defined twice"),
    ("%0 = arange {start=0} : tile<8xint32>", 4, "arange needs the attribute size"),
    ("%0 = neg %n {axis=0} : int32", 4, "neg has no attribute axis"),
    ("%0 = arange {start=0, size=?} : tile<8xint32>", 4, "cannot read '?}'"),
    ("%0 = arange {start=0, size=8} : tile<8xint32, lane:1/dim0:3>", 4, "accepted no layout here"),
    ("add %n, %n : int32 :", 4, "cannot read 'int32 :'"),
    ("%0 = %n", 4, "accepted an op"),
    ("return\n}\nreturn", 6, "accepted } and the end of the text"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_an_error_names_the_line_and_what_is_wrong(written, line, message):
    source = f"kernel f(%n\n) {{\n{written}\n".replace("(%n\n", "(\n  %n: int32 = value(n)\n")

    with pytest.raises(ParseError) as error:
        parse(source)

    assert message in error.value.message
    assert error.value.loc.line == line


def test_a_text_that_stops_is_an_error():
    with pytest.raises(ParseError, match="the text ends within the kernel"):
        parse(COPY[:200].rsplit("\n", 1)[0])


@pytest.mark.parametrize(("before", "after"), [
    ("%i\n", "%acc.1\n"), ('cache=".cg"', 'cache=".ca"'),
    ("lt %acc.1, %n", "lt %n, %acc.1"), ("minimum=0", "minimum=1"), ("kernel copy", "kernel copy2"),
    ("value=0", "value=1"), ("      store %1, %2\n", ""), ("lt", "le"),
])
def test_functions_that_differ_are_not_equal(before, after):
    assert before in COPY

    changed = parse(COPY.replace(before, after))

    assert not equal(changed, parse(COPY))


@pytest.mark.parametrize(("before", "after"), [("%index", "%j"), ("size=128}", "size=128, }"),
                                               ("{cache", "{ cache"), ("  yield", "\n  yield")])
def test_names_and_spaces_do_not_matter_to_equality(before, after):
    assert before in COPY

    changed = parse(COPY.replace(before, after))

    assert equal(changed, parse(COPY))


def test_printing_and_parsing_take_linear_time():
    def seconds(count):
        lines = [f"  %{i + 1} = add %{i}, %x : int32" for i in range(count)]
        source = "\n".join(["kernel f(", "  %x: int32 = value(x)", ") {",
                            "  %0 = neg %x : int32", *lines, "  return", "}", ""])
        taken = []
        for _ in range(3):
            started = time.process_time()
            assert text(parse(source)) == source
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(4000) < 12 * seconds(1000)
