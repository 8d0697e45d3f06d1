"""Arithmetic of floats that is rounded towards zero, down or up: add_rz, add_rd, add_ru, ...

NumPy rounds to nearest; the sign of the exact error says where the neighbour is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from blocknumba.tile_ir.ir.opdef import elementwise
from blocknumba.tile_ir.ir.types import float32, float64
from blocknumba.tile_ir.ops import numerics

MODES = {"rz": "towards zero", "rd": "towards minus infinity", "ru": "towards infinity"}
KINDS = {"add": ("x y", "x + y"), "mul": ("x y", "x * y"), "div": ("x y", "x / y"),
         "sqrt": ("x", "The square root of x"), "fma": ("x y z", "x * y + z")}
NAMES = tuple(f"{kind}_{mode}" for kind in KINDS for mode in MODES)

_NEAREST: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "mul": np.multiply, "div": np.true_divide, "sqrt": np.sqrt, "fma": numerics.fma}
# the sign of the exact result less r, of fractions
_ERROR: dict[str, Callable[..., Fraction]] = {
    "add": lambda r, x, y: x + y - r,
    "mul": lambda r, x, y: x * y - r,
    "div": lambda r, x, y: (x - r * y) * y,
    "sqrt": lambda r, x: x - r * r,
    "fma": lambda r, x, y, z: x * y + z - r,
}


def directed(kind: str, mode: str) -> Callable[..., np.ndarray]:
    """The numerics of an operation in a rounding mode."""
    def evaluate(*operands: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            nearest = np.asarray(_NEAREST[kind](*operands))
        error = _sign_of_error(kind, nearest, operands)
        infinite = nearest.dtype.type(np.inf)
        if mode == "ru":
            return np.where(error > 0, np.nextafter(nearest, infinite), nearest)
        if mode == "rz":
            is_beyond = error * np.sign(nearest) < 0
            return np.where(is_beyond, np.nextafter(nearest, nearest.dtype.type(0)), nearest)
        lower = np.where(error < 0, np.nextafter(nearest, -infinite), nearest)
        is_zero = (nearest == 0) & (error == 0) & _is_any_term_negative(kind, operands)
        return np.where(is_zero, nearest.dtype.type(-0.0), lower)

    return evaluate


def _is_any_term_negative(kind: str, operands: tuple[np.ndarray, ...]) -> np.ndarray | bool:
    """Whether a sum has a negative term: then it is -0 when it is exactly 0 and rounded down.

    Source: IEEE 754-2019, 6.3.
    """
    signs = [np.signbit(operand) for operand in operands]
    if kind == "add":
        return signs[0] | signs[1]
    return (signs[0] ^ signs[1]) | signs[2] if kind == "fma" else False


def _sign_of_error(kind: str, nearest: np.ndarray,
                   operands: tuple[np.ndarray, ...]) -> np.ndarray:
    """The sign of the exact result less the nearest one; 0 where it is exact or not finite."""
    operands = np.broadcast_arrays(*operands)
    finite = np.logical_and.reduce([np.isfinite(operand) for operand in operands])
    if kind == "div":
        finite = finite & (operands[1] != 0)
    if kind == "sqrt":
        finite = finite & (operands[0] >= 0)
    sign = np.where(finite & np.isinf(nearest), -np.sign(nearest), 0).astype(np.int8)
    measured = finite & np.isfinite(nearest)
    rows = zip(*(array[measured].tolist() for array in (nearest, *operands)))
    errors = [_ERROR[kind](*map(Fraction, row)) for row in rows]
    sign[measured] = [(error > 0) - (error < 0) for error in errors]
    return sign


for _kind, (_operands, _doc) in KINDS.items():
    for _mode, _direction in MODES.items():
        elementwise(f"{_kind}_{_mode}", _operands, directed(_kind, _mode),
                    frozenset((float32, float64)), f"{_doc}, rounded {_direction}.")
