"""histogram: NumPy's bincount, of every integer, with masks, in loops."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

BINS = 16


@bn.jit
def counted(x, mask, out, BINS: bn.constexpr):
    r, c, b = bn.span(0, 8), bn.span(0, 64), bn.span(0, BINS)
    out[0, b] = bn.histogram(x[r, c], BINS)
    out[1, b] = bn.histogram(x[r, c], BINS, mask=mask[r, c])
    out[2, b] = bn.histogram(x[r, c], bins=BINS, mask=mask[bn.span(0, 1), c])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                   "int64", "uint64"])
def test_histograms_count_what_is_in_range(dtype):
    random = np.random.default_rng()
    x = random.integers(0, 2 if dtype == "bool" else 2 * BINS, (8, 64)).astype(dtype)
    if dtype != "bool":
        limits = np.iinfo(dtype)
        x[0, :3] = limits.max, limits.min, BINS
    if x.dtype.itemsize == 8:
        x[1] += np.array(1 << 32, dtype)  # the low bits are those of a bin
    mask = random.random((8, 64)) < 0.5
    out = np.full((3, BINS), -1, np.int32)

    counted[1](x, mask, out, BINS=BINS)

    for row, counts in zip(out, (np.ones((8, 64), bool), mask, np.broadcast_to(mask[0], (8, 64)))):
        numbers = x[counts].tolist()
        assert row.tolist() == [sum(number == b for number in numbers) for b in range(BINS)]


@bn.jit
def whole(x, total, BLOCK: bn.constexpr, BINS: bn.constexpr):
    b, n = bn.span(0, BINS), bn.zeros(BINS, bn.int32)
    for r in bn.grid_spans(x.shape[0], BLOCK):
        n += bn.histogram(x[r], BINS, mask=r.index < x.shape[0])
    bn.atomic_add(total.at[b], n)


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_a_whole_array_is_the_sum_over_programs_and_iterations(size):
    x = np.random.default_rng().integers(-2, 9, size).astype(np.int32)
    total = np.zeros(8, np.int32)

    whole[3](x, total, BLOCK=256, BINS=8)

    assert total.tolist() == np.bincount(x[(x >= 0) & (x < 8)], minlength=8).tolist()


@bn.jit
def wrong(x, which: bn.constexpr):
    tile = x[bn.span(0, 64)]
    if which == "floats":
        bn.histogram(tile, 16)
    elif which == "bins":
        bn.histogram(tile.to(bn.int32), 10)
    elif which == "mask":
        bn.histogram(tile.to(bn.int32), 16, mask=tile)
    elif which == "scalar":
        bn.histogram(3, 16)


@pytest.mark.parametrize("which, message", [
    ("floats", "histogram: given tile<64xfloat32>, accepted a tile of integers"),
    ("bins", "histogram: bins must be a power of two, got 10"),
    ("mask", "histogram: mask must be bool, got tile<64xfloat32>"),
    ("scalar", "histogram: given 3, accepted a tile"),
])
def test_mistakes_say_what_is_accepted(which, message):
    with pytest.raises(BlockError) as caught:
        wrong[1](np.zeros(64, np.float32), which=which)

    assert str(caught.value).split("\n")[0] == message
