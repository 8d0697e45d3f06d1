"""The number of warps that a program gets when nobody says."""

import pytest

from blocknumba.gpu_layout.default_warps import default_num_warps
from blocknumba.tile_ir.parser import parse


def kernel(size, loads=1, dtype="float32"):
    """A kernel that loads tiles of a size."""
    lines = [f"  %v{i} = load %p : tile<{size}x{dtype}>" for i in range(loads)]
    return parse("\n".join([
        "kernel k(", f"  %x: ptr<{dtype}> = pointer(x)", ") {",
        f"  %p = splat %x : tile<{size}xptr<{dtype}>>", *lines, "  return", "}", ""]))


@pytest.mark.parametrize("size, warps", [
    (1, 1), (256, 1), (512, 2), (1024, 4), (4096, 4), (8192, 8), (16384, 16), (65536, 16)])
def test_warps_grow_with_the_largest_tile(size, warps):
    assert default_num_warps(kernel(size)) == warps


def test_doubles_take_two_words():
    assert default_num_warps(kernel(8192, dtype="float64")) == 16


def test_many_loads_count():
    assert default_num_warps(kernel(1024, loads=24)) == 8
