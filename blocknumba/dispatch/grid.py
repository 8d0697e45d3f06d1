"""Grids: how many programs a launch runs along each of three axes."""

from __future__ import annotations

import operator

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, require

Grid = tuple[int, int, int]

# Source: CUDA Programming Guide, compute capabilities, "Maximum x-, y-, z-dimension of a grid"
AXIS_LIMITS = (2**31 - 1, 65535, 65535)


def grid_of(given: object, kernel: str) -> Grid:
    """The three extents of a grid given as an int or as a tuple or list of 1 to 3 ints.

    kernel: its name, for messages.
    Errors: BlockTypeError for anything else, floats and bools included; BlockValueError for a
    negative extent or one that the hardware cannot run.
    """
    axes = given if isinstance(given, (tuple, list)) else (given,)
    require(1 <= len(axes) <= 3, "{}: given a grid of {} axes, accepted 1 to 3", kernel, len(axes),
            error=BlockTypeError)
    extents = tuple(_extent(axis, axes[axis], kernel) for axis in range(len(axes)))
    return extents + (1,) * (3 - len(extents))


def _extent(axis: int, given: object, kernel: str) -> int:
    require(not isinstance(given, (bool, np.bool_)),
            "{}: given {} for axis {} of the grid, accepted an int", kernel, given, axis)
    try:
        extent = operator.index(given)
    except TypeError:
        hint = "use bn.cdiv or // to divide" if isinstance(given, (float, np.floating)) else ""
        raise BlockTypeError(
            f"{kernel}: given {given!r} for axis {axis} of the grid, accepted an int",
            hint=hint) from None
    require(0 <= extent <= AXIS_LIMITS[axis],
            "{}: given {} programs along axis {} of the grid, accepted 0 to {}", kernel, extent,
            axis, AXIS_LIMITS[axis], error=BlockValueError)
    return extent
