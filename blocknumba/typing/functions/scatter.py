"""A tile with elements replaced at indices of run time.

Of several elements for one place the last one counts, whatever order threads come in: places and
elements are numbered, numbers are sorted, and every place looks for the last of its own.

    index     2  0  2        number of element e for place p: 4 * p + e   (4 elements or fewer)
    sorted    1  8  10       place 0 finds 1, place 1 none, place 2 finds 10: element 2
"""

from __future__ import annotations

import math

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import int32, int64
from blocknumba.typing.context import Context
from blocknumba.typing.function import function
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.functions.order import sort
from blocknumba.typing.functions.parts import checked_indices
from blocknumba.typing.functions.search import searchsorted
from blocknumba.typing.functions.shape import reshaped, tile_of
from blocknumba.typing.static_values import static_axis


@function
def scatter(context, x, index, values, axis):
    """x with x[i, index[i, j, k], k] replaced by values[i, j, k], for axis 1 of three; a new tile.

    index: a tile of ints of x's rank, any extent along axis; its other axes are broadcast to x's.
    values: broadcast to index, and converted to x's dtype.
    Of several values for one element the last one, in C order, counts. An index outside of the
    axis, negative ones too, replaces nothing, and is an error with debug=True.
    Source: numpy.put_along_axis, which changes its argument.

    Example:
    >>> bn.evaluate(bn.scatter, [0, 0, 0, 0], [2, 0], [7, 8], axis=0)
    array([8, 0, 7, 0])
    """
    tile = tile_of(context, "scatter", x)
    shape = tile.type.shape
    at = static_axis("scatter", axis, len(shape))
    rows, indices = checked_indices(context, "scatter", tile, index, at)
    require(rows.type.shape == shape, "scatter: given index {} for {}, accepted the same extents "
            "but for axis {}", indices.type, tile.type, at)
    given = context.value(values, tile.type.dtype, "scatter")
    given = context.broadcast_to(given, indices.type.shape, "scatter")
    flat = reshaped(context, "scatter", given, (given.type.size,))
    found, element = _last_of_each(context, shape, indices, at)
    taken = context.emit("gather", flat, element, axis=0)
    own = reshaped(context, "scatter", tile, (tile.type.size,))
    return reshaped(context, "scatter", context.emit("select", found, taken, own), shape)


def _last_of_each(context: Context, shape: tuple[int, ...], indices: Value,
                  axis: int) -> tuple[Value, Value]:
    """For each element of a shape, in C order: whether an index names it, and the last that does.

    indices: int32, of the shape but for the axis.
    """
    places, elements = math.prod(shape), indices.type.size
    dtype = int32 if (places + 1) * elements <= int32.maximum else int64
    place = _places(context, shape, indices, axis)
    numbers = binary(context, "add", binary(context, "mul", context.cast(place, dtype), elements),
                     context.cast(context.emit("arange", start=0, size=elements), dtype))
    ordered = sort.rule(context, numbers)
    own = context.cast(context.emit("arange", start=0, size=places), dtype)
    # those of its own place end before the first number of the next one
    end = binary(context, "mul", binary(context, "add", own, 1), elements)
    last = binary(context, "sub", searchsorted.rule(context, ordered, end), 1)
    number = context.emit("gather", ordered, last, axis=0)
    found = binary(context, "and", binary(context, "ge", last, 0), binary(
        context, "ge", number, binary(context, "mul", own, elements)))
    return found, context.cast(binary(context, "and", number, elements - 1), int32)


def _places(context: Context, shape: tuple[int, ...], indices: Value, axis: int) -> Value:
    """Per index, in C order, that of its element in the shape; the size for those outside."""
    extent, inner = shape[axis], math.prod(shape[axis + 1:])
    steps = {a: math.prod(shape[a + 1:]) for a in range(len(shape)) if a != axis and shape[a] > 1}
    place = binary(context, "mul", indices, inner)
    for a, step in steps.items():
        along = reshaped(context, "scatter", context.emit("arange", start=0, size=shape[a]),
                         tuple(shape[a] if b == a else 1 for b in range(len(shape))))
        place = binary(context, "add", place, binary(context, "mul", along, step))
    inside = binary(context, "and", binary(context, "ge", indices, 0),
                    binary(context, "lt", indices, extent))
    size = context.broadcast_to(context.constant(math.prod(shape), int32), indices.type.shape)
    place = context.emit("select", inside, place, size)
    return reshaped(context, "scatter", place, (indices.type.size,))
