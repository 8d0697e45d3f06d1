"""The scan of a whole array over programs (examples/scan.py): any order of programs, any number."""

import emulated_gpu
import numpy as np
import pytest
import scan

DTYPES = (np.int32, np.uint32, np.int64, np.float32, np.float64)


def arguments(size: int, block: int, dtype: type) -> tuple:
    """Elements, a poisoned result, states and a ticket; floats are whole numbers."""
    x = np.random.default_rng().integers(0, 100, size).astype(dtype)
    programs = -(-size // block)
    return x, np.full(size, 77, dtype), np.zeros((2, programs), np.int64), np.zeros(1, np.int64)


def check(x: np.ndarray, out: np.ndarray) -> None:
    np.testing.assert_array_equal(out, np.cumsum(x, dtype=x.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed, resident", [(None, 0), (None, 1), (1, 3), (2, 8), (3, 29)])
def test_every_order_of_warps_gives_the_same_sums(dtype, seed, resident):
    given = arguments(3_650, 128, dtype)

    emulated_gpu.launch(scan.cumulative_sum, given[2].shape[1], given,
                        dict(BLOCK=128, WINDOW=8, num_warps=2), "sm_90a", seed, resident)

    check(*given[:2])


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
@pytest.mark.parametrize("window, warps", [(1, 1), (32, 1), (32, 4), (128, 4), (256, 2)])
def test_windows_narrower_and_wider_than_a_program(target, window, warps):
    given = arguments(2_500, 64, np.int32)

    emulated_gpu.launch(scan.cumulative_sum, given[2].shape[1], given,
                        dict(BLOCK=64, WINDOW=window, num_warps=warps), target, 5, 11)

    check(*given[:2])


def test_states_serve_launch_after_launch_of_any_size():
    _, _, states, ticket = arguments(4_000, 64, np.int32)
    for seed, size in enumerate((4_000, 1, 64, 65, 3_999, 2_000)):
        x, out, *_ = arguments(size, 64, np.int32)

        emulated_gpu.launch(scan.cumulative_sum, -(-size // 64), (x, out, states, ticket),
                            dict(BLOCK=64, WINDOW=32, num_warps=1), "sm_90a", seed)

        check(x, out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("debug", [False, True])
def test_the_cpu_device_sums_and_finds_no_race(dtype, debug):
    x, out, states, ticket = arguments(5_001, 256, dtype)

    scan.cumulative_sum[states.shape[1]](x, out, states, ticket, BLOCK=256, WINDOW=16, debug=debug)

    check(x, out)
