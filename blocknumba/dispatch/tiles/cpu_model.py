"""Estimated time of a kernel on the CPU, from the work of a program: a model to rank tiles by.

A program costs a call, and what its tiles cost: what fits the nearest cache is fast, what does not
comes from the next.  Loops over elements are fused, so that extents matter little beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from blocknumba.dispatch.launch.native import thread_count
from blocknumba.tile_ir.analysis.work import Numbers, Task, Work

# Nanoseconds, and bytes or multiply-adds in a nanosecond, of one core: measured (perf/NOTES.md)
CALL = 150  # of a program
ITERATION = 15  # of a loop, and of the tiles that it loads
BYTES = 8
PRODUCTS = {"float32": 40, "float64": 20}  # multiply-adds
OTHER_PRODUCTS = 20
ELEMENTS = 4  # of arithmetic
NEAR_BYTES, FAR_BYTES = 24 * 1024, 1024 * 1024  # first and second cache
SLOWER = 2.0  # beyond the second
SHORT = 16  # elements along the unit axis that cost twice what they should
TILE_ELEMENTS = 1 << 20  # more than this is slow to compile, and no faster


def nanoseconds(work: Work, programs: Numbers, arrays: Mapping[str, int]) -> Numbers:
    """Estimated time of a launch; see gpu_model.cycles."""
    each = np.ceil(np.maximum(programs, 1) / thread_count())
    moved = sum((_moved(task) * work.times(task) for task in work.of("load", "store")), 0.0)
    computed = sum((task.elements * work.times(task) for task in work.of("compute", "exchange")),
                   0.0)
    multiplied = sum((_multiplied(task) * work.times(task) for task in work.of("dot")), 0.0)
    iterations = sum((work.times(task) for task in work.of("load")), 0.0)
    one = CALL + ITERATION * iterations + moved / BYTES + computed / ELEMENTS + multiplied
    held = sum((task.elements * task.bits / 8 for task in work.of("load", "carried")), 0.0)
    one = one * np.where(held > FAR_BYTES, SLOWER, 1.0)
    largest = 1.0
    for task in work.tasks:
        if task.kind != "dot":
            largest = np.maximum(largest, task.elements)
    return np.where(largest > TILE_ELEMENTS, math.inf, each * one)


def _moved(task: Task) -> Numbers:
    size = task.bits / 8
    if not task.shape:
        return size
    run = 1.0
    if task.unit >= 0:
        run = np.maximum(np.minimum(task.shape[task.unit], task.limits[task.unit]), 1)
    return task.inside * size * (1 + SHORT / run)


def _multiplied(task: Task) -> Numbers:
    """Nanoseconds of a product; rows and columns are padded to those of the micro-kernel."""
    batches, rows, columns, depth = task.shape
    rate = PRODUCTS.get(task.dtype.split()[0], OTHER_PRODUCTS)
    size = task.bits / 8
    packed = (rows + columns) * depth * size / BYTES
    spilled = np.where((rows + columns) * depth * size > FAR_BYTES, SLOWER, 1.0)
    return batches * (rows * columns * depth / rate + packed) * spilled
