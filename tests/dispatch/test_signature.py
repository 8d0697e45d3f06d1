"""Signatures of kernels, and calls that do not fit them."""

import ml_dtypes
import numpy as np
import pytest

from blocknumba.dispatch.launch.signature import read_signature
from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir import types


class constexpr:
    """Stands for bn.constexpr, which is recognised by its name."""


def add(x, y, n=5, *, BLOCK: constexpr, STEP: "bn.constexpr" = 2, num_stages: constexpr = 3):
    """A kernel."""


SIGNATURE = read_signature(add)


def test_constants_are_known_by_their_annotation():
    constants = [formal.name for formal in SIGNATURE.formals if formal.is_constant]

    assert constants == ["BLOCK", "STEP", "num_stages"]


@pytest.mark.parametrize("annotation, dtype", [
    (types.float16, types.float16), (np.float32, types.float32), ("bn.float64", types.float64),
    ("int8", types.int8), (np.dtype("u2"), types.uint16), (ml_dtypes.bfloat16, types.bfloat16),
    (np.bool_, types.bool_), ("np.bool_", types.bool_), (int, None), ("int", None), (bool, None),
    (float, types.float64), ("float", types.float64), (np.ndarray, None), ("list[int]", None), ("", None)])
def test_a_dtype_as_annotation_declares_the_dtype_of_a_number(annotation, dtype):
    def kernel(x):
        """A kernel."""
    kernel.__annotations__["x"] = annotation

    assert read_signature(kernel).formals[0].dtype == dtype


def test_arguments_are_bound_by_position_and_by_name_and_by_default():
    bound, options = SIGNATURE.bind((1, 2), {"BLOCK": 64, "num_warps": 8})

    assert bound == {"x": 1, "y": 2, "n": 5, "BLOCK": 64, "STEP": 2, "num_stages": 3}
    assert options == {"num_warps": 8}


def test_bound_arguments_are_in_the_order_of_the_signature():
    bound, _ = SIGNATURE.bind((), {"BLOCK": 1, "y": 2, "x": 3})

    assert list(bound) == ["x", "y", "n", "BLOCK", "STEP", "num_stages"]


def test_a_keyword_can_be_a_parameter_and_an_option():
    bound, options = SIGNATURE.bind((1, 2), {"BLOCK": 64, "num_stages": 4})

    assert bound["num_stages"] == 4
    assert options == {"num_stages": 4}


@pytest.mark.parametrize("positional, keywords, message", [
    ((), {}, "add: missing x, y, BLOCK"),
    ((1, 2, 3, 4), {}, r"add: given 4 positional arguments, accepted 3 \(x, y, n\)"),
    ((1, 2), {"x": 1, "BLOCK": 2}, "add: given x twice, by position and by name"),
    ((1, 2), {"BLOK": 2}, "(?s)add: given BLOK=.*hint: did you mean BLOCK"),
    ((1, 2), {"BLOCK": 1, "num_warp": 2}, "(?s)add: given num_warp=.*did you mean num_warps")])
def test_a_call_that_does_not_fit_is_an_error_that_names_the_kernel(positional, keywords, message):
    with pytest.raises(BlockTypeError, match=message):
        SIGNATURE.bind(positional, keywords)


def test_parameters_of_any_name_are_an_error():
    def kernel(x, **rest):
        """Not a kernel."""

    with pytest.raises(BlockTypeError, match=r"kernel: given a parameter \*\*rest"):
        read_signature(kernel)


def test_one_parameter_may_take_all_that_are_left():
    def kernel(x, *rest, n=1):
        """A kernel."""

    signature = read_signature(kernel)

    assert signature.rest == "rest" and signature.positional_names == ("x",)
    assert signature.bind((1, 2, 3), {"n": 4})[0] == {"x": 1, "rest": (2, 3), "n": 4}
    assert signature.bind((1,), {})[0] == {"x": 1, "rest": (), "n": 1}


def test_a_parameter_named_stream_is_an_error():
    def kernel(x, stream):
        """Not a kernel."""

    with pytest.raises(BlockTypeError, match="kernel: given a parameter named stream"):
        read_signature(kernel)


def test_numbers_that_remainders_are_taken_by_are_known():
    def wrap(x, n, M, N, K, H, other):
        rows = (n * 8 + other) % M
        columns = x % (N + 1)
        n %= K
        return rows, columns, n, 5 % other, x % H

    divisors = {formal.name for formal in read_signature(wrap).formals if formal.is_divisor}

    assert divisors == {"M", "K", "H", "other"}
