"""Estimated time of a kernel on the CPU, from the work of a program: a model to rank tiles by.

A program costs a call, and what its tiles cost: loops over elements are fused, so that extents
matter little beyond cache lines, the caches, and the threads that have something to do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np

from blocknumba.dispatch.launch.native import thread_count
from blocknumba.tile_ir.analysis.work import Numbers, Task, Work

# Nanoseconds, and bytes or multiply-adds in a nanosecond, of one core: measured (perf/NOTES.md)
CALL = 150  # of a program
ITERATION = 15  # of a loop, and of the tiles that it loads
BYTES = 4
LINE_BYTES = 64  # of a cache line: each run along the unit axis costs one more
CUT_LINE = 4.0  # runs shorter than a line: it is fetched again
PRODUCTS = {"float32": 40, "float64": 20}  # multiply-adds
OTHER_PRODUCTS = 20
PACKED_BYTES, SUM_BYTES = 8, 30  # of the operands of a product, and of its sums, read and written
ELEMENTS = 3  # of arithmetic
FAR_BYTES = 448 * 1024  # tiles beyond this leave the second cache
SLOWER = 2.0  # beyond it
TURNED, WAYS = 0.3, 16  # tiles that are turned read so many rows at once; more cost more
TILE_ELEMENTS = 1 << 20  # more than this is slow to compile, and no faster


def nanoseconds(work: Work, programs: Numbers, arrays: Mapping[str, int]) -> Numbers:
    """Estimated time of a launch; see gpu_model.cycles."""
    each = np.ceil(np.maximum(programs, 1) / thread_count())
    moved = sum((_moved(task) * work.times(task) for task in work.of("load", "store")), 0.0)
    computed = sum((task.elements * work.times(task) for task in work.of("compute", "exchange")),
                   0.0)
    multiplied = sum((_multiplied(task) * work.times(task) for task in work.of("dot")), 0.0)
    iterations = sum((work.times(task) for task in work.of("load")), 0.0)
    one = (CALL + ITERATION * iterations + moved * _turned(work) / BYTES + computed / ELEMENTS
           + multiplied)
    held = sum((task.elements * task.bits / 8 for task in work.of("load", "carried", "store")),
               0.0)
    one = one * np.where(held > FAR_BYTES, SLOWER, 1.0)
    largest = 1.0
    for task in work.tasks:
        if task.kind != "dot":
            largest = np.maximum(largest, task.elements)
    return np.where(largest > TILE_ELEMENTS, math.inf, each * one)


def _moved(task: Task) -> Numbers:
    """Bytes of a load or a store, in whole cache lines."""
    size = task.bits / 8
    if not task.shape:
        return size
    run_bytes = _run(task) * size
    cut = np.where(run_bytes < LINE_BYTES, CUT_LINE, 1.0) if len(task.shape) > 1 else 1.0
    return task.inside * size * (1 + LINE_BYTES / run_bytes) * cut


def _run(task: Task) -> Numbers:
    """Neighbours in memory that a tile has."""
    if task.unit < 0:
        return 1.0
    return np.maximum(np.minimum(task.shape[task.unit], task.limits[task.unit]), 1)


def _turned(work: Work) -> Numbers:
    """Factor of the bytes of a kernel that stores tiles along another axis than it loads them.

    A run that it stores is a column of what it loads: rows that follow each other at some power of
    two share the ways of a cache.
    """
    factor: Numbers = 1.0
    loads = [task for task in work.of("load") if len(task.shape) > 1 and task.unit >= 0]
    stores = [task for task in work.of("store") if len(task.shape) > 1 and task.unit >= 0]
    if work.of("dot"):
        return factor
    for stored, loaded in itertools.product(stores, loads):
        if np.all(stored.elements == loaded.elements) and np.any(_run(stored) != _run(loaded)):
            rows = np.log2(np.maximum(_run(stored) / WAYS, 1))
            factor = factor * (1 + TURNED * rows)
    return factor


def _multiplied(task: Task) -> Numbers:
    """Nanoseconds of a product; its sums are read and written for each tile along the depth."""
    batches, rows, columns, depth = task.shape
    rate = PRODUCTS.get(task.dtype.split()[0], OTHER_PRODUCTS)
    size = task.bits / 8
    packed = (rows + columns) * depth * size
    summed = 2 * rows * columns * size
    spilled = np.where(packed > FAR_BYTES, SLOWER, 1.0)
    return batches * (rows * columns * depth / rate + packed / PACKED_BYTES
                      + summed / SUM_BYTES) * spilled
