"""Kernels whose code an import hook has changed: pytest rewrites the asserts of this file."""

from __future__ import annotations

import os
import textwrap

import numpy as np
import pytest

import blocknumba as bn

from blocknumba.errors import BlockAssertionError, BlockError
from blocknumba.typing.numba_ir.written import as_written, written_code

LIMIT = 4
ENVIRONMENT = os.environ


def checked(value, limit=LIMIT):
    assert value < limit, "too large"
    return value + 1


@bn.jit
def asserts(x, n, B: bn.constexpr):
    """Assertions of constants and of run-time values, here and in a helper."""
    assert B > 1, f"B must be greater than 1, not {B}"
    assert x.ndim == 1
    assert n < LIMIT
    x[0] = checked(n) * B


def test_this_file_is_rewritten():
    assert "@pytest_ar" in asserts.python_function.__code__.co_names
    assert "@pytest_ar" not in written_code(asserts.python_function).co_names


def test_a_kernel_with_asserts_runs_under_pytest():
    x = np.full(2, np.nan, np.float32)

    asserts[1](x, 3, B=2)

    np.testing.assert_array_equal(x, [8, np.nan])


def test_an_assert_of_constants_fails_with_its_own_message():
    with pytest.raises(BlockAssertionError) as caught:
        asserts[1](np.zeros(2, np.float32), 3, B=1)

    assert caught.value.message == "assert: B must be greater than 1, not 1"
    assert "assert B > 1" in str(caught.value)


@pytest.mark.parametrize("n,line", [(4, "assert n < LIMIT"), (3, "")])
def test_an_assert_of_run_time_values_is_checked_with_debug(n, line):
    def kernel(x, n):
        assert n < LIMIT
        x[0] = n

    x = np.zeros(1, np.float32)
    if not line:
        bn.jit(kernel)[1](x, n, debug=True)
        assert x[0] == n
        return
    with pytest.raises(BlockAssertionError, match=line):
        bn.jit(kernel)[1](x, n, debug=True)


def test_functions_inside_functions_keep_their_variables():
    offset = 5

    @bn.jit
    def kernel(x):
        def add(value, more=2):
            assert value >= 0
            return value + more + offset

        x[0] = add(1)

    x = np.zeros(1, np.float32)
    kernel[1](x)
    assert x[0] == 8


def test_a_function_that_nothing_was_added_to_is_left_as_it_is():
    def plain(x):
        return [y for y in x if y]

    assert as_written(plain) is plain


def test_code_without_source_is_left_as_it_is():
    scope = {}
    exec("def made(x):\n    assert x > 0", scope)

    assert as_written(scope["made"]) is scope["made"]


HOOKED = """
    def kernel(x, n: int):
        from typing import cast as _check
        _check(int, n)
        x[0] = n + 1
"""


def test_calls_that_an_import_hook_adds_are_left_out(tmp_path):
    path = tmp_path / "hooked.py"
    path.write_text("\ndef kernel(x, n: int):\n    x[0] = n + 1\n")
    scope = {"__name__": "hooked"}
    exec(compile(textwrap.dedent(HOOKED), str(path), "exec"), scope)

    x = np.zeros(1, np.float32)
    bn.jit(scope["kernel"])[1](x, 3)

    assert x[0] == 4


def test_what_a_kernel_captures_is_not_printed():
    os.environ["SECRET_OF_THIS_TEST"] = "do not print"

    @bn.jit
    def kernel(x):
        x[0] = ENVIRONMENT

    with pytest.raises(BlockError) as caught:
        kernel[1](np.zeros(1, np.float32))

    assert "do not print" not in str(caught.value) and len(caught.value.message) < 200
    assert "object of class _Environ" in caught.value.message
