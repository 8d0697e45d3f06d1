"""
1. Add two arrays
=================

A kernel is a Python function that says what one *program* does. A launch runs it once for each point of a grid. Here a
program adds one *block* of the arrays.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn


@bn.jit
def add(x, y, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r] + y[r]


# %%
# ``bn.block(0, BLOCK)`` is the *span* of BLOCK elements that belong to this program: the program's number times BLOCK, and
# the elements from there on. ``x[r]`` loads them as a *tile*, an array of a shape that is known when the kernel is
# compiled. Python's operators and NumPy's functions work on tiles as they do on arrays.
#
# ``BLOCK: bn.constexpr`` is a constant of the compilation. The sizes of tiles are constants, and powers of two.

x = np.linspace(0, 10, 1000, dtype=np.float32)
y = np.sin(x).astype(np.float32)
out = np.empty_like(x)

add[bn.cdiv(x.size, 256)](x, y, out, BLOCK=256)

assert np.array_equal(out, x + y)

# %%
# The grid is in brackets: ``bn.cdiv(1000, 256)``, which is 4, programs. Four blocks of 256 reach beyond the 1000 elements.
# That is allowed: what lies outside of an array reads as 0, and is not written.

owner = np.empty(x.size, np.int32)


@bn.jit
def who(owner, BLOCK: bn.constexpr):
    owner[bn.block(0, BLOCK)] = bn.program_id(0)


who[4](owner, BLOCK=256)

figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.scatter(x, out, c=owner, cmap="viridis", s=4)
axes.set(xlabel="x", ylabel="x + sin(x)", title="Which of the four programs wrote an element")
plt.show()

# %%
# The launch compiled the kernel, for ``float32`` arrays of one axis and this BLOCK; the next one finds the code. It returns
# what it compiled:

compiled = add[4](x, y, out, BLOCK=256)
print(compiled.asm["tile"])

# %%
# To try a function on arrays without writing a kernel, there is ``bn.evaluate``:

print(bn.evaluate(bn.maximum, [1, 5, 2, 8], 4))
