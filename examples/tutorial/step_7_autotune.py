"""
7. Choose sizes by measuring
============================

Which tiles are fast depends on the device and on the arrays. ``@bn.autotune`` measures a few configurations at the first
launch with arrays of a new shape, and keeps the results on disk.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn

configurations = [bn.Config({"ROWS": rows}) for rows in (1, 4, 16, 64)]


@bn.autotune(configurations, key=["x.shape"], warmup=2, rep=10)
@bn.jit
def softmax(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    rows, columns = bn.block(0, ROWS), bn.span(0, COLUMNS)
    tile = bn.load(x.at[rows, columns], other=float("-inf"))
    powers = bn.exp(tile - bn.max(tile, axis=1, keepdims=True))
    out[rows, columns] = powers / bn.sum(powers, axis=1, keepdims=True)


# %%
# The grid depends on the choice: a function of the arguments, among which the chosen ROWS are.

x = np.random.default_rng(0).standard_normal((4096, 100), np.float32)
out = np.empty_like(x)
softmax[lambda arguments: bn.cdiv(len(x), arguments["ROWS"])](x, out, COLUMNS=128)

powers = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
print("the fastest:", softmax.best_config)

# %%
# While it measures, arrays that the kernel stores to are replaced with copies, so a kernel that changes its arguments runs
# once, as far as these can tell. The timings are rows of a table:

times_us = [row.timing.median_ms * 1e3 for row in softmax.timings]
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.bar([str(row.configuration) for row in softmax.timings], times_us)
axes.set(ylabel="time (us)", title="Softmax of 4096 rows of 100, on the device that built this page")
plt.show()

# %%
# `Tuning <../tuning.html>`_ says what else can be chosen, and what is taken where nothing is.
