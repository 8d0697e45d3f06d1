"""
What attention looks at
=======================

The weights of one head, ``softmax(q @ k.T)``, under a causal mask: which keys each query sees, and how much of each. Fused
kernels never write this matrix; ``examples/attention.py`` is one.
"""

import matplotlib.pyplot as plt
import numpy as np

import blocknumba as bn


@bn.jit
def attention_weights(q, k, out, scale, ROWS: bn.constexpr, KEYS: bn.constexpr, D: bn.constexpr):
    rows, keys, d = bn.block(0, ROWS), bn.span(0, KEYS), bn.span(0, D)
    scores = (q[rows, d] @ k[keys, d].T) * scale
    visible = keys.index[None, :] <= rows.index[:, None]
    out[rows, keys] = bn.softmax(scores, 1, where=visible)


# %%
# Queries that look for keys of their own phase, and a little for near ones.

LENGTH, D = 128, 32
random = np.random.default_rng(0)
position = np.arange(LENGTH)[:, None]
angles = position / 12 * np.pi * np.array([1, 2, 3, 5])
features = np.concatenate((np.cos(angles), np.sin(angles)), axis=1)
q = np.float32(np.concatenate((features * 2, random.normal(0, 0.5, (LENGTH, D - 8))), axis=1))
k = np.float32(np.concatenate((features * 2, random.normal(0, 0.5, (LENGTH, D - 8))), axis=1))
weights = np.empty((LENGTH, LENGTH), np.float32)
attention_weights[bn.cdiv(LENGTH, 32)](q, k, weights, D**-0.5, ROWS=32, KEYS=LENGTH, D=D)

scores = np.where(position.T <= position, q @ k.T * D**-0.5, -np.inf)
powers = np.exp(scores - scores.max(axis=1, keepdims=True))
np.testing.assert_allclose(weights, powers / powers.sum(axis=1, keepdims=True), atol=1e-5)

figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
image = axes.imshow(np.sqrt(weights), cmap="magma")
axes.set(xlabel="key", ylabel="query", title="Square roots of the weights of attention")
figure.colorbar(image)
plt.show()
