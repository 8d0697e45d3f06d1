"""PTX instructions that an assembler gets wrong, written otherwise.

The assembler of CUDA 13.0 takes it that neg.s16 and abs.s16 do not overflow: it leaves out the
extension of their result where a conversion, a comparison, a shift or a product reads its sign, so
that -(-32768) is 32768 there.  That of 13.5 does not.  Both are right about 32 bits.
What we lower negates 16 bits by inline PTX in 32 (services/integers.py); this rewrites what libNVVM
makes of other code, as of scalar functions from numba-cuda.  Those stay as they are where no PTX
text passes through our hands: kernels linked from LTO IR, and callers of device functions.
"""

from __future__ import annotations

import re

_OF_16_BITS = re.compile(rb"\b(neg|abs)\.s16\s+(%\w+),\s*(%\w+);")
_IN_32_BITS = (rb"{ .reg .b32 wide; cvt.s32.s16 wide, \3; \1.s32 wide, wide; "
               rb"cvt.u16.u32 \2, wide; }")


def corrected(ptx: bytes) -> bytes:
    """PTX in which no instruction is left that an assembler is known to get wrong."""
    return _OF_16_BITS.sub(_IN_32_BITS, ptx)
