"""Mathematical ops keep their stated errors where they overflow, vanish and change formulas."""

import math_limits
import numpy as np
import pytest
from math_oracles import Long

pytestmark = pytest.mark.skipif(
    np.finfo(Long).nmant < 60, reason="this machine has no float wider than float64 as an oracle")
EMULATED = 4  # functions, of each dtype: math_limits.py runs all of them


both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def require_stated_errors(device, count, dtype):
    """Draw functions, and numbers for them."""
    rng = np.random.default_rng()
    chosen = tuple(map(str, rng.choice(math_limits.NAMES, count, replace=False)))

    found = list(math_limits.failures(device, chosen, dtype, rng, 2 * math_limits.SIZE))

    assert not found, "\n".join(found)


@both_dtypes
def test_errors_at_limits_are_as_stated(dtype):
    require_stated_errors("interpreter", len(math_limits.NAMES), dtype)


@both_dtypes
def test_errors_of_emulated_code_at_limits_are_as_stated(dtype):
    require_stated_errors("emulator", EMULATED, dtype)


@pytest.mark.gpu(emulated="test_errors_of_emulated_code_at_limits_are_as_stated")
@both_dtypes
def test_errors_of_a_gpu_at_limits_are_as_stated(dtype):
    require_stated_errors("gpu", len(math_limits.NAMES), dtype)
