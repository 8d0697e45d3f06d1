"""ldmatrix, stmatrix, movmatrix and mma.sync."""

from __future__ import annotations

import re

import numpy as np

from blocknumba.emulator.access import load_rows, store_rows
from blocknumba.emulator.cohort import LANES, Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.fragments import (
    ELEMENTS,
    gather,
    operand_fragment,
    accumulator_fragment,
    scatter,
)
from blocknumba.emulator.tensor_core import multiply
from blocknumba.emulator.values import container_of

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_ROW_BYTES = 16  # of one row of eight 16-bit elements
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def require_full_warps(cohort: Cohort, name: str) -> None:
    """Refuse an instruction of a whole warp where a lane is missing."""
    if cohort.mask is not None and not cohort.mask.all():
        rows = cohort.mask.reshape(-1, LANES)
        if (rows.any(1) & ~rows.all(1)).any():
            raise SynchronizationError(f"{name}: executed by part of a warp, accepted all of it")


def _matrix_count(site: Site) -> int:
    if not site.has("m8n8") or not site.has("b16"):
        raise site.refuse("accepted the shape m8n8 of type b16")
    return next(count for modifier, count in _COUNTS.items() if modifier in site.opcode)


def _row_lanes(count: int) -> np.ndarray:
    """The lanes that hold the addresses of the rows: (matrices, 8)."""
    return np.arange(8 * count).reshape(count, 8)


def load_matrix(site: Site) -> Step:
    """ldmatrix: 8 by 8 matrices of 16-bit elements, two neighbours to a lane."""
    count, transposed, pc = _matrix_count(site), site.has("trans"), site.pc
    address = site.address(site.operands[1])
    writes = [site.write(item, "b32") for item in site.items(site.operands[0])]
    name = site.instruction.name

    def step(cohort: Cohort) -> None:
        require_full_warps(cohort, name)
        rows = cohort.by_warp(address(cohort))[:, _row_lanes(count)]
        octets = load_rows(cohort, rows.reshape(len(rows), -1), _ROW_BYTES, pc)
        matrices = octets.view(np.uint16).reshape(len(rows), count, 8, 8)
        if transposed:
            matrices = matrices.swapaxes(2, 3)
        words = np.ascontiguousarray(matrices).view(np.uint32).reshape(len(rows), count, LANES)
        for index, write in enumerate(writes):
            write(cohort, np.ascontiguousarray(words[:, index]).ravel())
    return step


def store_matrix(site: Site) -> Step:
    """stmatrix: the other way round."""
    count, transposed, pc = _matrix_count(site), site.has("trans"), site.pc
    address = site.address(site.operands[0])
    reads = [site.read(item, "b32") for item in site.items(site.operands[1])]
    name = site.instruction.name

    def step(cohort: Cohort) -> None:
        require_full_warps(cohort, name)
        rows = cohort.by_warp(address(cohort))[:, _row_lanes(count)]
        words = np.stack([cohort.by_warp(read(cohort)) for read in reads], 1)
        matrices = np.ascontiguousarray(words).view(np.uint16).reshape(len(rows), count, 8, 8)
        if transposed:
            matrices = matrices.swapaxes(2, 3)
        octets = np.ascontiguousarray(matrices).view(np.uint8).reshape(len(rows), -1, _ROW_BYTES)
        store_rows(cohort, rows.reshape(len(rows), -1), octets, pc)
    return step


def transpose_matrix(site: Site) -> Step:
    """movmatrix: an 8 by 8 matrix of 16-bit elements, transposed across the warp."""
    def apply(words: np.ndarray) -> np.ndarray:
        matrices = np.ascontiguousarray(words).view(np.uint16).reshape(-1, 8, 8)
        return np.ascontiguousarray(matrices.swapaxes(1, 2)).view(np.uint32).ravel()
    read, write = site.read(site.operands[1], "b32"), site.write(site.operands[0], "b32")
    return lambda cohort: write(cohort, apply(cohort.by_lane(read(cohort))))


def shape_of(site: Site) -> tuple[int, int, int]:
    """M, N and K of an opcode."""
    found = next(filter(None, map(_SHAPE.fullmatch, site.opcode)), None)
    if found is None:
        raise site.refuse("given no shape, accepted m..n..k..")
    return tuple([int(number) for number in found.groups()])


def multiply_matrices(site: Site) -> Step:
    """mma.sync: one mma for each warp."""
    rows, columns, depth = shape_of(site)
    result, left, right, addend = site.opcode[-4:]
    if site.has("sp", "block_scale") or any(kind not in ELEMENTS for kind in (left, right)):
        raise site.refuse("accepted dense operands of {}", ", ".join(ELEMENTS))
    saturates = site.has("satfinite")
    double = left == "f64"
    register_bytes = 8 if double else 4
    a_fragment = operand_fragment(rows, depth, register_bytes // ELEMENTS[left].itemsize)
    b_fragment = operand_fragment(columns, depth, register_bytes // ELEMENTS[right].itemsize)
    d_fragment = accumulator_fragment(rows, columns, register_bytes // ELEMENTS[result].itemsize)
    c_fragment = accumulator_fragment(rows, columns, register_bytes // ELEMENTS[addend].itemsize)
    bits = f"b{8 * register_bytes}"
    reads = [[site.read(item, bits) for item in site.items(operand)]
             for operand in site.operands[1:]]
    writes = [site.write(item, bits) for item in site.items(site.operands[0])]
    for index, (given, wanted) in enumerate(zip((writes, *reads), (
            d_fragment, a_fragment, b_fragment, c_fragment))):
        if len(given) != len(wanted.rows):
            raise site.refuse("given {} registers for operand {}, accepted {}", len(given), index,
                              len(wanted.rows))
    name = site.instruction.name

    def step(cohort: Cohort) -> None:
        require_full_warps(cohort, name)
        a, b, c = [[cohort.by_warp(read(cohort)) for read in group] for group in reads]
        first = gather(a, a_fragment, (rows, depth), left)
        second = gather(b, b_fragment, (columns, depth), right).swapaxes(1, 2)
        third = gather(c, c_fragment, (rows, columns), addend)
        sums = multiply(first, second, third.astype(ELEMENTS[result]), left, saturates)
        for write, value in zip(writes, scatter(sums, d_fragment, container_of(bits))):
            write(cohort, value)
    return step


TABLE: dict[str, Decoder] = {
    "ldmatrix": load_matrix, "stmatrix": store_matrix, "movmatrix": transpose_matrix,
    "mma": multiply_matrices,
}
