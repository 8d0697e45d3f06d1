"""Launches of kernels that take remainders by numbers that they are given."""

import numpy as np
import pytest
from stub_libraries import CupyArray

from blocknumba.dispatch.launch.kernel import jit
from blocknumba.tile_ir.ir.types import ScalarArgument


@pytest.fixture
def wrap(compiler):
    @jit
    def wrap(x, out, M, N):
        """Never compiled: the test's compiler makes it."""
        return x % M, N

    return wrap


def arguments(compiler, name):
    """What code was compiled for, of one argument."""
    return [dict(specialization.arguments)[name] for _, specialization, _ in compiler.compilations]


NUMBERS = [1, 7, 8, 32, 128, 384, 256, 1024, 0, -128, -8, 2**31, 2**31 + 8, -(2**31) - 32]


def test_a_launch_gets_the_code_for_its_divisor_whatever_was_launched_before(stub, compiler, wrap):
    pair = [CupyArray(np.zeros((4, 8), np.float32)) for _ in range(2)]

    for _ in range(2):
        codes = [wrap[1](*pair, M=number, N=3).specialization for number in NUMBERS]

    for number, code in zip(NUMBERS, codes, strict=True):
        found = dict(code.arguments)["M"]
        assert (found.value == 1) == (number == 1)
        assert not number % found.divisibility
        assert found.minimum is None or number >= found.minimum
    # 384 is as 128, 1024 as 256, -128 as 0, and of two that need 64 bits 16 is all that is known
    assert len(codes) - len(set(codes)) == 4


def test_other_numbers_have_no_more_code_than_ever(stub, compiler, wrap):
    pair = [CupyArray(np.zeros((4, 8), np.float32)) for _ in range(2)]

    for number in (16, 32, 128, 1024, 0, -16):
        wrap[1](*pair, M=3, N=number)

    assert len(set(arguments(compiler, "N"))) == 1
    assert arguments(compiler, "N")[0].divisibility == 16
    assert isinstance(arguments(compiler, "M")[0], ScalarArgument)
