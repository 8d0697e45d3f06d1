"""PTX instructions that an assembler gets wrong, or slow, written otherwise.

The assembler of CUDA 13.0 takes it that neg.s16 and abs.s16 do not overflow: it leaves out the
extension of their result where a conversion, a comparison, a shift or a product reads its sign, so
that -(-32768) is 32768 there.  That of 13.5 does not.  Both are right about 32 bits.
What we lower negates 16 bits by inline PTX in 32 (services/integers.py); this rewrites what libNVVM
makes of other code, as of scalar functions from numba-cuda.  Those stay as they are where no PTX
text passes through our hands: kernels linked from LTO IR, and callers of device functions.

Of a sum with a rounding modifier, add.rn, the assembler infers no range, so 1 / (1 + exp(-x)) has
the checks of a quotient by any number: 5 instructions instead of 2 for each sigmoid.  A product and
a sum without modifiers may become one instruction that rounds once; where all products have one
(-fma=0 of libNVVM), sums need none.
Source: PTX ISA, "Floating Point Instructions: add", on rounding modifiers.
"""

from __future__ import annotations

import re

_OF_16_BITS = re.compile(rb"\b(neg|abs)\.s16\s+(%\w+),\s*(%\w+);")
_IN_32_BITS = (rb"{ .reg .b32 wide; cvt.s32.s16 wide, \3; \1.s32 wide, wide; "
               rb"cvt.u16.u32 \2, wide; }")
_ROUNDED_SUM = re.compile(rb"\b(add|sub)\.rn\.f32")
_FREE_PRODUCT = re.compile(rb"\bmul(\.ftz)?(\.sat)?\.f32")


def corrected(ptx: bytes) -> bytes:
    """PTX in which no instruction is left that an assembler is known to get wrong or slow."""
    ptx = _OF_16_BITS.sub(_IN_32_BITS, ptx)
    return ptx if _FREE_PRODUCT.search(ptx) else _ROUNDED_SUM.sub(rb"\1.f32", ptx)
