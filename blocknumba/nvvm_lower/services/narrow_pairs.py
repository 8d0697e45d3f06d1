"""Arithmetic of 16-bit floats, two in a word: the bits that float32 arithmetic gives, rounded.

A float32 has more than twice the digits of a float16 and of a bfloat16, and two more: a sum,
difference or product that is rounded to float32 first and then to 16 bits is what one rounding
gives.  Source: Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3).
A bfloat16 product below float32's normal numbers has at most 16 digits too, and either all of them
are kept in float32, or it rounds to zero both ways.
"""

from __future__ import annotations

from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.ptx import arithmetic as ptx
from blocknumba.nvvm_lower.services.words import pack, unpack
from blocknumba.tile_ir.ir.types import DType, bfloat16, float16

_EXTREMES = {"minimum": "min.NaN", "maximum": "max.NaN"}
OPERATIONS = frozenset(("add", "sub", "mul", "fma", *_EXTREMES))
_TWICE = 0x10001  # a bfloat16 in both halves
_ONE, _MINUS_ONE, _MINUS_ZERO = 0x3F80, 0xBF80, 0x8000  # as bfloat16


def has_pairs(name: str, dtype: DType, operands: tuple[Registers, ...]) -> bool:
    """Whether combine can do an op on operands of a dtype."""
    return name in OPERATIONS and dtype in (float16, bfloat16) and not len(operands[0]) % 2


def combine(emitter: Emitter, name: str, dtype: DType, *operands: Registers) -> Registers:
    """An op on 16-bit floats, of which there is an even number."""
    results: Registers = []
    for first in range(0, len(operands[0]), 2):
        words = [pack(emitter, dtype, values[first:first + 2])[0] for values in operands]
        results += unpack(emitter, dtype, [_pair(emitter, name, dtype, words)], 2)
    return results


def _pair(emitter: Emitter, name: str, dtype: DType, words: list[str]) -> str:
    """One op on words of two floats."""
    if name == "fma":
        return emitter.assembly(ptx.FMA_PAIR[dtype.name], *words)[0]
    row = ptx.PAIRED.get((dtype.name, _EXTREMES.get(name, name)))
    if row is not None:
        return emitter.assembly(row, *words)[0]
    x, y = words
    factors = {"add": (x, _both(_ONE), y), "sub": (y, _both(_MINUS_ONE), x),
               "mul": (x, y, _both(_MINUS_ZERO))}
    return emitter.assembly(ptx.FMA_PAIR[dtype.name], *factors[name])[0]


def _both(bits: int) -> str:
    """The word with 16 bits in both halves, as a literal."""
    return str(bits * _TWICE - ((bits >> 15) << 32))
