"""What is equal along one axis of a tile was taken to be equal along the other."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton.language as tl


@bn.triton.jit
def window(x_ptr, out_ptr, height, width, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """The sum of three neighbours of a row, of those that there are."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for j in tl.static_range(3):
        x = c[None, :] + j - 1
        inside = (r < height)[:, None] & (x >= 0) & (x < width)
        total += tl.load(x_ptr + r[:, None] * width + x, mask=inside, other=0.0).to(tl.float32)
    mask = (r < height)[:, None] & (c < width)[None, :]
    tl.store(out_ptr + r[:, None] * width + c[None, :], total, mask=mask)


@bn.triton.jit
def quotients(by_row, by_column, rows_ptr, columns_ptr, M: bn.constexpr, N: bn.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = r * N + c
    tl.store(rows_ptr + at, (r * 3 + c) // by_column + (r + c * 0) // by_row)
    tl.store(columns_ptr + at, (r + c * 32) // by_row + (c + r * 0) % by_column)


@pytest.mark.parametrize("height, width", [(16, 112), (48, 128), (20, 30)])
def test_masks_of_windows_end_where_rows_end(height, width):
    x = np.random.default_rng(0).integers(-9, 9, (height, width)).astype(np.float16)
    out = np.full_like(x, np.nan)

    emulated_gpu.launch(window, -(-height // 16), (x, out, height, width),
                        {"ROWS": 16, "COLUMNS": 128, "num_warps": 4})

    padded = np.pad(x, ((0, 0), (1, 1)))
    np.testing.assert_array_equal(out, padded[:, :-2] + x + padded[:, 2:])


@pytest.mark.parametrize("by_row, by_column", [(16, 48), (32, 16), (7, 64)])
def test_quotients_are_those_of_their_axis(by_row, by_column):
    rows, columns = (np.full((32, 64), -1, np.int32) for _ in range(2))

    emulated_gpu.launch(quotients, 1, (by_row, by_column, rows, columns),
                        {"M": 32, "N": 64, "num_warps": 1})

    r, c = np.arange(32)[:, None], np.arange(64)[None, :]
    np.testing.assert_array_equal(rows, (r * 3 + c) // by_column + r // by_row)
    np.testing.assert_array_equal(columns, (r + c * 32) // by_row + c % by_column)
