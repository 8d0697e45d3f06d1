"""Mistakes in kernels: one message each, with the place in the user's source, and a hint."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest
from asserting import asserts_at_run_time, asserts_constants, asserts_plainly
from launching import kernel_of, op_names

import blocknumba as bn
from blocknumba.errors import (
    BlockAssertionError,
    BlockError,
    BlockNameError,
    BlockTypeError,
    BlockValueError,
    UnsupportedError,
)
from blocknumba.typing.context import Options

A_LIST, AN_ARRAY = [1, 2], np.zeros(3)


def helper(a, b=2):
    return a + b


def outer(n):
    return inner(n, 8)


def inner(rows, columns):
    return bn.zeros((rows, columns))


def error_of(function, **constants) -> BlockError:
    """The error of building a kernel of (x, y, n): a vector, a matrix and an int."""
    with pytest.raises(BlockError) as caught:
        kernel_of(function, x=np.zeros(8, np.float32), y=np.zeros((8, 8), np.float32), n=3,
                  constants=constants)
    return caught.value


def check(function, expected: str, kind: type[BlockError] = BlockTypeError, **constants) -> None:
    """The whole text of an error; {n} is the line n lines below the first of the function."""
    error = error_of(function, **constants)
    first = function.__code__.co_firstlineno
    for below in range(20):
        expected = expected.replace(f"line +{below},", f"line {first + below},")
        expected = expected.replace(f"line +{below})", f"line {first + below})")
    assert str(error) == dedent(expected).strip()
    assert type(error) is kind


def test_an_extent_that_is_no_power_of_two():
    def kernel(x, y, n):
        tile = bn.zeros((100,), bn.float32)

    check(kernel, """
        zeros: every extent must be a power of two, got (100,)
          test_errors.py, line +1, in kernel
            tile = bn.zeros((100,), bn.float32)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          hint: the next valid extent is 128; mask the rest
        """)


def test_a_run_time_size():
    def kernel(x, y, n):
        tile = bn.arange(0, n)

    check(kernel, """
        arange: stop must be a compile-time constant, got an int of run time
          test_errors.py, line +1, in kernel
            tile = bn.arange(0, n)
                   ^^^^^^^^^^^^^^^
          hint: pass it as a bn.constexpr argument
        """)


def test_shapes_that_do_not_broadcast():
    def kernel(x, y, n):
        tile = (
            bn.zeros((16,))
            + bn.zeros((32,)))

    check(kernel, """
        +: shapes (16,) and (32,) do not broadcast together
          test_errors.py, line +2, in kernel
            bn.zeros((16,))
            ^^^^^^^^^^^^^^^
          hint: add an axis to one of them: x[:, None] or x[None, :]
        """)


def test_an_unknown_keyword():
    def kernel(x, y, n):
        tile = bn.load(x, maks=3)

    check(kernel, """
        load: got an unexpected keyword argument 'maks', accepted load(pointer, mask=None, \
other=None, boundary_check=(), padding_option='', cache_modifier='', eviction_policy='', volatile=False)
          test_errors.py, line +1, in kernel
            tile = bn.load(x, maks=3)
                   ^^^^^^^^^^^^^^^^^^
          hint: did you mean mask?
        """)


def test_the_truth_of_a_tile():
    def kernel(x, y, n):
        tile = bn.arange(0, 16)
        if tile > 3:
            n = 2

    check(kernel, """
        a condition: given tile<16xbool>, accepted a scalar
          test_errors.py, line +2, in kernel
            if tile > 3:
               ^^^^^^^^
          hint: reduce it first, with bn.any or bn.all, or use bn.where; & | ~ work on tiles, \
and or not and a < b < c do not
        """)


def test_a_variable_that_changes_its_type_in_a_loop():
    def kernel(x, y, n):
        total = 0.0
        for i in range(n):
            total = total + bn.arange(0, 8)
        x[0] = bn.sum(total)

    check(kernel, """
        variable 'total': given a float of run time (line +1) on one path and tile<8xfloat32> (line +3) on \
another, accepted one type
          test_errors.py, line +3, in kernel
            total = total + bn.arange(0, 8)
            ^^^^^
          hint: start with a tile: bn.zeros((8,), bn.float32)
        """)


def test_arms_of_different_types():
    def kernel(x, y, n):
        if n > 3:
            tile = bn.zeros((8,))
        else:
            tile = None
        x[bn.span(0, 8)] = tile

    check(kernel, """
        variable 'tile': given tile<8xfloat32> (line +2) on one path and None (line +4) on \
another, accepted one type
          test_errors.py, line +4, in kernel
            tile = None
                   ^^^^
          hint: start with a tile: bn.zeros((8,), bn.float32)
        """)


def test_a_helper_that_returns_nothing_on_one_path():
    def sign(a):
        if a > 0:
            return 1

    def kernel(x, y, n, SIGN):
        x[0] = SIGN(n)

    error = error_of(kernel, SIGN=sign)
    assert error.message.startswith("the value that sign returns: given 1 (line ")
    assert "and None (line" in error.message
    assert "called from test_errors.py" in str(error)


def test_a_name_that_is_not_defined():
    def kernel(x, y, n):
        x[0] = undefined_name(n)  # noqa: F821

    check(kernel, """
        name 'undefined_name' is not defined
          test_errors.py, line +1, in kernel
            x[0] = undefined_name(n)  # noqa: F821
                   ^^^^^^^^^^^^^^
        """, BlockNameError)


def test_a_name_that_is_used_too_early():
    def kernel(x, y, n):
        x[0] = later
        later = 3

    check(kernel, """
        name 'later' is used before it is assigned
          test_errors.py, line +1, in kernel
            x[0] = later
                   ^^^^^
        """, BlockNameError)


def test_an_error_in_a_helper_shows_how_it_was_reached():
    def kernel(x, y, n):
        x[0] = bn.sum(outer(n))

    first = outer.__code__.co_firstlineno
    check(kernel, f"""
        zeros: shape must be compile-time ints, got (an int of run time, 8)
          test_errors.py, line {inner.__code__.co_firstlineno + 1}, in inner
            return bn.zeros((rows, columns))
                   ^^^^^^^^^^^^^^^^^^^^^^^^^
          called from test_errors.py, line {first + 1}, in outer
            return inner(n, 8)
                   ^^^^^^^^^^^
          called from test_errors.py, line +1, in kernel
            x[0] = bn.sum(outer(n))
                          ^^^^^^^^
          hint: pass its extents as bn.constexpr arguments
        """)


def test_an_error_in_a_library_function_shows_the_call():
    def kernel(x, y, n):
        tile = bn.softmax(x)

    check(kernel, """
        softmax: given an array, accepted tiles and numbers
          test_errors.py, line +1, in kernel
            tile = bn.softmax(x)
                   ^^^^^^^^^^^^^
          hint: load elements first: x[bn.span(0, SIZE)]
        """)


def test_a_static_assertion():
    def kernel(x, y, n, B):
        bn.static_assert(B % 2 == 0, f"B must be even, not {B}")

    check(kernel, """
        static_assert: B must be even, not 3
          test_errors.py, line +1, in kernel
            bn.static_assert(B % 2 == 0, f"B must be even, not {B}")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """, BlockAssertionError, B=3)


@pytest.mark.parametrize("kernel,message", [
    (asserts_constants, "assert: B must be even"),
    (asserts_plainly, "assert: the condition does not hold")])
def test_an_assert_of_constants(kernel, message):
    error = error_of(kernel, B=3)

    assert error.message == message
    assert type(error) is BlockAssertionError
    assert error.loc.line == kernel.__code__.co_firstlineno + 1
    assert "assert" not in op_names(kernel_of(kernel, x=np.zeros(8), y=0, n=3, constants={"B": 4}))


def test_an_assert_at_run_time_is_checked_with_debug_and_nests_nothing():
    arguments = {"x": np.zeros(8, np.float32), "y": 0, "n": 3, "constants": {"B": 4}}

    checked = op_names(kernel_of(asserts_at_run_time, Options(debug=True), **arguments))
    unchecked = op_names(kernel_of(asserts_at_run_time, **arguments))

    assert checked.count("assert") == 3 and "if" not in checked
    assert unchecked.count("assert") == 0


def test_a_loop_that_never_ends():
    def kernel(x, y, n):
        while True:
            n += 1

    error = error_of(kernel)
    assert error.message == "this loop never ends"
    assert type(error) is UnsupportedError
    assert error.loc.line == kernel.__code__.co_firstlineno + 1


def lists(x, y, n):
    tile = [1, n]
    tile += [2]


def dicts(x, y, n):
    tile = {"a": n}


def comprehensions(x, y, n):
    tile = [i for i in range(n)]


def tries(x, y, n):
    try:
        n = 3
    except ValueError:
        n = 4


def withs(x, y, n):
    with open("file"):
        n = 3


def generators(x, y, n):
    yield n


def imports(x, y, n):
    import math  # noqa: F401


def raises(x, y, n):
    if n > 3:
        raise ValueError("no")


def sets_attribute(x, y, n):
    x.field = 3


def sets_global(x, y, n):
    global A_LIST
    A_LIST = 3


def reads_list(x, y, n):
    x[0] = A_LIST[n]


def reads_array(x, y, n):
    x[0] = AN_ARRAY[0]


def unknown_function(x, y, n):
    x[0] = np.linalg.det(n)


def double_star(x, y, n):
    x[0] = helper(**{"a": n})


def chosen_function(x, y, n):
    f = helper if n > 3 else outer
    x[0] = f(n)


def returns_a_value(x, y, n):
    return n


def unknown_attribute(x, y, n):
    x[0] = bn.arange(0, 16).ceils


def method_of_an_array(x, y, n):
    x[0] = x.sum(0)


def wrong_shape_stored(x, y, n):
    y[bn.span(0, 8), bn.span(0, 8)] = bn.zeros((8, 4)).trans() * bn.zeros((4, 8)).trans()


def tile_stored_to_element(x, y, n):
    x[0] = bn.zeros((8,))


def too_many_indices(x, y, n):
    x[0, 1] = 1.0


def too_few_indices(x, y, n):
    y[bn.span(0, 16)] = 1.0


def slice_of_unknown_length(x, y, n):
    x[n : n + n] = 1.0


def tile_changed_in_place(x, y, n):
    tile = bn.arange(0, 16)
    tile[3] = 1


def tile_changed_by_a_mask(x, y, n):
    tile = bn.arange(0, 16)
    tile[tile > 3] = 1


def tile_indexed_by_a_mask(x, y, n):
    x[0] = bn.arange(0, 16)[bn.arange(0, 16) > n].sum()


def where_alone(x, y, n):
    x[0] = np.where(bn.arange(0, 16) > n)[0][0]


def name_of_cuda(x, y, n):
    x[0] = blockIdx.x  # noqa: F821


def out_of_a_function(x, y, n):
    tile = bn.arange(0, 16)
    np.multiply(tile, 2, out=tile)


def out_of_a_sum(x, y, n):
    tile = bn.arange(0, 16)
    np.sum(tile, out=tile)


def einsum(x, y, n):
    x[0] = np.einsum("i,i->", bn.arange(0, 16), bn.arange(0, 16))


def wrong_dtype(x, y, n):
    tile = bn.zeros((8,), "float31")


def bits_of_floats(x, y, n):
    tile = bn.zeros((8,)) & 1


def negative_power(x, y, n):
    tile = bn.arange(0, 8) ** -1


def float_offset(x, y, n):
    tile = bn.load(x + 1.5)


def load_of_an_int(x, y, n):
    tile = bn.load(n)


def int_mask(x, y, n):
    tile = bn.load(x + bn.arange(0, 16), mask=bn.arange(0, 16))


def axis_out_of_range(x, y, n):
    tile = bn.sum(bn.zeros((16, 16)), axis=2)


def run_time_axis(x, y, n):
    tile = bn.sum(bn.zeros((16, 16)), axis=n)


def loop_over_a_tile(x, y, n):
    for element in bn.arange(0, 16):
        n += 1


def run_time_static_range(x, y, n):
    for i in bn.static_range(n):
        n += i


def zero_step(x, y, n):
    for i in range(0, n, 0):
        n += i


def wrong_unpacking(x, y, n):
    a, b = (1, 2, n)


def string_arithmetic(x, y, n):
    text = "a" + n


def division_by_zero(x, y, n):
    x[0] = 1 // 0


def bool_difference(x, y, n):
    tile = (bn.arange(0, 8) > 3) - (bn.arange(0, 8) > 2)


def int_that_no_dtype_holds(x, y, n):
    x[0] = n + 2**70


def too_many_stages(x, y, n):
    for i in bn.range(n, num_stages=17):
        x[i] = 0


def no_round_per_jump(x, y, n):
    for r in bn.spans(n, 4, unroll=0):
        x[r] = 0


def unrolled_as_the_argument_says(x, y, n):
    for i in bn.range(8, unroll=n):
        x[i] = 0


def unrolled_twice(x, y, n):
    for i in bn.range(n, unroll=2, loop_unroll_factor=2):
        x[i] = 0


TUPLES = "use a tuple: (a, b), or tuple(... for ...)"
MISTAKES = [
    (lists, UnsupportedError, "list: not supported in a kernel", TUPLES),
    (dicts, UnsupportedError, "dict: not supported in a kernel",
     "use variables, a named tuple or a dataclass"),
    (comprehensions, BlockTypeError, "a generator or list: the number of its items is not known "
     "at compile time", "loop over a tuple or a range of compile-time constants, without a "
     "run-time `if`; or add up in a for loop"),
    (tries, UnsupportedError, "try/except: not supported in a kernel",
     "nothing is raised in a kernel: check before, by `if`, or by where of tiles"),
    (withs, UnsupportedError, "with: not supported in a kernel", ""),
    (generators, UnsupportedError, "yield: not supported in a kernel",
     "store to an array, each result in its place"),
    (imports, UnsupportedError, "import: not supported in a kernel",
     "import it at the top of the file"),
    (raises, UnsupportedError, "raise: not supported in a kernel",
     "use assert, which is checked with debug=True"),
    (sets_attribute, UnsupportedError, "assignment to an attribute: not supported in a kernel",
     "use a variable, or an array"),
    (sets_global, UnsupportedError, "global assignment: not supported in a kernel",
     "store to an array: what a kernel computes stays in arrays"),
    (reads_list, BlockTypeError, "index: given an int of run time, accepted an int or a slice that "
     "is known at compile time", "choose an item with `if`, or unroll a loop over all of them with "
     "bn.static_range"),
    (reads_array, UnsupportedError, "AN_ARRAY: given an array of shape (3,) as a constant, "
     "accepted numbers, strings, tuples, dtypes, functions and modules",
     "pass it as an argument that is no constexpr"),
    (unknown_function, UnsupportedError, "the function det cannot be called in a kernel",
     "call functions of bn, NumPy's where bn has one of the same name, or your own"),
    (double_star, UnsupportedError, "a call with **: not supported in a kernel",
     "write the keywords: f(x, scale=2)"),
    (returns_a_value, BlockTypeError, "return: given an int of run time, accepted nothing: a kernel "
     "returns no value", "store it to an array"),
    (unknown_attribute, UnsupportedError, "tile<16xint32> has no attribute 'ceils', accepted T, "
     "dtype, ndim, numel, shape, size, type and the functions of one tile", "did you mean ceil?"),
    (method_of_an_array, UnsupportedError, "an array has no attribute 'sum', accepted T, at, "
     "dtype, ndim, shape, size, strides, type", "load elements first: x[bn.span(0, SIZE)]; it is a tile, and has sum"),
    (wrong_shape_stored, BlockTypeError, "*: shapes (4, 8) and (8, 4) do not broadcast together",
     ""),
    (tile_stored_to_element, BlockTypeError, "store: value: given tile<8xfloat32>, accepted a "
     "scalar", "one element is named: index with a span, or add offsets to the pointer"),
    (too_many_indices, BlockTypeError, "x: given 2 indices, accepted 1, one for each axis of the "
     "array", ""),
    (too_few_indices, BlockTypeError, "y: given 1 index, accepted 2, one for each axis of the "
     "array", "index its other axes too: y[r, bn.span(0, SIZE)]"),
    (slice_of_unknown_length, BlockTypeError, "x: axis 0 is given a slice whose length is not "
     "known at compile time, accepted spans, ints, int tiles and slices start : start + SIZE",
     "write bn.span(start, SIZE)"),
    (tile_changed_in_place, BlockTypeError, "assignment to an element: given tile<16xint32>, "
     "accepted an array", "tiles do not change: make a new one with bn.where, or keep the "
     "elements in an array, which does"),
    (tile_changed_by_a_mask, BlockTypeError, "assignment to an element: given tile<16xint32>, "
     "accepted an array", "tiles do not change: x = bn.where(mask, value, x) for x[mask] = value"),
    (tile_indexed_by_a_mask, BlockTypeError, "index: given tile<16xbool> for tile<16xint32>, "
     "accepted ':', None, '...' and compile-time ints and slices",
     "how many elements a mask picks is known at run time only: bn.where(mask, x, 0) keeps their "
     "places, where=mask leaves out the others of a reduction"),
    (where_alone, BlockTypeError, "np.where: given a condition alone, accepted "
     "np.where(condition, x, y)", "how many elements there are is known at run time only: "
     "np.argmax(condition) is the first, and bn.where(condition, x, 0) keeps all places"),
    (name_of_cuda, BlockNameError, "name 'blockIdx' is not defined", "a program is one block: "
     "bn.program_id(axis) is its index, bn.num_programs(axis) their number"),
    (out_of_a_function, BlockTypeError, "multiply: got an unexpected keyword argument 'out', "
     "accepted multiply(x, y)",
     "a function gives a new tile: assign it, and store it if it is for an array"),
    (out_of_a_sum, BlockTypeError, "np.sum: given out=tile<16xint32>, accepted none",
     "a function gives a new tile: out = np.sum(x)"),
    (einsum, UnsupportedError, "the function einsum cannot be called in a kernel",
     "use a @ b, or (a[:, :, None] * b[None, :, :]).sum(axis)"),
    (wrong_dtype, BlockTypeError, "zeros: dtype must be a dtype such as bn.float32, got 'float31'",
     "did you mean float32 or float16?"),
    (bits_of_floats, BlockTypeError, "&: given tile<8xfloat32> and 1, accepted ints and bools",
     "compare first: x != 0 are bools"),
    (negative_power, BlockValueError, "**: an integer to the power -1, accepted exponents from 0",
     "cast it to a float first"),
    (float_offset, BlockTypeError, "+: given an array and 1.5, accepted tiles and numbers, "
     "or a pointer and ints",
     "load elements first: x[bn.span(0, SIZE)]"),
    (load_of_an_int, BlockTypeError, "load: given an int of run time, accepted a pointer, a tile "
     "of pointers or array.at[...]", "index the array: x.at[i], or add offsets to it: x + offs"),
    (int_mask, BlockTypeError, "load: mask must be bool, got tile<16xint32>",
     "compare: x != 0"),
    (axis_out_of_range, BlockValueError, "sum: axis 2 is out of range for rank 2, accepted -2 to 1",
     ""),
    (run_time_axis, BlockTypeError, "sum: axis must be a compile-time constant, got an int of "
     "run time", "pass it as a bn.constexpr argument"),
    (loop_over_a_tile, UnsupportedError, "for: given tile<16xint32>, accepted range, static_range, "
     "spans or a tuple", "a loop over a tile's elements is an operation on the tile"),
    (run_time_static_range, BlockTypeError, "static_range: its bounds must be compile-time "
     "constants", "use range for a run-time loop"),
    (zero_step, BlockValueError, "range: step must not be 0", ""),
    (wrong_unpacking, BlockTypeError, "unpacking: given 3 values, accepted 2", ""),
    (string_arithmetic, BlockTypeError, "+: given 'a' and an int of run time, accepted tiles and "
     "numbers", ""),
    (division_by_zero, BlockValueError, "in a compile-time expression: integer division or modulo "
     "by zero", ""),
    (bool_difference, BlockTypeError, "-: given two bools, accepted numbers", "use ^ or cast them"),
    (too_many_stages, BlockValueError, "range: num_stages: given 17, accepted 1 to 16", ""),
    (no_round_per_jump, BlockValueError, "spans: unroll: given 0, accepted 1, which keeps the loop "
     "as it is written, or more", ""),
    (unrolled_as_the_argument_says, BlockTypeError, "range: unroll must be a compile-time "
     "constant, got an int of run time", "pass it as a bn.constexpr argument"),
    (unrolled_twice, BlockTypeError, "range: given unroll and loop_unroll_factor, accepted one of "
     "them: they are the same", ""),
    (int_that_no_dtype_holds, BlockValueError, "the int 1180591620717411303424 does not fit in "
     "64 bits", ""),
]


@pytest.mark.parametrize("function,kind,message,hint", MISTAKES,
                         ids=[mistake[0].__name__ for mistake in MISTAKES])
def test_every_mistake_has_one_message(function, kind, message, hint):
    error = error_of(function)

    assert (error.message, error.hint) == (message, hint)
    assert type(error) is kind


@pytest.mark.parametrize("function", [mistake[0] for mistake in MISTAKES],
                         ids=lambda f: f.__name__)
def test_every_mistake_is_shown_in_the_source(function):
    error = error_of(function)
    code = function.__code__

    assert error.loc.file == code.co_filename
    assert code.co_firstlineno <= error.loc.line <= max(n for *_, n in code.co_lines() if n)
    assert "^" in str(error)
    assert "numba" not in str(error).lower()


def test_a_parameter_without_a_value():
    def kernel(x, y, n, B):
        x[0] = B

    assert error_of(kernel).message == "kernel: no value was given for 'B'"


def test_a_value_without_a_parameter():
    def kernel(x, y, n):
        x[0] = n

    assert error_of(kernel, BLOCK=3).message == (
        "kernel: no parameter is called 'BLOCK', accepted kernel(x, y, n)")
