"""Rows of the table in docs/from_numpy.md: on tiles the right side gives what the left one does."""

from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "from_numpy.md").read_text()
X = np.random.default_rng(7).integers(0, 8, (4, 8))
GAPS = np.where(X == 3, np.nan, X.astype(np.float32))
I = np.random.default_rng(8).integers(0, 8, (4, 2))  # noqa: E741  indices
# a cell of the table, and the same in NumPy and on tiles
ROWS = [
    ("`x.sum(axis=1)`", lambda: X.sum(axis=1), lambda x: bn.sum(x, axis=1), X),
    ("`np.nansum`, `np.nanmax`, `np.nanmean` ...", lambda: np.nanmean(GAPS, axis=1),
     lambda x: np.nanmean(x, axis=1), GAPS),
    ("`np.nansum`, `np.nanmax`, `np.nanmean` ...", lambda: np.nanmax(GAPS, axis=0),
     lambda x: bn.nanmax(x, axis=0), GAPS),
    ("`x @ w`", lambda: X @ X.T, lambda x: x @ x.T, X.astype(np.int8)),
    ("`np.where(x > 0, x, 0)`", lambda: np.where(X > 3, X, 0), lambda x: np.where(x > 3, x, 0), X),
    ("`np.take_along_axis(t, i, 1)`", lambda: np.take_along_axis(X, I, 1),
     lambda t, i: bn.gather(t, i, 1), X, I),
    ("`np.cumsum(x, axis=1)`", lambda: np.cumsum(X, axis=1), lambda x: bn.cumsum(x, 1), X),
    ("`np.sort(x, axis=1)`, `np.argsort`, `np.median`", lambda: np.sort(X, axis=1),
     lambda x: np.sort(x, axis=1), X),
    ("`np.sort(x, axis=1)`, `np.argsort`, `np.median`",
     lambda: np.argsort(X, axis=1, kind="stable"), lambda x: np.argsort(x, axis=1), X),
    ("`np.sort(x, axis=1)`, `np.argsort`, `np.median`", lambda: np.median(X, axis=1),
     lambda x: np.median(x, axis=1), X),
    ("`np.partition(x, -k)[-k:]`", lambda: np.sort(np.partition(X[0], -4)[-4:])[::-1],
     lambda x: bn.topk(x, 4), X[0]),
    ("`np.bincount(x, minlength=n)`", lambda: np.bincount(X[0], minlength=8),
     lambda x: bn.histogram(x, 8), X[0]),
    ("`np.concatenate`, `np.stack`, `np.repeat`, `np.roll`, `np.flip`",
     lambda: np.concatenate((X, X), 1), lambda x: np.concatenate((x, x), 1), X),
    ("`np.concatenate`, `np.stack`, `np.repeat`, `np.roll`, `np.flip`",
     lambda: np.stack((X, X), 1), lambda x: np.stack((x, x), 1), X),
    ("`np.concatenate`, `np.stack`, `np.repeat`, `np.roll`, `np.flip`",
     lambda: np.repeat(X, 2, 1), lambda x: np.repeat(x, 2, 1), X),
    ("`np.concatenate`, `np.stack`, `np.repeat`, `np.roll`, `np.flip`",
     lambda: np.roll(X, 3, 1), lambda x: np.roll(x, 3, 1), X),
    ("`np.concatenate`, `np.stack`, `np.repeat`, `np.roll`, `np.flip`",
     lambda: np.flip(X, 1), lambda x: np.flip(x, 1), X),
    ("`x.astype(np.float16)`, `x.view(np.int32)`", lambda: X.astype(np.float16),
     lambda x: x.astype(np.float16), X),
    ("`x.astype(np.float16)`, `x.view(np.int32)`", lambda: GAPS.view(np.int32),
     lambda x: x.view(np.int32), GAPS),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_of_the_table_says_the_same_on_both_sides(row):
    cell, on_arrays, on_tiles, *arrays = row

    found = bn.evaluate(on_tiles, *arrays)

    assert f"| {cell} |" in PAGE
    np.testing.assert_array_equal(found, on_arrays())


def test_views_of_arrays_are_numpys():
    @bn.jit
    def views(x, out):
        out[0, bn.span(0, 4)] = x.T[2, bn.span(0, 4)]
        out[1, bn.span(0, 4)] = x[1][bn.span(0, 4)]
        out[2, bn.span(0, 4)] = x[::2][1, bn.span(0, 4)]

    out = np.full((3, 4), -1)
    views[1](X, out)

    np.testing.assert_array_equal(out, [X.T[2, :4], X[1][:4], X[::2][1, :4]])


def test_outside_of_an_array_there_are_zeros():
    @bn.jit
    def shifted(x, out):
        rows, columns = bn.span(0, 8), bn.span(0, 16)
        out[rows, columns] = x[rows - 1, columns - 1]

    out = np.full((6, 10), -1)
    shifted[1](X, out)

    np.testing.assert_array_equal(out, np.pad(X, 1))


def test_elements_are_added_at_indices():
    @bn.jit
    def add_at(x, i, v):
        bn.atomic_add(x.at[i[bn.span(0, 8)]], v[bn.span(0, 8)])

    found, wanted = np.zeros(8, int), np.zeros(8, int)
    add_at[1](found, X[0], X[1])
    np.add.at(wanted, X[0], X[1])

    np.testing.assert_array_equal(found, wanted)
