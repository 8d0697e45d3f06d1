"""Vector add: each program adds BLOCK elements."""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

BLOCK = 1024


@bn.jit
def add(x, y, out, BLOCK: bn.constexpr):
    """out = x + y; the arrays know where they end."""
    r = bn.block(0, BLOCK)
    out[r] = x[r] + y[r]


@bn.jit
def add_pointers(x, y, out, size, BLOCK: tl.constexpr):
    """The same in Triton's dialect: pointers, offsets and a mask."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    total = tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside)
    tl.store(out + offsets, total, mask=inside)


def check(library: ArrayLibrary) -> None:
    """Both dialects, on arrays of library, give NumPy's x + y bit for bit."""
    x, y = np.random.default_rng(0).standard_normal((2, 10_007), np.float32)
    grid = bn.cdiv(x.size, BLOCK)
    for kernel, sizes in ((add, ()), (add_pointers, (x.size,))):
        out = library.array(np.zeros_like(x))
        kernel[grid](library.array(x), library.array(y), out, *sizes, BLOCK=BLOCK)
        np.testing.assert_array_equal(library.numpy(out), x + y)


if __name__ == "__main__":
    run(check)
