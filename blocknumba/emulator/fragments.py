"""Matrix fragments: the elements that each lane's registers hold, for mma and wgmma."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from blocknumba.emulator.cohort import LANES

_LANE = np.arange(LANES)
_GROUP, _IN_GROUP = _LANE >> 2, _LANE & 3  # PTX ISA, "Matrix Fragments": groupID, threadID_in_group

ELEMENTS: dict[str, np.dtype] = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "s32": np.dtype(np.int32),
}


@dataclass(frozen=True, slots=True)
class Fragment:
    """Rows and columns of the elements in registers, each (registers, elements, lanes)."""

    rows: np.ndarray
    columns: np.ndarray


@cache
def operand_fragment(rows: int, depth: int, per_register: int) -> Fragment:
    """The first operand of mma, (rows, depth), per_register elements to a register.

    The second operand is (depth, 8): its transpose has the fragment for rows=8.
    Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and its siblings.
    """
    halves = rows // 8
    count = halves * depth // (4 * per_register)
    register = np.arange(count)[:, None, None]
    element = np.arange(per_register)[None, :, None]
    row = _GROUP + 8 * (register % halves) + 0 * element
    column = (per_register * _IN_GROUP + element
              + 4 * per_register * (register // halves))
    return Fragment(row, column)


@cache
def accumulator_fragment(rows: int, columns: int, per_register: int) -> Fragment:
    """The accumulator of mma, (rows, columns), in registers of per_register elements.

    Also that of one warp of wgmma, whose 16 rows are 16 * warp on.
    """
    halves = rows // 8
    pairs = 2 // per_register  # registers for two neighbours of a row
    count = halves * columns // 8 * pairs
    register = np.arange(count)[:, None, None]
    element = np.arange(per_register)[None, :, None]
    within = register % (halves * pairs)
    row = _GROUP + 8 * (within // pairs) + 0 * element
    column = (8 * (register // (halves * pairs)) + 2 * _IN_GROUP + within % pairs + element)
    return Fragment(row, column)


def gather(registers: list[np.ndarray], fragment: Fragment, shape: tuple[int, int],
           kind: str) -> np.ndarray:
    """Matrices of each warp from its registers: (warps, rows, columns).

    registers: (warps, 32) each, of a kind of element.
    """
    dtype = ELEMENTS[kind]
    words = np.stack(registers, 1)  # (warps, registers, lanes)
    elements = np.ascontiguousarray(words).view(dtype).reshape(*words.shape, -1)
    matrix = np.zeros((len(words), *shape), dtype)
    matrix[:, fragment.rows, fragment.columns] = elements.swapaxes(2, 3)
    return matrix


def scatter(matrix: np.ndarray, fragment: Fragment, container: np.dtype) -> list[np.ndarray]:
    """The registers of each lane from the matrices of each warp: (warps * 32,) each."""
    elements = matrix[:, fragment.rows, fragment.columns]  # (warps, registers, elements, lanes)
    words = np.ascontiguousarray(elements.swapaxes(2, 3)).view(container)
    return [np.ascontiguousarray(words[:, register]).reshape(-1)
            for register in range(words.shape[1])]
