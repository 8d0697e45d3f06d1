"""Compile options and the settings of the environment."""

import pytest

from blocknumba.dispatch.compile.options import Options
from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.settings import Settings, read_settings, warn_of_unknown


@pytest.mark.parametrize("options, error, message", [
    ({"num_warps": 3}, BlockValueError, "num_warps: given 3, accepted a power of two up to 32"),
    ({"num_warps": 64}, BlockValueError, "num_warps: given 64, accepted 1 to 32"),
    ({"num_warps": 0}, BlockValueError, "num_warps: given 0"),
    ({"num_warps": 4.0}, BlockTypeError, "num_warps: given 4.0, accepted an int"),
    ({"num_warps": True}, BlockTypeError, "num_warps: given True"),
    ({"num_stages": 0}, BlockValueError, "num_stages: given 0, accepted 1 to 16"),
    ({"num_ctas": 3}, BlockValueError, "num_ctas: given 3"),
    ({"maxnreg": 256}, BlockValueError, "maxnreg: given 256, accepted 16 to 255"),
    ({"debug": 1}, BlockTypeError, "debug: given 1, accepted True or False"),
    ({"fastmath": "yes"}, BlockTypeError, "fastmath: given 'yes'")])
def test_an_option_out_of_range_is_an_error(options, error, message):
    with pytest.raises(error, match=message):
        Options(**options)


def test_overriding_leaves_the_other_options():
    options = Options(num_warps=8, debug=True).override({"num_warps": 2})

    assert options == Options(num_warps=2, debug=True)


def test_equal_options_share_code_and_others_do_not():
    assert hash(Options(num_warps=None)) == hash(Options())
    assert Options(num_stages=2) != Options()


@pytest.mark.parametrize("text, expected", [
    ("1", True), ("true", True), ("On", True), ("0", False), ("", False), ("no", False)])
def test_the_environment_can_ask_for_the_interpreter(text, expected):
    assert read_settings({"BLOCKNUMBA_INTERPRET": text}) == Settings(interpret=expected)


def test_an_empty_environment_asks_for_nothing():
    assert read_settings({}) == Settings()


def test_a_setting_that_is_neither_yes_nor_no_is_an_error():
    with pytest.raises(BlockValueError, match="BLOCKNUMBA_INTERPRET: given 'maybe', accepted 0"):
        read_settings({"BLOCKNUMBA_INTERPRET": "maybe"})


@pytest.mark.parametrize("name,advice", [
    ("BLOCKNUMBA_INTERPRT", "did you mean BLOCKNUMBA_INTERPRET?"),
    ("BLOCKNUMBA_ALWAYS_COMPILE", "accepted BLOCKNUMBA_INTERPRET, ")])
def test_a_variable_that_looks_like_one_of_ours_is_warned_of(name, advice):
    with pytest.warns(UserWarning, match=f"{name} is not an environment variable .*{advice}"):
        warn_of_unknown({name: "1", "BLOCKNUMBA_TIME": "1", "HOME": "/"})
