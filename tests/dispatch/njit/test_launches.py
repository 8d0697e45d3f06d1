"""Launches from functions that Numba compiles, on host arrays."""

import threading

import numpy as np
import pytest
from numba import njit, prange
from numba.core.errors import TypingError

import blocknumba as bn

RANDOM = np.random.default_rng(7)
HALF = bn.constexpr(0.5)


@bn.jit
def scale(x, out, factor, B: bn.constexpr, shift: bn.constexpr = 0.25):
    r = bn.block(0, B)
    out[r] = x[r] * factor + shift


@bn.jit
def add(x, y, out, n, B: bn.constexpr):
    i = bn.program_id(0) * B + bn.arange(B)
    bn.store(out + i, bn.load(x + i, i < n) + bn.load(y + i, i < n), i < n)


@bn.jit
def where_it_is(out):
    out[bn.program_id(0), bn.program_id(1), bn.program_id(2)] = (
        bn.program_id(0) * 100 + bn.program_id(1) * 10 + bn.program_id(2))


@njit
def scaled(x, out, factor):
    scale[(x.shape[0] + 63) // 64](x, out, factor, 64)


def numbers(*shape, dtype=np.float32):
    return (RANDOM.standard_normal(shape) * 100).astype(dtype)


def poisoned(like):
    return np.full_like(like, 77)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float32", "float64"])
def test_a_launch_does_what_one_from_python_does(dtype):
    x = numbers(1000, dtype="int16").astype(dtype)
    out, expected = poisoned(x), poisoned(x)

    scaled(x, out, 3)
    scale[16](x, expected, 3, 64)

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("factor", [3, 2**40, -1.5, np.float32(1.5), np.int32(7), True, 1],
                         ids=lambda value: f"{type(value).__name__}-{value}")
def test_numbers_have_the_dtypes_that_they_have_from_python(factor):
    x = numbers(128)
    out, expected = np.full(128, 77.0), np.full(128, 77.0)

    scaled(x, out, factor)
    scale[2](x, expected, factor, 64)

    np.testing.assert_array_equal(out, expected)


def test_one_function_serves_arrays_of_any_layout():
    whole = numbers(4, 6, 65)
    views = [whole[1, 2], whole[:, 1, 0], whole[2, ::-1, 3], whole[3, 2, 1:], whole[0, 0, :1],
             whole[1, 1, ::7], whole[0, :0, 0], np.broadcast_to(np.float32(3), 9)]
    for x in views * 2:
        out = np.full(x.shape, 77, np.float32)

        scaled(x, out, 2.0)

        np.testing.assert_array_equal(out, x * np.float32(2) + np.float32(0.25))


def test_arguments_are_given_by_name_and_by_default():
    @njit
    def run(x, out):
        scale[2](out=out, x=x, B=64, factor=2.0)
        scale[2](out, out, 1.0, shift=1.5, B=64)

    x = numbers(128)
    out = poisoned(x)
    run(x, out)

    np.testing.assert_array_equal(out, x * 2 + np.float32(0.25) + np.float32(1.5))


def test_grids_have_one_to_three_axes():
    @njit
    def run(out, a, b, c):
        where_it_is[a, b, c](out)
        where_it_is[(a, b)](out[:, :, 1:])
        where_it_is[a](out[:, 1:, 2:])

    out = np.full((2, 3, 4), 77, np.int32)
    run(out, np.int32(2), 3, np.uint8(4))

    x, y, z = np.indices(out.shape)
    expected = x * 100 + y * 10 + z
    expected[:, :, 1] = (x * 100 + y * 10)[:, :, 0]
    expected[:, 1, 2] = np.arange(2) * 100
    np.testing.assert_array_equal(out, expected)


def test_an_empty_grid_runs_nothing():
    @njit
    def run(x, out, n):
        scale[n](x, out, 1.0, 64)

    x = numbers(64)
    out = poisoned(x)
    run(x, out, 0)

    assert (out == 77).all()


def test_constants_are_literals_globals_and_what_bn_constexpr_marks():
    block = 32

    @njit
    def run(x, out):
        scale[4](x, out, 1.0, block, HALF)
        scale[4](out, out, 1.0, B=block, shift=1e-3)

    x = numbers(128)
    out = poisoned(x)
    run(x, out)

    np.testing.assert_array_equal(out, x + np.float32(0.5) + np.float32(1e-3))


def test_a_constant_may_be_a_dtype_a_kernel_a_function_none_or_a_tuple():
    @bn.jit
    def square(x):
        return x * x

    @bn.jit
    def apply(x, out, f: bn.constexpr, dtype: bn.constexpr, more: bn.constexpr, rows: bn.constexpr):
        i = bn.arange(rows[0] * rows[1])
        value = f(x[i].to(dtype))
        if more is not None:
            value += more
        out[i] = value

    to = bn.float64

    @njit
    def run(x, out):
        apply[1](x, out, square, to, None, (2, 32))

    x = numbers(64)
    out = np.full(64, 77.0)
    run(x, out)

    np.testing.assert_array_equal(out, x.astype(np.float64) ** 2)


def test_options_are_literals_by_name():
    @bn.jit
    def copy(x, out, B: bn.constexpr):
        out[bn.arange(B)] = x[bn.arange(B)]

    @njit
    def run(x, out):
        copy[1](x, out, 64, num_warps=2, debug=True)

    with pytest.raises(bn.errors.BlockIndexError, match="x"):
        run(numbers(8), numbers(64))


def test_a_kernel_may_be_an_argument():
    @bn.jit
    def other(x, out, factor, B: bn.constexpr):
        i = bn.arange(B)
        out[i] = x[i] - factor

    @njit
    def run(kernel, x, out):
        kernel[1](x, out, 2.0, B=64)

    x = numbers(64)
    for kernel, expected in ((scale, x * 2 + np.float32(0.25)), (other, x - 2)):
        out = poisoned(x)
        run(kernel, x, out)

        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("parallel", [False, True])
def test_launches_in_loops_and_in_prange(parallel):
    @njit(parallel=parallel)
    def run(x, out):
        for row in prange(x.shape[0]):
            scale[(x.shape[1] + 63) // 64](x[row], out[row], 2.0, 64, HALF)

    x = numbers(50, 100)
    out = poisoned(x)
    run(x, out)

    np.testing.assert_array_equal(out, x * 2 + np.float32(0.5))


def test_functions_that_launch_are_called_by_others():
    @njit
    def inner(x, out):
        scaled(x, out, 2.0)

    @njit(parallel=True)
    def outer(x, out):
        for row in prange(x.shape[0]):
            inner(x[row], out[row])

    x = numbers(20, 100)
    out = poisoned(x)
    outer(x, out)

    np.testing.assert_array_equal(out, x * 2 + np.float32(0.25))


def test_threads_launch_at_the_same_time():
    @njit(nogil=True)
    def run(x, out, times):
        for _ in range(times):
            scale[(x.shape[0] + 63) // 64](x, out, 2.0, 64)

    given = [numbers(64 * (n + 1) - n) for n in range(8)]
    outs = [poisoned(x) for x in given]
    threads = [threading.Thread(target=run, args=(x, out, 20)) for x, out in zip(given, outs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for x, out in zip(given, outs):
        np.testing.assert_array_equal(out, x * 2 + np.float32(0.25))


def test_what_a_kernel_reads_is_as_it_was_until_the_function_is_compiled_anew():
    space = {"bn": bn}
    exec("G = 1\ndef body(out):\n    out[0] = G\n", space)
    kernel = bn.jit(space["body"])

    @njit
    def run(out):
        kernel[1](out)

    out = np.zeros(1, np.float32)
    run(out)
    space["G"] = 2
    with pytest.raises(bn.errors.BlockValueError, match="G changed since Numba compiled"):
        run(out.astype(np.float32)[::-1][::-1]) or run(np.zeros(4, np.float32)[1:])
    run.recompile()
    run(out)

    assert out[0] == 2


class TestMistakes:
    """Errors at compile time are Numba's TypingError with our message."""

    @staticmethod
    def message(function, *arguments) -> str:
        with pytest.raises(TypingError) as raised:
            function(*arguments)
        return str(raised.value)

    def test_unknown_names(self):
        @njit
        def run(x):
            scale[1](x, x, 1.0, block=64)

        message = self.message(run, numbers(64))

        assert "scale: given block=, accepted 5 (x, out, factor, B, shift) and the opt" in message
        assert "scale[1](x, x, 1.0, block=64)" in message or "def run(x)" in message

    def test_missing_constants(self):
        @njit
        def run(x):
            scale[1](x, x, 1.0)

        assert ("scale: missing B\n  hint: it takes x, out, factor, B, shift"
                in self.message(run, numbers(64)))

    def test_constants_that_are_computed(self):
        @njit
        def run(x, n):
            scale[1](x, x, 1.0, n + 1)

        assert ("scale: given a value of type int64 for the constant B, accepted one that is known "
                "when Numba compiles\n  hint: write a literal, a global or an argument that is "
                "given: B=1024"
                in self.message(run, numbers(64), 64))

    def test_floats_that_are_computed(self):
        @njit
        def run(x, shift):
            scale[1](x, x, 1.0, 64, shift)

        assert ("scale: given a float that is computed for the constant shift, accepted one that "
                "is known when Numba compiles" in self.message(run, numbers(64), 0.5))

    @pytest.mark.parametrize("grid, told", [
        ("2.5", "float64"), ("(1, 2, 3, 4)", "UniTuple(int64 x 4)"), ("True", "bool"),
        ("abs", "a function"), ("'4'", "unicode_type")])
    def test_grids(self, grid, told):
        space = {"njit": njit, "scale": scale}
        exec(f"@njit\ndef run(x):\n    scale[{grid}](x, x, 1.0, 64)\n", space)

        assert (f"scale: given {told} as the grid, accepted an int or a tuple of 1 to 3 ints"
                in self.message(space["run"], numbers(64)))

    def test_a_call_without_a_grid(self):
        @njit
        def run(x):
            scale(x, x, 1.0, 64)

        assert ("scale: called without a grid, accepted scale[grid](...)"
                in self.message(run, numbers(64)))

    @pytest.mark.parametrize("given, told", [
        (numbers(64).astype(np.complex64), "factor: given an array of complex64, accepted bool"),
        (1j, "factor: given complex128, accepted arrays, numbers, bools and None"),
        ("two", "factor: given unicode_type, accepted arrays, numbers")])
    def test_types_that_kernels_do_not_have(self, given, told):
        assert f"scale: argument {told}" in self.message(scaled, numbers(64), numbers(64), given)

    def test_arrays_that_are_read_only(self):
        out = numbers(64)
        out.flags.writeable = False

        assert ("scale: argument out is read-only, and the kernel stores to it\n  hint: pass a "
                "copy" in self.message(scaled, numbers(64), out, 1.0))

    def test_mistakes_in_the_kernel(self):
        @bn.jit
        def wrong(x, B: bn.constexpr):
            x[bn.arange(B)] = bn.arange(2 * B)

        @njit
        def run(x):
            wrong[1](x, 64)

        message = self.message(run, numbers(64))

        assert "store: value: given shape (128,)" in message
        assert "x[bn.arange(B)] = bn.arange(2 * B)" in message

    def test_kernels_whose_constants_depend_on_each_launch(self):
        @bn.heuristics({"B": lambda arguments: 64})
        @bn.jit
        def tuned(x, B: bn.constexpr):
            x[bn.arange(B)] = 1

        @njit
        def run(x):
            tuned[1](x)

        assert ("tuned: given a kernel under bn.autotune or bn.heuristics"
                in self.message(run, numbers(64)))


def test_a_negative_grid_is_an_error_of_the_launch():
    @njit
    def run(x, n):
        scale[n](x, x, 1.0, 64)

    for _ in range(2):
        with pytest.raises(bn.errors.BlockValueError, match="given -1 programs along axis 0"):
            run(numbers(64), -1)


def test_numbers_out_of_a_declared_range_are_an_error_of_the_launch():
    @bn.jit
    def declared(out, a: bn.int8, b: bn.float32):
        out[0] = a
        out[1] = b

    @njit
    def run(out, a, b):
        declared[1](out, a, b)

    out = np.zeros(2)
    run(out, 100, 1e38)
    np.testing.assert_array_equal(out, [100, np.float32(1e38)])
    with pytest.raises(bn.errors.BlockValueError, match=r"a: given 200, accepted int8"):
        run(out, 200, 0.0)
    with pytest.raises(bn.errors.BlockValueError, match=r"b: given 1e\+39, accepted numbers in"):
        run(out, 0, 1e39)
    run(out, -100, np.inf)
    np.testing.assert_array_equal(out, [-100, np.inf])


def test_elements_that_are_not_aligned_are_an_error_of_the_launch():
    memory = np.zeros(4 * 64 + 1, np.uint8)
    x = np.zeros(64, [("a", "i1"), ("b", "f4")])["b"]

    with pytest.raises(bn.errors.BlockError):
        scaled(x, numbers(64), 1.0)
    with pytest.raises(bn.errors.BlockError):
        scaled(memory[1:].view(np.float32), numbers(64), 1.0)
