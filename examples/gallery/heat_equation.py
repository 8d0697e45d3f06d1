"""
Heat, a thousand steps
======================

A simulation in one ``@njit`` function, which launches a block kernel again and again without going back to Python. The
functions are those of ``examples/heat.py``.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
from heat import simulate, step

print(inspect.getsource(step.python_function))
print(inspect.getsource(simulate.py_func))

# %%
# Letters that are hot, in a room that is cold at its walls.

figure, axes = plt.subplots(figsize=(4, 1.6), dpi=80)
axes.text(0.5, 0.45, "block", fontsize=70, ha="center", va="center")
axes.axis("off")
figure.canvas.draw()
letters = 1 - np.asarray(figure.canvas.buffer_rgba())[..., 0].astype(np.float32) / 255
plt.close(figure)

figure, panels = plt.subplots(1, 3, figsize=(10, 1.9), layout="constrained")
for axes, steps in zip(panels, (0, 40, 1000)):
    now, then = letters.copy(), np.zeros_like(letters)
    simulate(now, then, np.float32(0.2), steps)
    axes.imshow(now, cmap="inferno")
    axes.set_title(f"{steps} steps")
    axes.axis("off")
plt.show()
