"""Grids and arguments that once crashed a launch or failed obscurely."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError, BlockTypeError


@bn.jit
def fill(x, value, B: bn.constexpr):
    x[bn.block(0, B)] = bn.full((B,), 1, x.dtype) * value


@pytest.mark.parametrize("grid", [0, (0,), (0, 1), (4, 0), (4, 1, 0)], ids=str)
def test_grid_with_a_zero_launches_nothing(device, grid):
    """numba/numba#5017"""
    x = np.zeros(8, np.float32)
    device.run(fill, grid, x, 1.0, B=8)
    np.testing.assert_array_equal(x, 0)
    device.run(fill, 1, x, 1.0, B=8)
    device.run(fill, grid, x, 2.0, B=8)
    np.testing.assert_array_equal(x, 1)


def test_grid_with_a_zero_still_checks_the_arguments(device):
    """numba/numba#5017"""
    with pytest.raises(BlockTypeError, match="value"):
        device.run(fill, 0, np.zeros(8, np.float32), B=8)


@pytest.mark.parametrize("grid", [2.0, True, (1, 2, 3, 4), (), "1", (1, 2.5), None], ids=repr)
def test_grid_that_is_not_ints_is_a_type_error(device, grid):
    """numba/numba#1976"""
    with pytest.raises(TypeError, match="fill: given .* grid"):
        device.run(fill, grid, np.zeros(8, np.float32), 1.0, B=8)


def test_negative_grid_is_a_value_error(device):
    """numba/numba#1976"""
    with pytest.raises(ValueError, match="-1"):
        device.run(fill, -1, np.zeros(8, np.float32), 1.0, B=8)


@pytest.mark.parametrize("grid", [np.int64(2), [2], (np.int32(2), 1)], ids=repr)
def test_grid_of_numpy_ints_is_accepted(device, grid):
    """numba/numba#1976"""
    x = np.zeros(16, np.float32)
    device.run(fill, grid, x, 3.0, B=8)
    np.testing.assert_array_equal(x, 3)


def test_grid_can_be_a_function_of_the_constants(device):
    """numba/numba#1976"""
    x = np.zeros(16, np.float32)
    device.run(fill, lambda meta: (bn.cdiv(16, meta["B"]),), x, 3.0, B=4)
    np.testing.assert_array_equal(x, 3)


@pytest.mark.parametrize("arguments, named, part", [
    ((), {"B": 8}, "x"), ((1.0, 2.0, 3.0, 4.0), {"B": 8}, "positional"),
    ((1.0,), {"BLOCK": 8}, "BLOCK"), ((1.0,), {}, "B")])
def test_wrong_arguments_are_named(device, arguments, named, part):
    """numba/numba#1976"""
    arrays = (np.zeros(8, np.float32),) if arguments else ()
    with pytest.raises(BlockTypeError, match=part):
        device.run(fill, 1, *arrays, *arguments, **named)


def test_list_is_not_an_array(device):
    """triton-lang/triton#174"""
    with pytest.raises(BlockError, match="x"):
        device.run(fill, 1, [0.0] * 8, 1.0, B=8)


@bn.jit
def speak():
    bn.device_print("program", bn.program_id(0))


def test_a_kernel_without_parameters_is_launched(capsys):
    speak[2](device="cpu")

    assert capsys.readouterr().out.splitlines() == [f"pid ({i}, 0, 0) idx () program: {i}"
                                                    for i in range(2)]


def test_an_argument_of_a_kernel_without_parameters_is_an_error():
    with pytest.raises(BlockTypeError, match="given 1 positional arguments, accepted none"):
        speak[1](3)
