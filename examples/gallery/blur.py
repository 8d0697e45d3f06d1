"""
A photograph, blurred and sharpened
===================================

Stencils of nine weights on the three channels of a photograph. The kernel is that of ``examples/photograph.py``: shifted
spans, a tuple of weights as a constant, and an unrolled loop.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
from photograph import BLUR, PHOTOGRAPH, SHARPEN, filtered, stencil
from array_libraries import NUMPY

photograph = plt.imread(PHOTOGRAPH)[100:260, 200:440]
print(inspect.getsource(stencil.python_function))

# %%
# The blur is applied eight times, so that one sees it.

blurred = np.ascontiguousarray(photograph)
for _ in range(8):
    blurred = filtered(NUMPY, blurred, BLUR)
sharpened = filtered(NUMPY, np.ascontiguousarray(photograph), SHARPEN)

figure, panels = plt.subplots(1, 3, figsize=(10, 2.6), layout="constrained")
for axes, title, picture in zip(panels, ("as it is", "blurred", "sharpened"),
                                (photograph, blurred, sharpened)):
    axes.imshow(picture)
    axes.set_title(title)
    axes.axis("off")
plt.show()
