"""
2. Statistics of rows, with gaps
================================

A program that has a row of a matrix reduces it: ``bn.mean``, ``bn.std``, ``bn.max`` and the others are NumPy's, with its
``axis``, its dtypes and its treatment of NaN.

The data: the temperatures of forty stations, one a row, of which some measurements are missing.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn

random = np.random.default_rng(0)
hours = np.arange(300)
temperatures = (10 + random.normal(0, 4, (40, 1)) + 6 * np.sin(hours / 24 * 2 * np.pi)
                + random.normal(0, 1, (40, 300))).astype(np.float32)
temperatures[random.random(temperatures.shape) < 0.2] = np.nan


@bn.jit
def statistics(x, mean, spread, COLUMNS: bn.constexpr):
    i, columns = bn.program_id(0), bn.span(0, COLUMNS)
    row = x[i, columns]
    inside = columns.index < x.shape[1]
    mean[i] = bn.nanmean(row, where=inside)
    spread[i] = bn.nanstd(row, where=inside)


# %%
# A tile of 512 elements holds a row of 300. The 212 elements outside read as 0, and 0 is a number: it would count. So
# ``where=`` says which elements do. NaN is left out by ``nanmean`` itself.

mean, spread = np.empty((2, 40), np.float32)
statistics[40](temperatures, mean, spread, COLUMNS=512)

np.testing.assert_allclose(mean, np.nanmean(temperatures, axis=1), rtol=1e-5)
np.testing.assert_allclose(spread, np.nanstd(temperatures, axis=1), rtol=1e-5)

# %%
# A row that is longer than a tile takes a loop. ``bn.spans`` gives the spans one after the other; the loop carries the sum
# and the count.


@bn.jit
def long_mean(x, mean, BLOCK: bn.constexpr):
    i = bn.program_id(0)
    total, count = 0.0, 0
    for columns in bn.spans(x.shape[1], BLOCK):
        part = bn.load(x.at[i, columns], other=float("nan"))
        total += bn.nansum(part)
        count += bn.count_nonzero(~bn.isnan(part))
    mean[i] = total / count


# %%
# ``bn.load(x.at[...], other=...)`` chooses what is read outside of the array; here NaN, which is left out anyway.

again = np.empty_like(mean)
long_mean[40](temperatures, again, BLOCK=64)
np.testing.assert_allclose(again, mean, rtol=1e-5)

order = np.argsort(mean)
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.errorbar(np.arange(40), mean[order], spread[order], fmt="o", capsize=2)
axes.set(xlabel="station, in order of its mean", ylabel="temperature",
         title="Mean and standard deviation of rows with gaps")
plt.show()
