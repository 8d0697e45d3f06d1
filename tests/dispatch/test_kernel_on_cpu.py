"""Kernels from the decorator to the result, on the CPU."""

import threading
import types

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.interpreter import launch
from blocknumba.tile_ir.interpreter.machine import plan

SCALE = 2


@bn.jit
def add(x, y, out, B: bn.constexpr = 64):
    r = bn.block(0, B)
    out[r] = x[r] + y[r]


@bn.jit
def scale(x, out, factor, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * factor


@bn.jit
def scale_by_global(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * SCALE


@bn.jit
def add_bias(x, bias, out, B: bn.constexpr):
    r = bn.block(0, B)
    value = x[r]
    if bias is not None:
        value += bias[r]
    out[r] = value


@pytest.fixture
def x():
    return np.arange(1000, dtype=np.float32)


def run(kernel, *arguments, **keywords):
    return kernel[bn.cdiv(1000, 64)](*arguments, interpret=True, **keywords)


def test_a_kernel_changes_numpy_arrays_in_place(x):
    out = np.zeros_like(x)

    run(add, x, 2 * x, out)

    np.testing.assert_array_equal(out, 3 * x)


@pytest.mark.parametrize("view", [
    lambda a: a[::2], lambda a: a[::-1], lambda a: a[5:900], lambda a: a.reshape(10, 100)[:, 7],
    lambda a: a[3:4], lambda a: a[:0]],
    ids=["step", "reversed", "shifted", "column", "one", "empty"])
def test_views_of_arrays_are_read_and_written(x, view):
    out = np.full(1000, -1, np.float32)
    expected = out.copy()
    view(expected)[...] = 2 * view(x)

    run(add, view(x), view(x), view(out))

    np.testing.assert_array_equal(out, expected)


def test_the_same_array_may_be_passed_twice(x):
    expected = 2 * x

    run(add, x, x, x)

    np.testing.assert_array_equal(x, expected)


def test_defaults_and_keywords_reach_the_kernel(x):
    out = np.zeros_like(x)

    run(add, x, out=out, y=x, B=64)

    np.testing.assert_array_equal(out, 2 * x)


def test_equal_calls_share_code_and_others_do_not(x):
    kernel = bn.jit(add.python_function)
    first = run(kernel, x, x, x.copy())

    assert run(kernel, x, x, x.copy()) is first
    assert run(kernel, x, x, x.copy(), B=128) is not first
    assert run(kernel, x, x, x.copy(), num_warps=8) is not first
    assert run(kernel, x, x, x.astype(np.float64)) is not first


def test_an_optional_array_makes_two_specializations(x):
    kernel = bn.jit(add_bias.python_function)
    compiled = []
    for bias in (x, None, x, None):
        out = np.zeros_like(x)
        compiled.append(run(kernel, x, bias, out, B=64))
        np.testing.assert_array_equal(out, x if bias is None else 2 * x)

    assert compiled[0] is compiled[2] is not compiled[1]
    assert compiled[1] is compiled[3]


def test_changing_a_global_never_runs_stale_code(x, monkeypatch):
    out = np.zeros_like(x)
    for value in (2, 3, 2, 0.5):
        monkeypatch.setitem(globals(), "SCALE", value)
        run(scale_by_global, x, out, B=64)

        np.testing.assert_array_equal(out, x * np.float32(value))


def test_the_dtype_of_a_scalar_does_not_depend_on_its_value():
    x, out = np.arange(8, dtype=np.int8), np.zeros(8, np.int64)

    for factor in (1, 2, 16, 1000):
        scale[1](x, out, factor, B=8, interpret=True)

        np.testing.assert_array_equal(out, x * np.array(factor).astype(np.int8))


@pytest.mark.parametrize("declared, value, expected", [
    ("float16", -65500.0, np.float16(-65500.0)), ("float32", 42, np.float32(42)),
    ("float64", 0.1, np.float64(0.1)), ("int64", 2**40, np.int64(2**40)),
    ("uint64", 2**63 + 5, np.uint64(2**63 + 5)), ("bool_", True, np.bool_(True)),
    ("bfloat16", 1.5, ml_dtypes.bfloat16(1.5)), ("int8", np.array(-5, np.int64), np.int8(-5))])
def test_a_declared_number_arrives_exactly(declared, value, expected):
    def store(out, value):
        out[()] = value
    store.__annotations__["value"] = f"bn.{declared}"
    out = np.zeros((), expected.dtype)

    bn.jit(store)[1](out, value, interpret=True)

    assert out.tobytes() == expected.tobytes()


def test_a_grid_of_zero_runs_nothing_but_checks_the_arguments(x):
    out = np.zeros_like(x)

    for grid in (0, (0,), (0, 1), (4, 0)):
        add[grid](x, x, out, interpret=True)
    with pytest.raises(BlockTypeError, match="add: argument y: given 'y'"):
        add[0](x, "y", out, interpret=True)

    assert not out.any()


def test_a_grid_may_be_a_function_of_arguments_and_options(x):
    out = np.zeros_like(x)

    add[lambda meta: bn.cdiv(meta["x"].size, meta["B"]) * meta["num_warps"] // 4](
        x, x, out, B=128, num_warps=4, interpret=True)

    np.testing.assert_array_equal(out, 2 * x)


def test_a_read_only_array_can_be_read_and_not_stored_to(x):
    x.flags.writeable = False

    run(add, x, x, np.zeros(1000, np.float32))
    with pytest.raises(BlockValueError, match="add: argument out is read-only, and the kernel"):
        run(add, x, x, x)


def test_a_read_only_array_does_not_compile_anew(x):
    kernel = bn.jit(add.python_function)
    first = run(kernel, x, x, x.copy())
    x.flags.writeable = False

    assert run(kernel, x, x, x.copy()) is first


def test_an_array_with_an_axis_of_one_element_is_contiguous_whatever_its_stride(x):
    odd = np.lib.stride_tricks.as_strided(x, (1, 10), (5, 4))
    even = x[:10].reshape(1, 10)

    assert bn.jit(copy2).warmup(odd, even, interpret=True).specialization == (
        bn.jit(copy2).warmup(even, even, interpret=True).specialization)


def copy2(x, out):
    out[bn.span(0, 1), bn.span(0, 16)] = x[bn.span(0, 1), bn.span(0, 16)]


def test_many_threads_share_one_compilation(x):
    kernel = bn.jit(add.python_function)
    results, errors = [], []

    def work():
        out = np.zeros_like(x)
        try:
            results.append(run(kernel, x, x, out))
            np.testing.assert_array_equal(out, 2 * x)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert len(set(map(id, results))) == 1


def test_warmup_compiles_and_runs_nothing(x):
    out = np.zeros_like(x)

    compiled = add.warmup(x, x, out, B=32, interpret=True, grid=(1,))

    assert not out.any()
    assert "store" in compiled.asm["tile"]
    assert run(add, x, x, out, B=32) is compiled


def test_a_kernel_without_a_grid_is_an_error():
    with pytest.raises(BlockTypeError, match=r"(?s)add: called without a grid.*use add\[1\]"):
        add(1, 2, 3)


@pytest.mark.parametrize("value, message", [
    ([1.0], r"(?s)argument y: given \[1.0\].*hint: use np.asarray"),
    ("text", "(?s)argument y: given 'text'.*annotate the parameter: y: bn.constexpr"),
    ((1, {2}), r"(?s)argument y\[1\]: given a set, accepted arrays, numbers, bools and None"),
    (np.float32, "(?s)argument y: given the class float32.*bn.constexpr"),
    (1j, "argument y: given 1j"),
    (object, "argument y: given the class object")])
def test_a_value_that_is_no_argument_is_an_error_with_advice(x, value, message):
    with pytest.raises(BlockTypeError, match=message):
        run(add, x, value, x)


def test_an_unknown_option_of_the_decorator_is_an_error():
    with pytest.raises(BlockTypeError, match="(?s)jit: given the options num_wraps, accepted.*did you mean num_warps"):
        bn.jit(num_wraps=4)


@pytest.mark.parametrize("given", [int, "f", types.SimpleNamespace(), len])
def test_only_python_functions_are_kernels(given):
    with pytest.raises(BlockTypeError, match="jit: given .*, accepted a Python function"):
        bn.jit(given)


def test_a_kernel_looks_like_its_function():
    assert add.__name__ == "add"
    assert repr(add) == "<kernel add(x, y, out, B)>"
    assert add.py_func is add.python_function


def test_a_mistake_in_the_kernel_names_the_line_and_is_not_remembered(x):
    @bn.jit
    def wrong(x, n):
        x[bn.span(0, n)] = 1

    for _ in range(2):
        with pytest.raises(BlockTypeError, match=r"(?s)test_kernel_on_cpu.py, line \d+, in wrong"):
            wrong[1](x, 7, interpret=True)


def test_stats_of_an_interpreted_kernel_are_an_error(x):
    compiled = run(add, x, x, x.copy())

    with pytest.raises(BlockValueError, match="stats: add was compiled for the interpreter"):
        compiled.stats  # noqa: B018


@bn.jit
def copy_both(a, a_step, b, b_step, out, N: bn.constexpr):
    """out = [a, b], each with its own step; the loop exchanges the two."""
    first, second = a + 0, b + 0
    for row in range(2):
        offsets = bn.arange(0, N)
        bn.store(out + row * N + offsets, bn.load(first + offsets * a_step))
        first, second = second, first
        a_step, b_step = b_step, a_step


@pytest.mark.parametrize("a_step, b_step", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_a_number_that_is_one_may_be_reassigned(x, a_step, b_step):
    out = np.zeros(16, np.float32)

    copy_both[1](x, a_step, x[100:], b_step, out, N=8, interpret=True)

    np.testing.assert_array_equal(out[:8], x[:8 * a_step:a_step])
    np.testing.assert_array_equal(out[8:], x[100:100 + 8 * b_step:b_step])


def test_the_code_that_was_compiled_can_be_inspected(x):
    kernel = bn.jit(add.python_function)
    compiled = run(kernel, x, x, x.copy())

    assert kernel.inspect_tile() == {compiled.specialization: compiled.asm["tile"]}
    assert kernel.inspect_asm() == {}


def test_a_kernel_is_made_ready_for_the_cpu_once(x, monkeypatch):
    planned = []
    monkeypatch.setattr(launch, "plan", lambda region: planned.append(region) or plan(region))

    @bn.jit
    def twice(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = x[r] * 2

    out = np.zeros_like(x)
    for scale in (1, 3):
        twice[bn.cdiv(1000, 64)](scale * x, out, B=64, interpret=True)
        np.testing.assert_array_equal(out, 2 * scale * x)

    assert len(planned) == 1
