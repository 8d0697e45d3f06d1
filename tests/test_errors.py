"""What a user sees of an error."""

import linecache
import pickle

from blocknumba.errors import UNKNOWN, BlockTypeError, Loc, require

FILE = "<kernel>"


def shown(source, **place):
    """The text of an error in a line of source."""
    linecache.cache[FILE] = (len(source), None, [source + "\n"], FILE)
    return str(BlockTypeError("dot: no", loc=Loc(FILE, 1, function="k", **place), hint="yes"))


def test_an_error_shows_the_line_with_carets_and_the_hint():
    assert shown("    y = dot(a)", column=8, end_column=14) == (
        "dot: no\n  <kernel>, line 1, in k\n    y = dot(a)\n        ^^^^^^\n  hint: yes")


def test_carets_count_characters_where_columns_count_bytes():
    line = "    ä = é + dot(a)"
    start = line.encode().index(b"dot")

    assert shown(line, column=start, end_column=start + 6).split("\n")[3] == "            ^^^^^^"


def test_a_line_without_columns_is_marked_whole():
    assert shown("  y = x").split("\n")[3] == "    ^^^^^"


def test_every_caller_is_shown():
    linecache.cache[FILE] = (3, None, ["inner()\n", "outer()\n"], FILE)
    place = Loc(FILE, 1, function="f", caller=Loc(FILE, 2, function="g"))

    lines = str(BlockTypeError("no", loc=place)).split("\n")

    assert lines[1] == "  <kernel>, line 1, in f"
    assert lines[4] == "  called from <kernel>, line 2, in g"


def test_the_first_place_stays():
    error = BlockTypeError("no").at(Loc("a", 1)).at(Loc("b", 2))

    assert error.loc == Loc("a", 1)


def test_require_formats_what_was_given():
    try:
        require(False, "op: given {}, accepted {}", 1, 2, hint="h")
    except BlockTypeError as error:
        assert (error.message, error.hint) == ("op: given 1, accepted 2", "h")
    else:
        raise AssertionError("nothing was raised")


def test_an_error_without_a_place_has_none_in_another_process_either():
    error = pickle.loads(pickle.dumps(BlockTypeError("add: given a list", hint="pass an array")))

    assert str(error) == "add: given a list\n  hint: pass an array"
    assert error.loc is UNKNOWN
