"""Triton's dialect: branches that return or assign different things, or nothing."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockNameError, BlockTypeError


@triton.jit
def shaped_by(n):
    if n == 0:
        return tl.arange(0, 4)
    else:
        return tl.arange(0, 8)


@triton.jit
def positive(x, y):
    if x > 0:
        return x, y


@triton.jit
def seven_above(x, limit):
    if x > 10:
        return
    if x > limit:
        return 7


def test_results_that_differ_by_branch_are_refused_though_nobody_reads_them():
    @triton.jit
    def kernel(n):
        shaped_by(n)

    with pytest.raises(BlockTypeError) as caught:
        kernel.warmup(3, grid=(1,))

    assert str(caught.value).startswith(
        "the value that shaped_by returns: given tile<4xint32> (line 14) on one path and "
        "tile<8xint32> (line 16) on another, accepted one type\n")


@pytest.mark.parametrize("interpret", [True, False])
def test_what_a_path_without_a_return_gives_is_undefined(interpret):
    @triton.jit
    def kernel(out, n):
        x, y = positive(n, 2.5)
        positive(n, 1)
        tl.store(out, x + y)
        tl.store(out + 1, seven_above(n, 3))

    out = np.full(2, -1, np.float32)
    kernel[(1,)](out, 4, interpret=interpret)

    assert out.tolist() == [6.5, 7.0]


def test_a_variable_that_is_none_on_a_path_is_refused():
    @triton.jit
    def kernel(out, n):
        x = None
        if n > 0:
            x = n
        tl.store(out, x)

    with pytest.raises(BlockTypeError, match="variable 'x': given None"):
        kernel.warmup(np.zeros(1, np.int32), 4, grid=(1,))


def test_a_variable_that_a_path_does_not_assign_is_refused():
    @triton.jit
    def kernel(out, n):
        if n > 0:
            x = n
        tl.store(out, x)

    with pytest.raises(BlockNameError, match="^variable 'x': assigned on one path and not on"):
        kernel.warmup(np.zeros(1, np.int32), 4, grid=(1,))


def test_a_variable_is_refused_where_another_path_joins_before_it_is_read():
    @triton.jit
    def kernel(out, n):
        if n > 0:
            x = n
        for i in range(n):
            if i > 2:
                x = i
        tl.store(out, x)

    with pytest.raises(BlockNameError, match="^variable 'x': assigned on one path and not on"):
        kernel.warmup(np.zeros(1, np.int32), 4, grid=(1,))


def test_a_read_that_types_close_asks_for_no_assignment():
    @triton.jit
    def kernel(out, n):
        if n > 0:
            x = n
            tl.store(out, x)
        if out.dtype.element_ty == tl.float32:
            tl.store(out, x)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 4)

    assert out[0] == 4


@pytest.mark.parametrize("interpret", [True, False])
def test_what_constants_and_early_returns_decide_is_assigned(interpret):
    @triton.jit
    def kernel(out, n, KIND: tl.constexpr):
        if KIND == 1:
            x = n
        elif out.dtype.element_ty == tl.int32:
            x = n + 1
        if n < 0:
            return
        else:
            y = x * 2
        for i in tl.static_range(2):
            last = y + i
        tl.store(out, last)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 4, KIND=2, interpret=interpret)

    assert out[0] == 11
