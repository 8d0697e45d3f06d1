"""
6. Scan
=======

A *scan* gives, for each element, the combination of all up to it: ``bn.cumsum``, ``bn.cummax``, and
``bn.associative_scan`` with a function of your own. So recurrences run in parallel that look as if each step must wait for
the one before.

The exponential average ``s[i] = decay * s[i - 1] + (1 - decay) * x[i]`` applies the maps ``s -> a * s + b`` one after the
other. Two of them in a row are again such a map; that is all that is needed.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn


def then(a0, b0, a1, b1):
    """s -> a0 * s + b0, and then s -> a1 * s + b1."""
    return a1 * a0, a1 * b0 + b1


@bn.jit
def smooth(x, out, decay, BLOCK: bn.constexpr):
    row, last = bn.program_id(0), 0.0
    for r in bn.spans(x.shape[1], BLOCK):
        tile = x[row, r]
        slope = bn.full((BLOCK,), decay, bn.float32)
        a, b = bn.associative_scan((slope, (1 - decay) * tile), 0, then)
        smoothed = a * last + b
        out[row, r] = smoothed
        last = bn.sum(bn.where(bn.arange(BLOCK) == BLOCK - 1, smoothed, 0))


# %%
# A scan works within a tile. The loop carries the last value from one tile to the next.

random = np.random.default_rng(0)
time = np.linspace(0, 6, 1500)
signal = (np.sin(time) * np.sin(5 * time) + random.normal(0, 0.4, (3, 1500))).astype(np.float32)
out = np.empty_like(signal)
smooth[3](signal, out, 0.95, BLOCK=256)

expected, s = np.empty((3, 1500)), np.zeros(3)
for i in range(1500):
    s = 0.95 * s + 0.05 * signal[:, i]
    expected[:, i] = s
np.testing.assert_allclose(out, expected, atol=1e-6)

figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.plot(time, signal[0], ".", markersize=2, color="lightgray", label="signal")
axes.plot(time, out[0], label="exponential average")
axes.plot(time, np.sin(time) * np.sin(5 * time), "--", label="without noise")
axes.legend()
plt.show()

# %%
# ``examples/scan.py`` scans a whole array over many programs, in one pass.
