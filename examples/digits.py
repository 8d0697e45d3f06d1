"""A small neural network that learns to read digits: forward, backward and descent in kernels."""

from pathlib import Path

import numpy as np

import blocknumba as bn
from array_libraries import ArrayLibrary, run
from matmul import matmul_bias, relu

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
CLASSES, HIDDEN, TEST = 10, 128, 360
BATCH, EPOCHS, RATE = 128, 12, 1.0
TILE = {"BM": 32, "BN": 32, "BK": 32}


@bn.jit
def cross_entropy(logits, labels, loss, slope, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """loss[i] = -log(softmax(logits[i])[labels[i]]), and the slope of their mean.

    logits, slope: (rows, classes); labels: (rows,) ints; COLUMNS: at least classes.
    """
    r, c = bn.block(0, ROWS), bn.span(0, COLUMNS)
    x = bn.load(logits.at[r, c], other=float("-inf"))
    shifted = x - bn.max(x, axis=1, keep_dims=True)
    powers = bn.exp(shifted)
    total = bn.sum(powers, axis=1, keep_dims=True)
    hit = labels[r][:, None] == c.index[None, :]
    loss[r] = bn.sum(bn.where(hit, bn.log(total) - shifted, 0.0), axis=1)
    slope[r, c] = (powers / total - hit) / logits.shape[0]


@bn.jit
def backward(slope, w, hidden, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """out = slope @ w.T where hidden is positive: back through a layer with relu."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(w.shape[1], BK):
        sums += slope[m, k] @ w[n, k].T
    out[m, n] = bn.where(hidden[m, n] > 0, sums, 0)


@bn.jit
def descend(x, slope, w, bias, rate, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """w -= rate * x.T @ slope and bias -= rate * slope.sum(0): one step of a layer."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums, totals = bn.zeros((BM, BN)), bn.zeros((BN,))
    for k in bn.spans(x.shape[0], BK):
        slopes = slope[k, n]
        sums += x[k, m].T @ slopes
        totals += bn.sum(slopes, axis=0)
    w[m, n] -= rate * sums
    if bn.program_id(0) == 0:
        bias[n] -= rate * totals


def identity(x):
    return x


def grid(rows: int, columns: int) -> tuple[int, int]:
    """Programs for the tiles of a matrix."""
    return bn.cdiv(rows, TILE["BM"]), bn.cdiv(columns, TILE["BN"])


class Network:
    """Two layers; all arrays are of one library.

    w1: (pixels, HIDDEN), w2: (HIDDEN, CLASSES), with a bias each.
    """

    def __init__(self, library: ArrayLibrary, pixels: int):
        generator = np.random.default_rng(0)
        shapes = (pixels, HIDDEN), (HIDDEN, CLASSES)
        self.w1, self.w2 = (library.array((generator.standard_normal(shape) / shape[0]**0.5)
                                          .astype(np.float32)) for shape in shapes)
        self.b1, self.b2 = (library.array(np.zeros(shape[1], np.float32)) for shape in shapes)
        self._empty = lambda *shape: library.array(np.zeros(shape, np.float32))

    def logits(self, x) -> tuple:
        """Outputs of both layers for images (rows, pixels)."""
        rows = x.shape[0]
        hidden, out = self._empty(rows, HIDDEN), self._empty(rows, CLASSES)
        matmul_bias[grid(rows, HIDDEN)](x, self.w1, self.b1, hidden, relu, **TILE)
        matmul_bias[grid(rows, CLASSES)](hidden, self.w2, self.b2, out, identity, **TILE)
        return hidden, out

    def step(self, x, labels, rate: float):
        """One step of gradient descent; the losses of the images before it."""
        rows, pixels = x.shape
        hidden, logits = self.logits(x)
        loss, slope, hidden_slope = (self._empty(rows), self._empty(rows, CLASSES),
                                     self._empty(rows, HIDDEN))
        cross_entropy[bn.cdiv(rows, 32)](logits, labels, loss, slope, ROWS=32, COLUMNS=16)
        backward[grid(rows, HIDDEN)](slope, self.w2, hidden, hidden_slope, **TILE)
        descend[grid(HIDDEN, CLASSES)](hidden, slope, self.w2, self.b2, rate, **TILE)
        descend[grid(pixels, HIDDEN)](x, hidden_slope, self.w1, self.b1, rate, **TILE)
        return loss


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 64) from 0 to 1 in a random order, and the digits that they show."""
    rows = np.loadtxt(DATA, delimiter=",", dtype=np.uint8)
    rows = np.random.default_rng(0).permutation(rows)
    return rows[:, :-1].astype(np.float32) / 16, rows[:, -1].astype(np.int32)


def train(library: ArrayLibrary) -> float:
    """Train on all images but the last TEST; the share of those that is then read rightly."""
    images, labels = digits()
    x, y = library.array(images[:-TEST]), library.array(labels[:-TEST])
    network = Network(library, images.shape[1])
    for _ in range(EPOCHS):
        for first in range(0, x.shape[0], BATCH):
            network.step(x[first:first + BATCH], y[first:first + BATCH], RATE)
    _, logits = network.logits(library.array(images[-TEST:]))
    return float((library.numpy(logits).argmax(axis=1) == labels[-TEST:]).mean())


# checks ---------------------------------------------------------------------------------------

def reference_step(x, labels, parameters, rate: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Losses, and w1, b1, w2, b2 after one step, in float64."""
    w1, b1, w2, b2 = (p.astype(np.float64) for p in parameters)
    hidden = np.maximum(x @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    rows = np.arange(len(x))
    loss = -np.log(chances[rows, labels])
    chances[rows, labels] -= 1
    slope = chances / len(x)
    hidden_slope = np.where(hidden > 0, slope @ w2.T, 0)
    return loss, [w1 - rate * x.T @ hidden_slope, b1 - rate * hidden_slope.sum(axis=0),
                  w2 - rate * hidden.T @ slope, b2 - rate * slope.sum(axis=0)]


def check_step(library: ArrayLibrary) -> None:
    """One step agrees with NumPy in float64."""
    images, labels = digits()
    x, y = images[:50], labels[:50]
    network = Network(library, images.shape[1])
    names = ("w1", "b1", "w2", "b2")
    before = [library.numpy(getattr(network, name)).copy() for name in names]
    loss = network.step(library.array(x), library.array(y), RATE)
    expected_loss, expected = reference_step(x, y, before, RATE)
    np.testing.assert_allclose(library.numpy(loss), expected_loss, rtol=1e-5)
    for name, parameter in zip(names, expected):
        np.testing.assert_allclose(library.numpy(getattr(network, name)), parameter, atol=1e-6)


def check(library: ArrayLibrary) -> None:
    """One step agrees with NumPy in float64, and the trained network reads digits."""
    check_step(library)
    accuracy = train(library)
    print(f"digits: {library}: {accuracy:.1%} of {TEST} images read rightly")
    assert accuracy >= 0.95


if __name__ == "__main__":
    run(check)
