"""
Layouts: which thread holds which element
=========================================

A layout says for each element of a tile which thread of a GPU holds it, and in which register. The compiler chooses them;
``python -m blocknumba draw`` shows those of a kernel, and ``python -m blocknumba layout`` draws one as text or SVG.
"""

import matplotlib.pyplot as plt
import numpy as np

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout

# %%
# The text of a layout has a column for each bit of register, lane and warp: the element, in C order, that the bit leads to.
# All three are of a tile of 16 x 32 elements in four warps of 32 lanes.

LAYOUTS = {
    "rows: four neighbours in a thread": "register:1.2;lane:4.8.16.32.64;warp:128.256/dim1:5;dim0:4",
    "columns: what a transposed load wants": "register:32.64;lane:128.256.1.2.4;warp:8.16"
                                             "/dim1:5;dim0:4",
    "tensor cores: the accumulator of mma.sync": "register:1.256;lane:2.4.32.64.128;warp:8.16"
                                                 "/dim1:5;dim0:4",
}


def owners(text):
    """The warp and the lane of each element, (16, 32) ints."""
    layout = LinearLayout.parse(text)
    warps, lanes = np.empty((2, 16, 32), int)
    for warp in range(4):
        for lane in range(32):
            for register in range(4):
                at = layout(register=register, lane=lane, warp=warp)
                warps[at["dim0"], at["dim1"]], lanes[at["dim0"], at["dim1"]] = warp, lane
    return warps, lanes


figure, panels = plt.subplots(3, 1, figsize=(8, 11), layout="constrained")
for axes, (title, text) in zip(panels, LAYOUTS.items()):
    warps, lanes = owners(text)
    axes.imshow(warps + lanes / 40, cmap="tab20b", vmin=0, vmax=4)
    for i in range(16):
        for j in range(32):
            axes.text(j, i, lanes[i, j], ha="center", va="center", fontsize=5, color="white")
    axes.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# The colour is the warp, and within it the lane, which is also written.
