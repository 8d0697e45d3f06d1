"""Rows and atomics of tensor descriptors, within the bounds of their arrays."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError

ROWS, COLUMNS, BOX = 40, 24, 16


@triton.jit
def gathered(x, indices, out, first, ROWS: tl.constexpr, COLUMNS: tl.constexpr, N: tl.constexpr,
             BOX: tl.constexpr, PADDING: tl.constexpr):
    rows = tl.load(indices + tl.arange(0, N))
    array = tl.make_tensor_descriptor(x, [ROWS, COLUMNS], [COLUMNS, 1], [1, BOX],
                                      padding_option=PADDING)
    place = tl.arange(0, N)[:, None] * BOX + tl.arange(0, BOX)[None, :]
    tl.store(out + place, array.gather(rows, first))


@triton.jit
def scattered(x, indices, out, first, ROWS, COLUMNS, N: tl.constexpr, BOX: tl.constexpr):
    rows = tl.load(indices + tl.arange(0, N))
    place = tl.arange(0, N)[:, None] * BOX + tl.arange(0, BOX)[None, :]
    array = tl.make_tensor_descriptor(out, [ROWS, COLUMNS], [COLUMNS, 1], [1, BOX])
    array.scatter(tl.load(x + place), rows, first)


INDICES = np.array([3, -1, 39, 40, 7, 7, 0, 2**30], np.int32)


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_rows_are_gathered(device, padding):
    x = np.random.default_rng().standard_normal((ROWS, COLUMNS)).astype(np.float32)
    out = np.full((8, BOX), 7, np.float32)

    device.run(gathered, 1, x, INDICES, out, 12, ROWS=ROWS, COLUMNS=COLUMNS, N=8, BOX=BOX,
               PADDING=padding)

    expected = np.full((8, BOX), 0 if padding == "zero" else np.nan, np.float32)
    for place, row in enumerate(INDICES):
        if 0 <= row < ROWS:
            expected[place, :COLUMNS - 12] = x[row, 12:]
    np.testing.assert_array_equal(out, expected)


def test_rows_are_scattered(device):
    x = np.random.default_rng().standard_normal((8, BOX)).astype(np.float32)
    indices = np.array([3, -1, 39, 40, 7, 6, 0, 2**30], np.int32)
    out = np.full((ROWS + 1, COLUMNS), 7, np.float32)

    device.run(scattered, 1, x, indices, out, 12, ROWS, COLUMNS, N=8, BOX=BOX)

    expected = np.full((ROWS + 1, COLUMNS), 7, np.float32)
    for place, row in enumerate(indices):
        if 0 <= row < ROWS:
            expected[row, 12:] = x[place, :COLUMNS - 12]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def accumulated(x, out, ROWS, COLUMNS, KIND: tl.constexpr):
    place = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    array = tl.make_tensor_descriptor(out, [ROWS, COLUMNS], [COLUMNS, 1], [8, 16])
    value = tl.load(x + place)
    if KIND == "add":
        array.atomic_add([4, 8], value)
    elif KIND == "max":
        array.atomic_max([4, 8], value)
    else:
        array.atomic_xor([4, 8], value)


KINDS = {"add": np.add, "max": np.maximum, "xor": np.bitwise_xor}


@pytest.mark.parametrize("kind", KINDS)
def test_atomics_stay_within_bounds(device, kind):
    generator = np.random.default_rng()
    x = generator.integers(0, 99, (8, 16), np.int32)
    out = generator.integers(0, 99, (11, 20), np.int32)
    expected = out.copy()
    expected[4:10, 8:] = KINDS[kind](out[4:10, 8:], x[:6, :12])

    device.run(accumulated, 1, x, out, 10, 20, KIND=kind)

    np.testing.assert_array_equal(out, expected)


def test_atomics_of_other_dtypes_are_refused():
    out = np.zeros((10, 20), np.float32)
    with pytest.raises(BlockError, match="descriptor.atomic_max: given an array of float32, "
                                         "accepted int32, uint32"):
        accumulated[1](np.zeros((8, 16), np.float32), out, 10, 20, KIND="max")


@triton.jit
def narrow(x):
    tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 4])


def test_boxes_of_short_rows_are_refused():
    with pytest.raises(triton.CompilationError, match="8 bytes on the last axis, accepted 16 or"):
        narrow[1](np.zeros((8, 8), np.int16))


@triton.jit
def of_three_axes(x, indices):
    array = tl.make_tensor_descriptor(x, [2, 2, 8], [16, 8, 1], [1, 1, 8])
    array.gather(tl.load(indices + tl.arange(0, 8)), 0)


def test_rows_are_those_of_two_axes():
    with pytest.raises(BlockError, match="a descriptor of 3 axes, accepted one of 2"):
        of_three_axes[1](np.zeros((2, 2, 8), np.float32), np.zeros(8, np.int32))
