"""Counts of equal elements: histogram.

Not among the modules whose functions NumPy's names stand for: numpy.histogram is another function.
"""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import int32, int64
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import function
from blocknumba.typing.functions.reduce import as_tile, mask_of
from blocknumba.typing.static_values import static_int

BINS = "the bins of a histogram"  # in messages


@function
def histogram(context, x, bins, mask=None):
    """Counts of 0, 1, ..., bins - 1 in x, int32 of shape (bins,).

    x: a tile of integers or bools, of any shape.   bins: a power of two.   Other numbers are not
    counted.   mask: bool, broadcast to x: which elements count.  Leave out those that were loaded
    outside an array: they are 0.
    The counts of a whole array are the sum over programs: bn.atomic_add(total.at[r], counts).
    Errors: floats; bins that is no power of two.
    Source: numpy.bincount with minlength=bins; Triton's histogram.

    Example:
    >>> bn.evaluate(bn.histogram, [0, 2, 2, 7], bins=4)
    array([1, 0, 2, 0], dtype=int32)
    """
    tile = as_tile(context, "histogram", x)
    if tile.type.dtype.is_float:
        raise BlockTypeError(f"histogram: given {tile.type}, accepted a tile of integers",
                             hint="convert it: x.to(bn.int32) rounds towards zero")
    require(tile.type.shape, "histogram: given {}, accepted a tile", describe(x))
    count = static_int("histogram: bins", bins)
    require(count > 0 and not count & count - 1,
            "histogram: bins must be a power of two, got {}", count,
            hint=f"use {1 << max(0, count - 1).bit_length()} bins")
    counts = mask_of(context, "histogram", tile, mask, "mask")
    if tile.type.dtype.bits > int32.bits:  # what int32 would wrap to is no bin
        limit = context.broadcast_to(context.constant(count, tile.type.dtype), tile.type.shape)
        zero = context.broadcast_to(context.constant(0, tile.type.dtype), tile.type.shape)
        is_bin = context.emit("and", context.emit("lt", tile, limit),
                              context.emit("ge", tile, zero))
        counts = is_bin if counts is None else context.emit("and", counts, is_bin)
    return context.emit("histogram", context.cast(tile, int32),
                        *([] if counts is None else [counts]), bins=count)


def report_beyond_bins(context: Context, x: Value, counts: Value, mask: object) -> None:
    """With debug=True, report a number of x that is none of the bins of its histogram."""
    if not context.options.debug:
        return
    numbers = context.cast(x, int64)
    bins = context.broadcast_to(context.constant(counts.type.shape[0], int64), numbers.type.shape)
    counted = mask_of(context, "histogram", numbers, mask, "mask")
    context.emit("check_index", numbers, bins, *([] if counted is None else [counted]), array=BINS,
                 axis=0)
