"""TMA stores whole 16 bytes: what lies behind the rows of a view was overwritten on a H200."""

from importlib.util import find_spec

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

WIDTHS = (24, 29, 30, 31, 32)


@bn.jit
def product(a, b, out, SUMS: bn.constexpr):
    total = bn.zeros((64, 32), SUMS)
    for k in bn.spans(a.shape[1], 64):
        total = bn.dot(a[bn.span(0, 64), k], b[k, bn.span(0, 32)], total)
    out[bn.span(0, 64), bn.span(0, 32)] = total


def stored(launch, given: str, sums: object, made: str, width: int) -> tuple[np.ndarray, bool]:
    """Memory with rows of 48 elements, of which a product takes the first; whether TMA stored."""
    random = np.random.default_rng(width)
    a, b = (random.integers(0, 3, shape).astype(given) for shape in ((61, 128), (128, 32)))
    memory = np.full((70, 48), 7).astype(made)
    expected = memory.copy()
    expected[:61, :width] = (a.astype(int) @ b.astype(int))[:, :width]
    expected[61:62, :width] = 0

    compiled = launch(a, b, memory[:62, :width], sums)

    np.testing.assert_array_equal(memory, expected)
    return memory, "global.shared::cta.tile" in compiled.asm["ptx"]


def emulate(a, b, out, sums):
    return emulated_gpu.launch(product, 1, (a, b, out), {"SUMS": sums, "num_warps": 4})


@pytest.mark.skipif(not find_spec("cuda"), reason="needs libNVVM")
@pytest.mark.parametrize("given, sums, made", [
    ("float64", bn.float64, "float64"), ("float16", bn.float32, "float32")])
def test_rows_of_any_length_end_where_they_end(given, sums, made):
    by_tma = {width: stored(emulate, given, sums, made, width)[1] for width in WIDTHS}

    size = np.dtype(made).itemsize
    assert not any(used for width, used in by_tma.items() if width * size % 16)
    assert by_tma[32]


@pytest.mark.gpu(emulated="test_rows_of_any_length_end_where_they_end")
@pytest.mark.parametrize("given, sums, made", [
    ("float64", bn.float64, "float64"), ("float16", bn.float32, "float32"),
    ("float16", bn.float32, "float16"), ("int8", bn.int32, "int32")])
def test_on_a_gpu_rows_of_any_length_end_where_they_end(given, sums, made):
    for width in WIDTHS:
        stored(lambda a, b, out, sums: product[1](a, b, out, SUMS=sums, num_warps=4), given, sums,
               made, width)
