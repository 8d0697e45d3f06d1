"""
3. A stencil
============

Programs that have a rectangle of a matrix need its neighbours. Spans can be moved: ``rows + 1`` is the same span one
further down. At the edges nothing special is written: outside of the array there are zeros.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn

y, x = np.mgrid[-1:1:200j, -1:1:300j]
picture = (np.cos(30 * (x**2 + y**2)) > 0).astype(np.float32)


@bn.jit
def edges(picture, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    rows, columns = bn.block(0, ROWS), bn.block(1, COLUMNS)
    across = bn.zeros((ROWS, COLUMNS), bn.float32)
    down = bn.zeros((ROWS, COLUMNS), bn.float32)
    for i in bn.static_range(-1, 2):
        weight = 2 - abs(i)
        across += weight * (picture[rows + i, columns + 1] - picture[rows + i, columns - 1])
        down += weight * (picture[rows + 1, columns + i] - picture[rows - 1, columns + i])
    out[rows, columns] = bn.sqrt(across * across + down * down)


# %%
# ``bn.static_range`` is unrolled: in each iteration ``i`` and ``weight`` are constants. The grid has two axes, one program
# for each rectangle of 16 x 64.

out = np.empty_like(picture)
grid = bn.cdiv(picture.shape[0], 16), bn.cdiv(picture.shape[1], 64)
edges[grid](picture, out, ROWS=16, COLUMNS=64)

# %%
# The same in NumPy, on a picture with a border of zeros:

padded = np.pad(picture, 1)
views = {(i, j): padded[1 + i:padded.shape[0] - 1 + i, 1 + j:padded.shape[1] - 1 + j]
         for i in (-1, 0, 1) for j in (-1, 0, 1)}
across = sum((2 - abs(i)) * (views[i, 1] - views[i, -1]) for i in (-1, 0, 1))
down = sum((2 - abs(i)) * (views[1, i] - views[-1, i]) for i in (-1, 0, 1))
np.testing.assert_allclose(out, np.sqrt(across**2 + down**2), rtol=1e-6)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.imshow(picture, cmap="gray")
right.imshow(out, cmap="magma")
left.set_title("picture")
right.set_title("edges")
for axes in (left, right):
    axes.axis("off")
plt.show()
