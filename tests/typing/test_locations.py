"""Every op knows the source that it came from, and how that was reached."""

from __future__ import annotations

import linecache

import numpy as np
from launching import kernel_of

import blocknumba as bn

from blocknumba.errors import Loc
from blocknumba.tile_ir.ir.function import walk


def double(x):
    return x + x


def kernel(x, out):
    r = bn.span(0, 4)
    tile = x[r]; out[r] = double(tile) * 3  # noqa: E702


def text(loc: Loc) -> str:
    """The source that a location covers."""
    return linecache.getline(loc.file, loc.line)[loc.column:loc.end_column]


def test_ops_are_placed_by_columns():
    fn = kernel_of(kernel, x=np.zeros(4, np.float32), out=np.zeros(4, np.float32))
    places = {op.name: op.loc for op in walk(fn.body)}

    assert text(places["load"]) == "x[r]"
    assert text(places["store"]) == "out[r]"
    assert text(places["mul"]) == "double(tile) * 3"
    assert places["mul"].function == "kernel"


def test_inlined_ops_know_their_caller():
    fn = kernel_of(kernel, x=np.zeros(4, np.float32), out=np.zeros(4, np.float32))
    (added,) = [op for op in walk(fn.body) if op.name == "add" and op.result.type.shape]

    assert text(added.loc) == "x + x"
    assert added.loc.function == "double"
    assert text(added.loc.caller) == "double(tile)"
    assert added.loc.caller.caller is None


def test_results_carry_the_names_of_variables():
    fn = kernel_of(kernel, x=np.zeros(4, np.float32), out=np.zeros(4, np.float32))

    hints = {v.hint for op in walk(fn.body) for v in op.results}

    assert "tile" in hints
    assert not any("@" in hint or "#" in hint or "$" in hint for hint in hints)
