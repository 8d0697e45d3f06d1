"""Triton's dialect, which functions under `blocknumba.triton.jit` are in.

Its types, rounding and precision are those of Triton 3.6.  Source: Triton, triton.language.
"""

from __future__ import annotations

import re

from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.types import PointerType
from blocknumba.typing.dialect import TRITON_NAME, Dialect
from blocknumba.typing.triton.constants import ATTRIBUTES
from blocknumba.typing.triton.functions import METHODS
from blocknumba.typing.triton.operators import binary, settled, truth, unary
from blocknumba.typing.triton.promotion import named_dtype
from blocknumba.typing.triton.python_functions import BUILTINS
from blocknumba.typing.triton.syntax import INTRINSICS, written

# what both languages call by one name, of what messages name
_SHARED = frozenset("""arange atomic_add bfloat16 cast cdiv constexpr device_print float16 float32
    float64 full gather int16 int32 int64 int8 join load max maximum min minimum rand randint randn
    sort static_range store sum uint16 uint32 uint64 uint8 where zeros""".split())
_NAME = re.compile(r"\bbn\.(\w+)")
# the hint of a shared rule -> what to do in Triton's dialect
_OTHERWISE = tuple((re.compile(pattern), words) for pattern, words in (
    (r"reduce it first, with bn\.any .*",
     "reduce it first, with tl.reduce_or(x, axis=0), or use tl.where; "
     "a < b < c of tiles is (a < b) & (b < c)"),
    (r"load elements first: (\w+)\[.*", r"load elements first: tl.load(\1 + offsets)"),
    (r"load it: bn\.load\(x\.at\[\.\.\.\]\)", "load it: tl.load(x + offsets)"),
    (r"use bn\.store\(x\.at\[\.\.\.\], value\)", "use tl.store(x + offsets, value)"),
    (r"use a mask: bn\.load\(x\.at\[\.\.\.\], mask=m\)",
     "use a mask: tl.load(x + offsets, mask=m)"),
    (r"(index the array: |x\[i\] are their values; ).*", "add offsets to a pointer: x + offs"),
    (r"an array and its indices are one argument: .*", "add offsets to the pointer: x + offs"),
    (r"one element is named: .*", "one element is named: add a tile of offsets to the pointer")))


def reword(error: BlockError) -> None:
    """Say in Triton's words what was accepted and what to do; nothing where it has none.

    error: of a rule that both dialects share, which names what to write as NumPy's has it,
        `bn.where(...)` and `x[bn.span(0, N)]`.
    """
    error.message = _NAME.sub(_in_triton, error.message)
    for pattern, words in _OTHERWISE:
        if pattern.fullmatch(error.hint):
            error.hint = pattern.sub(words, error.hint)
            return
    if any(name not in _SHARED for name in _NAME.findall(error.hint)):
        error.hint = ""
    error.hint = _NAME.sub(_in_triton, error.hint)


def _in_triton(found: re.Match) -> str:
    return f"tl.{found[1]}" if found[1] in _SHARED else found[0]


DIALECT = Dialect(TRITON_NAME, binary, unary, truth, PointerType, settled, named_dtype, ATTRIBUTES,
                  METHODS, BUILTINS, written, INTRINSICS, reword)
