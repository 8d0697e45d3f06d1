"""`bn.evaluate`: a function of tiles called on arrays."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_a_tile_has_the_dtype_and_the_elements_of_its_array(dtype):
    given = np.random.default_rng().integers(0, 2, (2, 1, 4)).astype(
        bn.bfloat16.numpy if dtype == "bfloat16" else dtype)

    result = bn.evaluate(lambda x: x, given)

    assert result.dtype == given.dtype
    np.testing.assert_array_equal(result, given)


def test_arrays_of_any_strides_are_taken():
    given = np.random.default_rng().random((8, 16))[::-2, ::4].T

    np.testing.assert_array_equal(bn.evaluate(bn.sum, given, axis=0), given.sum(axis=0))


def test_constants_and_numbers_come_back_as_python_has_them():
    def parts(x, n):
        return bn.program_id(0), n + 1, ("text", x.shape), bn.max(x)

    result = bn.evaluate(parts, np.float32([3, 4]), 6)

    assert result == (0, 7, ("text", (2,)), 4.0)
    assert type(result[0]) is int and type(result[3]) is np.float32


def test_arrays_are_passed_by_keyword():
    assert bn.evaluate(bn.sum, [1, 2], where=[False, True]) == 2


def test_effects_happen_once(capsys):
    bn.evaluate(lambda x: bn.static_print("shape", x.shape), [1, 2])

    assert capsys.readouterr().out == "shape (2,)\n"


@pytest.mark.parametrize("call, message", [
    (lambda: bn.evaluate(3, [1]), "evaluate: given 3, accepted a function"),
    (lambda: bn.evaluate(bn.sum, [1, 2, 3]), "evaluate: argument 0: given an array of shape (3,), "
                                             "accepted extents that are powers of two"),
    (lambda: bn.evaluate(bn.sum, [1], where=np.ones((0, 3), bool)), "evaluate: where: given an "
     "array of shape (0, 3), accepted extents that are powers of two"),
    (lambda: bn.evaluate(lambda: bn.span(0, 4)),
     "evaluate: the function returns a span, accepted tiles, numbers and tuples of them"),
    (lambda: bn.evaluate(bn.sum, {}), "evaluate: argument 0: given a dict, accepted NumPy's "
     "arrays, lists, numbers and other constants"),
    (lambda: bn.evaluate(bn.sum, [[1, 2], [3]]),
     "evaluate: argument 0: given [[1, 2], [3]], accepted arrays of numbers and bools"),
    (lambda: bn.evaluate(bn.sum, x=np.array(["a"])),
     "evaluate: x: given an array of shape (1,) of <U1, accepted arrays of numbers and bools"),
    (lambda: bn.evaluate(bn.topk, [1, 2], 3), "topk: k must be a power of two up to 2, got 3"),
])
def test_a_mistake_is_one_error(call, message):
    with pytest.raises(BlockTypeError) as caught:
        call()

    assert str(caught.value).splitlines()[0] == message


def test_an_error_ends_where_the_users_line_is():
    with pytest.raises(BlockTypeError) as caught:
        bn.evaluate(lambda x: bn.sum(x, axis="rows"), [1, 2])

    assert 'bn.sum(x, axis="rows")' in str(caught.value)
    assert "blocknumba: evaluate" not in str(caught.value)


def test_an_array_of_another_library_is_an_error():
    class Theirs:
        __cuda_array_interface__ = {}

    with pytest.raises(BlockTypeError, match="argument 0: given .*, accepted NumPy's arrays"):
        bn.evaluate(bn.sum, Theirs())
