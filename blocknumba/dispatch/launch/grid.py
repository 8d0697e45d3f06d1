"""Grids: the number of programs of a launch along each of three axes."""

from __future__ import annotations

import operator

import numpy as np

from blocknumba.dispatch.launch.streams import is_stream
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.wording import shown

Grid = tuple[int, int, int]

# Source: CUDA Programming Guide, compute capabilities, "Maximum x-, y-, z-dimension of a grid"
MAX_X, MAX_YZ = 2**31 - 1, 65535


def grid_of(given: object, kernel: str) -> Grid:
    """The three extents of a grid given as an int or as a tuple or list of 1 to 3 ints.

    kernel: its name, for messages.
    Errors: BlockTypeError for anything else, floats and bools included; BlockValueError for a
    negative extent or one that the hardware cannot run.
    """
    first = given[0] if given.__class__ is tuple and len(given) == 1 else given
    if first.__class__ is int and 0 <= first <= MAX_X:  # the usual grids, at no cost
        return first, 1, 1
    axes = given if isinstance(given, (tuple, list)) else (given,)
    x, y, z = (*axes, 1, 1, 1)[:3]
    if (x.__class__ is y.__class__ is z.__class__ is int and 0 <= x <= MAX_X and 0 <= y <= MAX_YZ
            and 0 <= z <= MAX_YZ and 1 <= len(axes) <= 3):
        return x, y, z
    require(1 <= len(axes) <= 3, "{}: given a grid of {} axes, accepted 1 to 3", kernel, len(axes),
            error=BlockTypeError)
    extents = tuple(_extent(axis, axes[axis], kernel) for axis in range(len(axes)))
    return extents + (1,) * (3 - len(extents))


def are_ints(extents: tuple) -> bool:
    """Whether all extents are ints and not bools.  Equal ones then mean the same grid."""
    for extent in extents:
        if extent.__class__ is not int:
            return False
    return True


def grid_and_stream(configuration: object, stream: object = None) -> tuple[object, object]:
    """Grid and stream of a launch: from the brackets, or from the keyword stream=, which wins.

    The grid is returned as given; the stream is None when none was named.
    """
    if isinstance(configuration, tuple) and len(configuration) == 2:
        grid, chosen = configuration
        if isinstance(grid, (tuple, list)) or callable(grid) or (
                chosen.__class__ is not int and is_stream(chosen)):
            return grid, chosen if stream is None else stream
    return configuration, stream


def _extent(axis: int, given: object, kernel: str) -> int:
    require(not isinstance(given, (bool, np.bool_)),
            "{}: given {} for axis {} of the grid, accepted an int", kernel, given, axis)
    try:
        extent = operator.index(given)
    except TypeError:
        hint = "use bn.cdiv or // to divide" if isinstance(given, (float, np.floating)) else ""
        raise BlockTypeError(
            f"{kernel}: given {shown(given)} for axis {axis} of the grid, accepted an int",
            hint=hint) from None
    limit = MAX_YZ if axis else MAX_X
    require(0 <= extent <= limit,
            "{}: given {} programs along axis {} of the grid, accepted 0 to {}", kernel, extent,
            axis, limit, error=BlockValueError)
    return extent
