"""bn.map: scalar functions that Numba compiles, on the elements of tiles."""

from __future__ import annotations

import math
from collections import namedtuple

import emulated_gpu
import numba
import numpy as np
import pytest
from numba import cuda

import blocknumba as bn
from blocknumba.errors import BlockError, BlockTypeError

BLOCK = 256
COUNT = 1000
EPSILON = 1e-3
THREE = 3
TABLE = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
Root = namedtuple("Root", "value steps")


def launched(device, function, outputs: list[np.ndarray], *inputs: np.ndarray, **named):
    """What kernel_of(function) stores for inputs, in arrays like outputs that were poisoned."""
    found = [np.full_like(array, 77) for array in outputs]
    device.run(function, bn.cdiv(len(found[0]), BLOCK), *inputs, *found, B=BLOCK, **named)
    return found


def uniform(low: float, high: float, dtype=np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, COUNT).astype(dtype)


# what can be mapped ---------------------------------------------------------------------------
def escape(cx, cy, limit):
    """Iterations of z*z + c until |z| > 2."""
    x = y = 0.0
    count = 0
    while x * x + y * y <= 4.0 and count < limit:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        count += 1
    return count


def escape_in_numpy(cx: np.ndarray, cy: np.ndarray, limit: int) -> np.ndarray:
    x, y, count = np.zeros_like(cx), np.zeros_like(cx), np.zeros(len(cx), np.int32)
    with np.errstate(all="ignore"):
        for _ in range(limit):
            inside = x * x + y * y <= 4
            x, y = x * x - y * y + cx, 2 * x * y + cy
            count += inside & (count == _)
    return count


KINDS = {"python": escape, "njit": numba.njit(escape), "vectorize": numba.vectorize(escape),
         "signatures": numba.vectorize(["int64(float64, float64, int64)"])(escape),
         "device": cuda.jit(device=True)(escape)}


@pytest.mark.parametrize("kind", KINDS)
def test_loops_end_for_each_element_by_itself(device, kind):
    function = KINDS[kind]

    @bn.jit
    def kernel(cx, cy, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(function, cx[r], cy[r], 50)

    cx, cy = uniform(-2, 1), uniform(-1, 1, seed=1)
    expected = escape_in_numpy(cx, cy, 50)

    found, = launched(device, kernel, [expected], cx, cy)

    assert np.array_equal(found, expected)
    assert 1 < len(np.unique(found)) and 50 in found


def test_floats_in_the_code_are_float32_where_no_tile_is_float64(device):
    @numba.njit
    def third(x):
        return x * 0.3333333333333333

    def function(x, factor=0.1):
        return third(x) * math.pi + EPSILON * factor, x * 1e-3

    @bn.jit
    def kernel(x, first, second, B: bn.constexpr):
        r = bn.block(0, B)
        first[r], second[r] = bn.map(function, x[r])

    for dtype in (np.float32, np.float64):
        x = uniform(-100, 100, dtype)
        of = dtype
        expected = [x * of(0.3333333333333333) * of(math.pi) + of(EPSILON) * of(0.1), x * of(1e-3)]

        found = launched(device, kernel, expected, x)

        assert [a.dtype for a in expected] == [dtype, dtype]
        assert all(map(np.array_equal, found, expected))


def test_ints_in_the_code_are_weak_beside_float32(device):
    def function(x):
        total = 0
        for _ in range(2):
            total += x * x
        if total > 2:
            return 1
        total -= 1
        return max(3 - total, 0) / 7 + np.minimum(x, THREE)

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        y = bn.map(function, x[r])
        bn.static_assert(y.dtype == out.dtype)
        out[r] = y

    for dtype in (np.float32, np.float64):
        x = uniform(-3, 3, dtype)
        total = x * x + x * x
        expected = np.where(total > 2, dtype(1), np.maximum(3 - (total - 1), 0) / 7
                            + np.minimum(x, 3))

        found, = launched(device, kernel, [expected], x)

        assert expected.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)


def test_the_dtypes_of_the_results_are_those_of_numba(device):
    def function(a, b, c):
        return a + b, a / b, a < b, -c, c and b > 3

    @bn.jit
    def kernel(a, b, c, out, B: bn.constexpr):
        r = bn.block(0, B)
        s, q, less, n, both = bn.map(function, a[r], b[r], c[r])
        bn.static_assert(s.dtype == bn.int64 and q.dtype == bn.float64)
        bn.static_assert(less.dtype == bn.bool_ and n.dtype == bn.int64 and both.dtype == bn.bool_)
        out[r] = s + q + less * 1000 + n * 5000 + both * 10000

    rng = np.random.default_rng(3)
    a, b = (rng.integers(1, 9, COUNT).astype(t) for t in (np.int8, np.uint16))
    c = rng.random(COUNT) < 0.5
    expected = (a.astype(int) + b + a / b + (a < b) * 1000 - c.astype(int) * 5000
                + (c & (b > 3)) * 10000.0)

    found, = launched(device, kernel, [expected], a, b, c)

    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_given_as_float32(device, dtype):
    def function(x):
        return x * x

    @bn.jit
    def kernel(x, out, B: bn.constexpr, D: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(function, x[r].to(D))

    x = uniform(-3, 3, np.float16)
    given = x if dtype == "float16" else bn_rounded(x)
    expected = given.astype(np.float32) ** 2

    found, = launched(device, kernel, [expected], x, D=getattr(bn, dtype))

    assert np.array_equal(found, expected)


def bn_rounded(x: np.ndarray) -> np.ndarray:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return x.astype(ml_dtypes.bfloat16)


def test_tiles_and_numbers_are_broadcast_together(device):
    def function(x, y, z):
        return (x - y if x > y else y - x) * z

    @bn.jit
    def kernel(x, out, factor, B: bn.constexpr, N: bn.constexpr):
        r = bn.block(0, B)
        c = bn.span(0, N)
        table = bn.map(function, x[r][:, None], x[c][None, :], factor)
        out[r, c] = table

    x, factor = uniform(-1, 1), np.int32(3)
    expected = np.abs(x[:, None] - x[None, :16]) * np.float32(3)
    found = np.full_like(expected, 77)
    device.run(kernel, bn.cdiv(COUNT, 32), x, found, factor, B=32, N=16)

    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_scalars_alone_make_scalars(device):
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    @bn.jit
    def kernel(out):
        i = bn.program_id(0)
        out[i] = bn.map(steps, i + 1)

    found = np.full(30, -1, np.int32)
    device.run(kernel, 30, found)

    assert found.tolist() == [steps(n + 1) for n in range(30)]


def test_results_are_a_tuple_of_the_functions_class(device):
    def root(x):
        guess = x
        steps = 0
        while abs(guess * guess - x) > np.float32(1e-5) * x and steps < 40:
            guess = (guess + x / guess) * 0.5
            steps += 1
        return Root(guess, np.int32(steps))

    def alone(x):
        return (x + 1,)

    @bn.jit
    def kernel(x, value, steps, more, B: bn.constexpr):
        r = bn.block(0, B)
        found = bn.map(root, x[r])
        value[r], steps[r] = found.value, found.steps
        single, = bn.map(alone, x[r])
        more[r] = single

    x = uniform(0.1, 100)
    expected = [np.sqrt(x.astype(float)).astype(np.float32), np.zeros(COUNT, np.int32), x + 1]

    value, steps, more = launched(device, kernel, expected, x)

    np.testing.assert_allclose(value, expected[0], rtol=2e-5)
    assert 0 < steps.max() < 40
    assert np.array_equal(more, expected[2])


def test_a_function_may_be_defined_in_the_kernel(device):
    @bn.jit
    def kernel(x, out, B: bn.constexpr, SCALE: bn.constexpr):
        r = bn.block(0, B)
        limit = SCALE * 2

        def grown(a, by=1.5):
            while a < limit:
                a += by
            return a

        out[r] = bn.map(grown, x[r]) + bn.map(lambda a: a * limit, x[r])

    x = uniform(-5, 5)
    expected = x.copy()
    while (expected < 6).any():
        expected = np.where(expected < 6, expected + np.float32(1.5), expected)
    expected += x * np.float32(6)

    found, = launched(device, kernel, [expected], x, SCALE=3.0)

    assert np.array_equal(found, expected)


def test_complex_numbers_stay_within_a_function(device):
    def modulus(x, y):
        z = complex(x, y)
        for _ in range(3):
            z = z * z * 0.25 + complex(x, y)
        return abs(z), z.real

    @bn.jit
    def kernel(x, y, size, real, B: bn.constexpr):
        r = bn.block(0, B)
        size[r], real[r] = bn.map(modulus, x[r], y[r])

    x, y = uniform(-1, 1), uniform(-1, 1, seed=1)
    z = c = x.astype(complex) + 1j * y
    for _ in range(3):
        z = z * z * 0.25 + c
    expected = [abs(z).astype(np.float32), z.real.astype(np.float32)]

    found = launched(device, kernel, expected, x, y)

    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_constant_arrays_are_tables(device):
    def looked_up(i):
        return TABLE[i & 7]

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(looked_up, x[r])

    x = np.random.default_rng(5).integers(-99, 99, COUNT).astype(np.int32)

    found, = launched(device, kernel, [x], x)

    assert np.array_equal(found, TABLE[x & 7])


def test_division_by_zero_is_as_in_numpy(device):
    def function(x, y, i, j):
        return x / y, i // j, i % j

    @bn.jit
    def kernel(x, y, i, j, quotient, whole, rest, B: bn.constexpr):
        r = bn.block(0, B)
        quotient[r], whole[r], rest[r] = bn.map(function, x[r], y[r], i[r], j[r])

    x, y = uniform(-2, 2), np.resize(np.array([0, -0.0, 1, 3], np.float32), COUNT)
    i, j = np.arange(-500, 500), np.resize(np.array([0, 3, -7]), COUNT)
    with np.errstate(all="ignore"):
        expected = [x / y, i // j, i % j]

    found = launched(device, kernel, expected, x, y, i, j)

    assert all(map(np.array_equal, found, expected))


def test_after_a_product_on_tensor_cores(device):
    def activation(x):
        if x >= 0:
            return x
        while x < -1:
            x *= 0.5
        return x * 0.125

    @bn.jit
    def kernel(a, b, out, M: bn.constexpr, K: bn.constexpr):
        r, c = bn.block(0, M), bn.block(1, M)
        acc = bn.zeros((M, M), bn.float32)
        for k in bn.spans(a.shape[1], K):
            acc = bn.dot(a[r, k], b[k, c], acc)
        out[r, c] = bn.map(activation, acc)

    rng = np.random.default_rng(6)
    a, b = (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    product = a.astype(np.float32) @ b.astype(np.float32)
    expected = product.copy()
    while (expected < -1).any():
        expected = np.where(expected < -1, expected * np.float32(0.5), expected)
    expected = np.where(product >= 0, product, expected * np.float32(0.125))
    found = np.full_like(expected, 77)
    device.run(kernel, (1, 1), a, b, found, M=64, K=32)

    assert np.array_equal(found, expected)


# masks ----------------------------------------------------------------------------------------
def test_a_function_is_not_called_where_the_mask_is_false(device):
    def forever(n):
        count = 0
        while n != 0:  # never ends for a negative n: it steps away from 0
            n -= 1 if n > 0 else 0
            count += 1
        return count, n == 0

    @bn.jit
    def kernel(x, count, done, filled, B: bn.constexpr):
        r = bn.block(0, B)
        n = x[r]
        count[r], done[r] = bn.map(forever, n, mask=n >= 0)
        filled[r], _ = bn.map(forever, n, mask=n >= 0, other=(n, True))

    x = np.random.default_rng(7).integers(-20, 20, COUNT)
    expected = [np.where(x >= 0, x, 0), x >= 0, x]

    found = launched(device, kernel, expected, x)

    assert all(map(np.array_equal, found, expected))


# exceptions -----------------------------------------------------------------------------------
def checked(x):
    if x > 5:
        raise ValueError("too large", 5)
    return x + 1


@numba.njit
def outer(x):
    if x < 0:
        raise ArithmeticError("negative")
    return checked(x)


@bn.jit
def raising(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = bn.map(outer, x[r])


def test_elements_that_raise_are_0(device):
    x = np.random.default_rng(8).integers(-9, 9, COUNT).astype(np.int32)
    expected = np.where((x < 0) | (x > 5), 0, x + 1)

    found, = launched(device, raising, [expected], x)

    assert np.array_equal(found, expected)


@pytest.mark.parametrize("value, message, line", [
    (6, "ValueError: too large, 5", 'raise ValueError("too large", 5)'),
    (-1, "ArithmeticError: negative", 'raise ArithmeticError("negative")')])
def test_debug_stops_at_the_line_that_raises(value, message, line):
    x = np.array([1, 2, value, 3], np.int32)

    with pytest.raises(BlockError) as error:
        raising[1](x, x.copy(), B=4, interpret=True, debug=True)
    text = str(error.value)
    assert f"map: outer raises {message} in program (0, 0, 0), element (2,)" in text
    assert line in text and "out[r] = bn.map(outer, x[r])" in text

    with pytest.raises(BlockError) as error:
        emulated_gpu.launch(raising, 1, (x, x.copy()), {"B": 4, "debug": True})
    assert f"map: outer raises {message}" in str(error.value) and line in str(error.value)


def test_debug_is_quiet_where_the_mask_is_false():
    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(outer, x[r], mask=(x[r] >= 0) & (x[r] <= 5))

    x, found = np.arange(-4, 12, dtype=np.int32), np.full(16, 77, np.int32)
    kernel[1](x, found, B=16, interpret=True, debug=True)

    assert found.tolist() == [n + 1 if 0 <= n <= 5 else 0 for n in range(-4, 12)]


def test_a_function_is_not_called_in_a_loop_without_iterations():
    @bn.jit
    def kernel(x, out, n, B: bn.constexpr):
        r = bn.block(0, B)
        y, total = x[r], bn.zeros((B,), bn.int32)
        for _ in range(n):
            total += bn.map(outer, y)
        out[r] = total

    x, found = np.full(4, 6, np.int32), np.full(4, 77, np.int32)
    kernel[1](x, found, 0, B=4, interpret=True, debug=True)

    assert found.tolist() == [0] * 4


def test_debug_knows_which_elements_were_loaded():
    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[0] = bn.sum(bn.map(lambda a: a + 1, x[r]))

    with pytest.raises(BlockError, match="no load has read"):
        kernel[1](np.ones(5, np.float32), np.zeros(1, np.float32), B=8, interpret=True, debug=True)


# errors ---------------------------------------------------------------------------------------
def makes_complex(x):
    return complex(x, x)


def makes_nothing(x):
    x + 1


def makes_an_array(x):
    values = np.zeros(3)
    return values[0] + x


def makes_a_list(x):
    values = [x]
    return values[0]


def has_no_attribute(x):
    return x.missing


def takes_two(x, y):
    return x + y


def takes_any(*x):
    return x[0]


def calls_itself(x):
    return x if x < 1 else calls_itself(x - 1)


def calls_the_other(x):
    return x if x < 1 else is_called_by_it(x - 1)


def is_called_by_it(x):
    return calls_the_other(x) * 2


def tries(x):
    try:
        return checked(x)
    except ValueError:
        return x


ERRORS = {
    calls_itself: ("calls_itself calls itself", "return x if x < 1 else calls_itself(x - 1)",
                   "write a loop"),
    calls_the_other: ("calls_the_other calls itself", "return calls_the_other(x) * 2",
                      "write a loop"),
    tries: ("tries has a try statement", "def tries(x):|return checked(x)", "with if"),
    makes_complex: ("makes_complex returns complex64, accepted numbers and bools, or a tuple",
                    "def makes_complex(x):", "return z.real, z.imag"),
    makes_nothing: ("makes_nothing returns None", "def makes_nothing(x):",
                    "return a value on every path"),
    makes_a_list: ("makes_a_list makes a list", "values = [x]", "use variables, or a tuple"),
    makes_an_array: ("makes_an_array", "def makes_an_array(x):|values = np.zeros(3)", "use"),
    has_no_attribute: ("Numba cannot compile has_no_attribute(float32): Unknown attribute 'missing'"
                       " of type float32", "return x.missing", ""),
    takes_two: ("takes_two: missing a required argument: 'y', accepted takes_two(x, y)", "", ""),
    takes_any: ("given takes_any(*x), accepted a function of positional parameters", "", "wrap it"),
    bn.exp: ("given the function exp, accepted a Python function", "", "call it: exp(...)"),
    np.sin: ("given the function sin, accepted a Python function", "", "wrap it in a function"),
    raising: ("given the kernel raising, accepted a Python function", "", "call it as it is"),
    3: ("given 3, accepted a Python function", "", ""),
}


@pytest.mark.parametrize("function", ERRORS, ids=lambda f: getattr(f, "__name__", str(f)))
@pytest.mark.parametrize("where", ["cpu", "emulator"])
def test_mistakes_are_shown_at_their_lines(function, where):
    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(function, x[r])

    message, lines, hint = ERRORS[function]
    x = np.ones(4, np.float32)

    with pytest.raises(BlockTypeError) as error:
        if where == "cpu":
            kernel[1](x, x.copy(), B=4, interpret=True)
        else:
            emulated_gpu.launch(kernel, 1, (x, x.copy()), {"B": 4})

    text = str(error.value)
    assert text.startswith("map: ") and message in text.split("\n")[0]
    assert any(line in text for line in lines.split("|"))
    assert "out[r] = bn.map(function, x[r])" in text and "^^^^" in text
    assert hint in text


@pytest.mark.parametrize("call, message", [
    ("bn.map(takes_two, x, x[r])", "given an array, accepted tiles and numbers"),
    ("bn.map(takes_two, x[r], 'a')", "given 'a', accepted tiles and numbers"),
    ("bn.map(takes_two, x[r], x[r], mask=x[r])", "mask must be bool, given tile<4xfloat32>"),
    ("bn.map(takes_two, x[r], x[r], mask=x[r] > 0, other=(1, 2))", "given 2 values as other"),
    ("bn.map(takes_two, x[r], x[r], masked=True)", "got an unexpected keyword argument 'masked'"),
    ("bn.map(lambda a: a * n, x[r])", "reads run-time values of the kernel"),
])
def test_mistakes_of_a_call_are_shown(call, message, tmp_path):
    file = tmp_path / "program.py"
    file.write_text("import blocknumba as bn\ndef takes_two(x, y): return x + y\n@bn.jit\n"
                    "def kernel(x, out, n, B: bn.constexpr):\n    r = bn.block(0, B)\n"
                    f"    out[r] = {call}\n")
    names = {"__name__": "program"}
    exec(compile(file.read_text(), file, "exec"), names)
    x = np.ones(4, np.float32)

    with pytest.raises(BlockError) as error:
        names["kernel"][1](x, x.copy(), 2.5, B=4, interpret=True)

    assert message in str(error.value) and "^^^^" in str(error.value)


@pytest.mark.parametrize("body, what", [
    ("return x + cuda.threadIdx.x", "indices of threads and blocks"),
    ("cuda.syncthreads()\n    return x", "barriers and shuffles"),
    ("print(x)\n    return x", "print")])
def test_what_is_not_a_matter_of_one_element_is_refused(body, what):
    names = {"cuda": cuda}
    exec(f"def function(x):\n    {body}\n", names)
    function = names["function"]

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(function, x[r])

    x = np.ones(4, np.float32)
    with pytest.raises(BlockTypeError, match=f"function uses {what}"):
        emulated_gpu.launch(kernel, 1, (x, x.copy()), {"B": 4})


# what it costs --------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_120"])
def test_functions_are_inlined(target):
    def function(x, y):
        return (x, y) if x < y else (y * 0.5, x)

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        low, high = bn.map(function, x[r], 1.5)
        out[r] = low + high

    compiled = bn.compile(kernel, ("f32[::1]", "f32[::1]"), {"B": BLOCK}, target=target)

    assert "call" not in compiled.asm["ptx"] and ".local" not in compiled.asm["ptx"]
    assert ".f64" not in compiled.asm["ptx"] and "CALL" not in compiled.asm["sass"]
    assert compiled.stats.spills == 0


def test_two_functions_of_one_name_are_told_apart(device):
    def made(by):
        def function(x):
            return x * by
        return function

    double, triple = made(2), made(3)

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(double, x[r]) * 100 + bn.map(triple, x[r])

    x = np.arange(COUNT)

    found, = launched(device, kernel, [x], x)

    assert np.array_equal(found, 203 * x)


def test_stats_show_where_float64_appears():
    def function(n):
        half = n * 2
        return np.float32(half / 3)

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(function, x[r])

    def stats(dtype):
        types = (f"{dtype}[::1]", "f32[::1]")
        return bn.compile(kernel, types, {"B": BLOCK}, target="sm_90a").stats

    line = function.__code__.co_firstlineno + 2
    assert [text.split("  ")[0] for text in stats("i32").doubles] == [f"test_map.py:{line}"]
    assert "float64\n  test_map.py" in str(stats("i32"))
    assert stats("i64").doubles == stats("f64").doubles == ()


def test_each_element_has_a_thread_of_its_own_where_there_are_enough():
    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(escape, x[r], x[r], 9)

    def warps(size):
        compiled = bn.compile(kernel, ("f32[::1]", "i32[::1]"), {"B": size}, target="sm_90a")
        return compiled.machine.threads // 32

    assert [warps(size) for size in (16, 64, 256, 512)] == [1, 2, 8, 8]


# calls without bn.map -------------------------------------------------------------------------
@numba.njit
def rounded_up(n, to=8):
    return (n + to - 1) // to * to


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "python"])
def test_numbas_functions_are_called_for_each_element_of_tiles(device, kind):
    function = KINDS[kind]

    @bn.jit
    def kernel(cx, cy, out, B: bn.constexpr):
        r = bn.block(0, B)
        total = 0
        for limit in bn.static_range(20, 22):
            total += function(cx[r], cy[r], limit)
        out[r] = total + function(cx=cx[r], limit=1, cy=cy[r])

    cx, cy = uniform(-2, 1), uniform(-1, 1, seed=1)
    expected = sum(escape_in_numpy(cx, cy, limit) for limit in (20, 21, 1))

    found, = launched(device, kernel, [expected], cx, cy)

    assert np.array_equal(found, expected)


def test_numbas_functions_are_inlined_where_nothing_is_a_tile(device):
    @numba.njit
    def first(array, r, scale):
        while scale < 4:
            scale *= 2
        return array[r] * scale

    @bn.jit
    def kernel(x, out, n, B: bn.constexpr):
        r = bn.block(0, rounded_up(B, to=4))
        y = bn.zeros((rounded_up(B - 1, 4),), out.dtype)
        limit = rounded_up(n)
        for _ in range(rounded_up(n, to=2)):
            y += first(x, r, 1)
        bn.static_assert(y.shape == (B,))
        out[r] = bn.where(r.index < limit, y, 0)

    x = np.random.default_rng(9).integers(0, 9, COUNT).astype(np.int32)
    expected = np.where(np.arange(COUNT) < 16, x * 4 * 10, 0)
    found = np.full_like(x, 77)
    device.run(kernel, bn.cdiv(COUNT, 64), x, found, 9, B=64)

    assert np.array_equal(found, expected)


def test_a_function_of_a_helper_is_mapped_too(device):
    @numba.njit
    def clipped(x, low=0.0, high=1.0):
        if x < low:
            return low
        return high if x > high else x

    def helper(tile, high):
        return clipped(tile, high=high) + clipped(tile)

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        y = helper(x[r], 2.0)
        bn.static_assert(y.dtype == bn.float32)
        out[r] = y

    x = uniform(-3, 3)
    expected = np.clip(x, 0, 2) + np.clip(x, 0, 1)

    found, = launched(device, kernel, [expected], x)

    assert np.array_equal(found, expected)


def test_wrong_arguments_of_numbas_functions_are_refused():
    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = rounded_up(x[r], too=3)

    x = np.ones(4, np.int32)
    with pytest.raises(BlockTypeError) as error:
        kernel[1](x, x.copy(), B=4, interpret=True)

    assert "rounded_up: got an unexpected keyword argument 'too'" in str(error.value)
    assert "out[r] = rounded_up(x[r], too=3)" in str(error.value)


# native code of the CPU -----------------------------------------------------------------------
def in_native_code(kernel, grid, *arguments, **named) -> None:
    compiled = kernel[grid](*arguments, device="cpu", **named)
    assert compiled.native is not None


def test_native_code_leaves_out_elements_that_raise():
    x = np.random.default_rng(8).integers(-9, 9, COUNT).astype(np.int32)
    found = np.full_like(x, 77)

    in_native_code(raising, bn.cdiv(COUNT, BLOCK), x, found, B=BLOCK)

    assert np.array_equal(found, np.where((x < 0) | (x > 5), 0, x + 1))


def test_native_code_maps_tiles_scalars_and_masks():
    def function(x, limit, flag):
        steps = 0
        while x > 1 and steps < limit:
            x /= 2
            steps += 1
        return x, np.int16(steps), not flag

    @bn.jit
    def kernel(x, flag, left, steps, flags, first, B: bn.constexpr):
        r = bn.block(0, B)
        y = x[r] * 2
        left[r], steps[r], flags[r] = bn.map(function, y, 5, flag[r], mask=y > 0,
                                             other=(y, -1, True))
        one, _, _ = bn.map(function, y.max() + 0, 1, True)
        first[bn.program_id(0)] = one

    x = uniform(-9, 99)
    flag = x > 40
    y = 2 * x
    taken = np.clip(np.ceil(np.log2(np.maximum(y.astype(float), 1))), 0, 5).astype(np.int16)
    expected = [np.where(y > 0, np.ldexp(y, -taken.astype(np.int32)), y),
                np.where(y > 0, taken, -1).astype(np.int16), np.where(y > 0, ~flag, True)]
    found = [np.full_like(array, 77) for array in expected]
    first = np.full(bn.cdiv(COUNT, BLOCK), 77, np.float32)

    in_native_code(kernel, bn.cdiv(COUNT, BLOCK), x, flag, *found, first, B=BLOCK)

    assert all(map(np.array_equal, found, expected))
    blocks = np.split(np.append(y, np.zeros(-COUNT % BLOCK, np.float32)), len(first))
    assert np.array_equal(first, [max(block) / 2 for block in blocks])
