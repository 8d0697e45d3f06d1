"""
The Mandelbrot set, and Newton's method
=======================================

Loops that end for each point when the point's own does: ``bn.map`` calls a function of scalars, which Numba compiles, for
each element of a tile. The kernels are those of ``examples/fractals.py``.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
from fractals import COLUMNS, ROWS, escape, mandelbrot, newton

import blocknumba as bn

print(inspect.getsource(escape.py_func))
print(inspect.getsource(mandelbrot.python_function))

# %%
# A launch for each picture, a program for each rectangle of it.

HEIGHT, WIDTH = 320, 480
grid = bn.cdiv(HEIGHT, ROWS), bn.cdiv(WIDTH, COLUMNS)
counts, roots, steps = np.zeros((3, HEIGHT, WIDTH), np.int32)
mandelbrot[grid](counts, -2.1, -1.07, 3.2 / WIDTH, 100, ROWS=ROWS, COLUMNS=COLUMNS)
newton[grid](roots, steps, -1.5, -1.0, 3.0 / WIDTH, 60, ROWS=ROWS, COLUMNS=COLUMNS)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
left.imshow(np.log(counts + 1), cmap="twilight_shifted")
right.imshow(roots + np.minimum(steps, 20) / 25, cmap="viridis")
left.set_title("iterations until a point escapes")
right.set_title("the root of $z^3 = 1$ that Newton finds")
for axes in (left, right):
    axes.axis("off")
plt.show()
