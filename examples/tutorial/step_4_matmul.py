"""
4. Multiply matrices
====================

``a @ b`` multiplies tiles; on a GPU it runs on tensor cores. A program computes one tile of the result and walks along the
inner axis. The data: 1,797 handwritten digits of 64 pixels each, whose products say how alike they are; it lies in
``examples/data`` of the repository.
"""

import gzip
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn

# in a clone, or beside this program
places = (Path.cwd(), *Path.cwd().parents, Path(sys.argv[0]).parent)
files = [p / name / "digits.csv.gz" for p in places for name in ("examples/data", "data")]
with gzip.open(next(filter(Path.exists, files), files[-1]), "rt") as file:
    table = np.loadtxt(file, np.float32, delimiter=",")
table = table[np.argsort(table[:, -1], kind="stable")]
digits, labels = table[:, :-1], table[:, -1]
digits = digits / np.linalg.norm(digits, axis=1, keepdims=True)


@bn.jit
def product(a, b, out, M: bn.constexpr, N: bn.constexpr, K: bn.constexpr):
    rows, columns = bn.block(0, M), bn.block(1, N)
    total = bn.zeros((M, N), bn.float32)
    for inner in bn.spans(a.shape[1], K):
        total += a[rows, inner] @ b[inner, columns]
    out[rows, columns] = total


# %%
# ``digits.T`` is a view with other strides; kernels take arrays of any strides. ``float16`` operands are multiplied exactly
# and added up in ``float32``.

a = digits.astype(np.float16)
alike = np.empty((len(a), len(a)), np.float32)
grid = bn.cdiv(len(a), 64), bn.cdiv(len(a), 64)
product[grid](a, a.T, alike, M=64, N=64, K=32)

exact = a.astype(np.float64) @ a.T.astype(np.float64)
print("largest error:", np.abs(alike - exact).max())
assert np.abs(alike - exact).max() < 1e-6

figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
axes.set_title("Products of digits, in order of what they show")
image = axes.imshow(alike[::3, ::3], cmap="viridis", vmin=0.2)
first = np.searchsorted(labels, range(10)) / 3
axes.set_xticks(first, list("0123456789"))
axes.set_yticks(first, list("0123456789"))
figure.colorbar(image)
plt.show()

# %%
# `Products of matrices <../linear_algebra.html>`_ has the dtypes, accumulators and precisions; ``examples/matmul.py`` the
# tiles that are fast on a GPU.
