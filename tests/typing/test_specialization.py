"""Constants, helpers and static loops are gone once a kernel is specialised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from launching import kernel_of, launch, op_names

import blocknumba as bn
from blocknumba.errors import BlockError, BlockTypeError, UnsupportedError

FACTOR = 3
SIZES = (2, 4, 8)
WRAPPED = bn.constexpr(7)


def result(function, *, count: int = 8, dtype=np.int32, **arguments) -> list:
    """What a kernel writes to its parameter out."""
    out = np.zeros(count, dtype)
    launch(function, out=out, **arguments)
    return out.tolist()


# constants ------------------------------------------------------------------------------------
def test_branches_on_constants_are_pruned():
    def kernel(out, B):
        if B * 2 > 64:
            half = B // 2
        else:
            half = B // 4
        out[bn.span(0, half)] = bn.zeros((half,), bn.int32) + half

    assert result(kernel, constants={"B": 4}) == [1] + [0] * 7
    assert "if" not in op_names(kernel_of(kernel, constants={"B": 64}, out=np.zeros(8, np.int32)))


@pytest.mark.parametrize("value,expected", [
    (None, 0), (5, 5), (2.5, 2), (True, 1), ("text", 4), ((1, 2), 2)])
def test_constants_of_all_kinds_are_values(value, expected):
    def kernel(out, VALUE):
        if VALUE is None:
            out[0] = 0
        elif isinstance(VALUE, (str, tuple)):
            out[0] = len(VALUE)
        else:
            out[0] = int(VALUE)

    assert result(kernel, constants={"VALUE": value})[0] == expected


def test_dtypes_are_constants_in_any_spelling():
    def kernel(out, DTYPE):
        out[0] = bn.full((4,), 300.7, bn.float32).to(DTYPE).max(axis=0)

    for dtype in (np.int16, "int16", np.dtype("int16"), bn.int16):
        assert result(kernel, constants={"DTYPE": dtype})[0] == 300


def test_a_condition_on_types_prunes_too():
    """What follows from types is not known before type inference."""
    def kernel(x, out):
        tile = x[bn.span(0, 4)]
        if tile.dtype == bn.float16 and tile.shape[0] == 4:
            out[0] = 1
        elif tile.ndim == 2:
            out[0] = tile.no_such_attribute
        else:
            out[0] = bn.sum(tile.to(bn.int32))

    assert result(kernel, x=np.ones(4, np.float16))[0] == 1
    assert result(kernel, x=np.ones(4, np.float32))[0] == 4


def test_an_argument_may_be_none():
    """pytorch/pytorch#138546"""
    def kernel(x, bias, out):
        r = bn.span(0, 8)
        tile = x[r]
        if bias is not None:
            tile += bias[r]
        out[r] = tile

    x = np.arange(8, dtype=np.int32)

    assert result(kernel, x=x, bias=None) == x.tolist()
    assert result(kernel, x=x, bias=x) == (2 * x).tolist()


def test_arithmetic_of_constants_is_pythons():
    """triton-lang/triton#10920"""
    def kernel(out, A, B):
        out[0] = (-5.0) % 3.0
        out[1] = A % B
        out[2] = A // B
        out[3] = -(A**2) if A < 0 else A
        out[4] = math.floor(-2.5) + round(2.5)
        out[5] = 7 if A < B <= 3 else 8
        out[6] = A in (1, B) or not B
        out[7] = min(A, B, 9) + max((A, B))

    assert result(kernel, constants={"A": -7, "B": 3}) == [1, 2, -3, -49, -1, 7, 0, -4]


def test_globals_and_closures_are_read_by_value():
    offset = 10

    def kernel(out):
        out[0] = FACTOR + offset
        out[1] = SIZES[1] + SIZES[::-1][0] + len(SIZES)
        out[2] = WRAPPED
        out[3] = bn.next_power_of_2(SIZES[2] + 1) + bn.cdiv(7, 2)

    assert result(kernel)[:4] == [13, 15, 7, 20]


def test_a_changed_global_is_seen_by_the_next_build(monkeypatch):
    """triton-lang/triton#7322"""
    def kernel(out):
        out[0] = FACTOR

    assert result(kernel)[0] == 3
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert result(kernel)[0] == 5


def test_static_assert_and_static_print_see_constants(capsys):
    def kernel(out, B):
        bn.static_assert(B % 2 == 0, f"B is {B}")
        bn.static_print("B =", B, out.dtype)
        out[0] = B

    assert result(kernel, constants={"B": 4})[0] == 4
    assert capsys.readouterr().out == "B = 4 int32\n"
    with pytest.raises(BlockError, match="static_assert: B is 5"):
        result(kernel, constants={"B": 5})


# helpers --------------------------------------------------------------------------------------
def scaled(x, factor=2, *, shift=0, reverse=False):
    if reverse:
        return shift - x * factor
    return x * factor + shift


def first_at_least(limit, n):
    for i in range(n):
        if i * i >= limit:
            return i
    return -1


def both(a, b):
    return a + b, a - b


def gather_sum(*numbers):
    total = 0
    for number in numbers:
        total += number
    return total


def power(x, n):
    return 1 if n == 0 else x * power(x, n - 1)


def forever(x):
    return forever(x + 1)


@bn.jit
def compiled_helper(x, ADD: bn.constexpr = 4):
    return x + ADD


def test_helpers_take_arguments_as_in_python():
    def kernel(out, n):
        out[0] = scaled(n)
        out[1] = scaled(n, 3, shift=1)
        out[2] = scaled(factor=n, x=2, reverse=True)
        out[3] = gather_sum(n, 2, 3) + gather_sum() + gather_sum(*SIZES) + max(*both(n, 1))
        pair = both(n, 1)
        out[4] = scaled(*pair)
        a, b = both(n, 3)
        out[5] = a * 100 + b
        out[6] = compiled_helper(n) + compiled_helper(n, ADD=1)
        out[7] = power(n, 3)

    n = 5
    assert result(kernel, n=n) == [10, 16, -10, 30, 24, 802, 15, 125]


@pytest.mark.parametrize("limit", [0, 5, 100])
def test_helpers_return_from_loops(limit):
    """triton-lang/triton#2567"""
    def kernel(out, limit):
        out[0] = first_at_least(limit, 5)

    assert result(kernel, limit=limit)[0] == first_at_least(limit, 5)


def test_functions_are_values():
    def apply(function, x):
        return function(x)

    def kernel(out, n, F):
        double = lambda x: x * 2  # noqa: E731
        out[0] = F(n)
        out[1] = apply(double, n) + apply(lambda x: x + n, 1)

        def local(x, y=10):
            return x + y + n

        out[2] = local(1)
        n += 1
        out[3] = local(1, y=0)  # sees n as it is when called
        for f in (scaled, double):
            out[4] = f(n)
        out[5] = apply(F, n)

    assert result(kernel, n=5, constants={"F": scaled})[:6] == [10, 16, 16, 7, 12, 12]


def test_recursion_that_ends_at_compile_time_is_unrolled():
    def kernel(out, n):
        out[0] = power(n, 10)

    names = op_names(kernel_of(kernel, out=np.zeros(1, np.int32), n=2))

    assert names.count("mul") == 9  # and one by 1, which is folded
    assert result(kernel, n=2)[0] == 1024


def test_recursion_without_end_is_an_error():
    def kernel(out, n):
        out[0] = forever(n)

    with pytest.raises(UnsupportedError, match="forever: recursion that does not end"):
        result(kernel, n=2)


def test_a_helper_with_wrong_arguments_is_an_error():
    def kernel(out, n):
        out[0] = scaled(n, 1, 2)

    with pytest.raises(BlockTypeError, match=r"scaled: too many positional arguments, accepted "
                                             r"scaled\(x, factor=2, \*, shift=0, reverse=False\)"):
        result(kernel, n=2)


# static loops ---------------------------------------------------------------------------------
def test_static_loops_are_unrolled():
    def kernel(out, N):
        x = 2
        for i in bn.static_range(N):
            for j in bn.static_range(i):
                out[i] += bn.arange(0, x).max(axis=0) + j
                x *= 2
        for i, size in enumerate(SIZES):
            out[i] += bn.zeros((size,), bn.int32).shape[0]
        for a, b in ((1, 2), (3, 4)):
            out[a] += b

    names = op_names(kernel_of(kernel, constants={"N": 3}, out=np.zeros(8, np.int32)))

    assert "for" not in names and "loop" not in names
    assert result(kernel, constants={"N": 3})[:4] == [2, 4 + 1 + 2, 8 + 3 + 7 + 1, 4]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_static_loops_may_be_left_at_run_time(n):
    def kernel(out, n):
        for i in bn.static_range(5):
            if i == n:
                break
            if i == n - 2:
                continue
            out[0] += i
        else:
            out[1] = 1
        for i in (7, 8, 9):
            out[2] = i
            if n < 5:
                return

    def plain(out, n):
        for i in range(5):
            if i == n:
                break
            if i == n - 2:
                continue
            out[0] += i
        else:
            out[1] = 1
        for i in (7, 8, 9):
            out[2] = i
            if n < 5:
                return

    expected = [0] * 8
    plain(expected, n)
    assert result(kernel, n=n) == expected


def test_a_loop_over_a_tuple_of_tiles_is_unrolled():
    def kernel(x, out):
        r = bn.span(0, 4)
        tiles = (x[r], x[r] + 1)
        for i, tile in ((0, tiles[0]), (1, tiles[1])):
            out[i] = bn.sum(tile)
        for tile in tiles:
            out[2] += bn.max(tile)

    assert result(kernel, x=np.arange(4, dtype=np.int32))[:3] == [6, 10, 7]


def test_the_size_of_the_ir_is_limited():
    def kernel(out):
        for _ in bn.static_range(5000):
            out[0] += 1

    with pytest.raises(UnsupportedError, match="a loop of 5000 iterations cannot be unrolled"):
        result(kernel)
