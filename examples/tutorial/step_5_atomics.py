"""
5. Count with atomics
=====================

Programs run at once and in any order. Where several of them change one element, they do it by *atomics*:
``bn.atomic_add`` reads, adds and writes in one step.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn

random = np.random.default_rng(0)
angle = random.uniform(0, 8 * np.pi, 100_000)
points = np.stack((angle * np.cos(angle), angle * np.sin(angle)), axis=1) / 26
points = (points + random.normal(0, 0.03, points.shape)).astype(np.float32)


@bn.jit
def density(points, counts, BLOCK: bn.constexpr):
    for r in bn.grid_spans(points.shape[0], BLOCK):
        i = bn.floor((points[r, 1] + 1.2) / 2.4 * counts.shape[0]).to(bn.int32)
        j = bn.floor((points[r, 0] + 1.2) / 2.4 * counts.shape[1]).to(bn.int32)
        bn.atomic_add(counts.at[i, j], 1, mask=r.index < points.shape[0])


# %%
# ``bn.grid_spans`` shares the spans of the points between the programs of the grid, however many there are. ``i`` and ``j``
# are tiles of ints, so ``counts.at[i, j]`` names scattered elements, as NumPy's fancy indices do. An index outside of
# ``counts`` is skipped. The mask leaves out the points beyond the last one, which read as 0 and would be counted.

counts = np.zeros((120, 120), np.int32)
density[8](points, counts, BLOCK=1024)

bins = np.linspace(-1.2, 1.2, 121)
expected, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(bins, bins))
print(counts.sum(), "points counted,", int(np.abs(counts - expected).sum()),
      "in another cell than in float64")
assert counts.sum() == expected.sum() and np.abs(counts - expected).sum() < 50

figure, axes = plt.subplots(figsize=(4.5, 4))
axes.imshow(np.sqrt(counts), cmap="inferno", origin="lower")
axes.set_title("Points in each cell")
axes.axis("off")
plt.show()

# %%
# Sums of ints are the same in every order. Sums of floats are not: atomics on floats give results that differ in the last
# digits from launch to launch. Where that matters, each program writes its part to a place of its own, and a second launch
# adds up the parts.
