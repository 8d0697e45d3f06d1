"""Warp-specialised Hopper kernels of a prototype, as PTX that ran on an H100: data of the tests.

Each was emitted by libNVVM; its name says its tile, its stages and its variant.
"""

from __future__ import annotations

import lzma
import math
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from blocknumba.emulator import Module, Options, Report, TensorMap

_DATA = Path(__file__).parent / "data"
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_SWIZZLE = 128


def text_of(name: str) -> str:
    """The PTX of a kernel."""
    return lzma.decompress((_DATA / f"{name}.ptx.xz").read_bytes()).decode()


@dataclass(frozen=True)
class Gemm:
    """C = A @ B of bf16: A is (M, K); B is (K, N) if transposed, else (N, K).

    tile: rows and columns of a block's tile.
    """

    name: str
    tile: tuple[int, int]
    threads: int
    shared_bytes: int
    cluster: int = 1
    transposed: bool = False

    def run(self, shape: tuple[int, int, int], text: str = "", blocks: int = 2,
            **options: object) -> tuple[np.ndarray, np.ndarray, Report]:
        """The product of random matrices of (M, N, K), NumPy's, and the report."""
        rows, columns, depth = shape
        random = np.random.default_rng(1)
        a = random.standard_normal((rows, depth)).astype(_BFLOAT16)
        b = random.standard_normal((columns, depth)).astype(_BFLOAT16)
        c = np.zeros((rows, columns), _BFLOAT16)
        operand = np.ascontiguousarray(b.T) if self.transposed else b
        box = (64, 64) if self.transposed else (self.tile[1] // self.cluster, 64)
        maps = [TensorMap(a, (self.tile[0], 64), _SWIZZLE), TensorMap(operand, box, _SWIZZLE),
                TensorMap(c, (64, 64), _SWIZZLE)]
        report = Module.parse(text or text_of(self.name)).launch(
            self.name, blocks, self.threads, [*maps, a, operand, c, rows, columns, depth, 4],
            self.shared_bytes, cluster=self.cluster, options=Options(**options))
        return c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T, report


@dataclass(frozen=True)
class Attention:
    """O = softmax(Q @ K.T / sqrt(D)) @ V of f16, by blocks of rows of Q and of K.

    rows, columns: of a block of scores.
    """

    name: str
    depth: int
    rows: int
    columns: int
    threads: int
    shared_bytes: int
    causal: bool = False

    def run(self, heads: int, length: int, text: str = "", blocks: int = 2,
            **options: object) -> tuple[np.ndarray, np.ndarray, Report]:
        """The output for random heads of a length, NumPy's, and the report."""
        random = np.random.default_rng(1)
        q, k, v = [random.standard_normal((heads, length, self.depth)).astype(np.float16)
                   for _ in range(3)]
        output = np.full_like(q, np.nan)
        maps = [TensorMap(array, (1, extent, 64), _SWIZZLE) for array, extent in (
            (q, self.rows), (k, self.columns), (v, self.columns), (output, 64))]
        sums, counters = np.zeros(heads * length, np.float32), np.zeros(64, np.int32)
        scale = math.log2(math.e) / math.sqrt(self.depth)
        report = Module.parse(text or text_of(self.name)).launch(
            self.name, blocks, self.threads, [*maps, sums, counters, length, heads, scale, 1],
            self.shared_bytes, options=Options(**options))
        return output.astype(np.float32), self._expected(q, k, v), report

    def _expected(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        q, k, v = (x.astype(np.float32) for x in (q, k, v))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(self.depth)
        if self.causal:
            scores = np.where(np.triu(np.ones(scores.shape[1:], bool), 1), -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def error(got: np.ndarray, expected: np.ndarray) -> float:
    """The relative error of a matrix; infinite when it has holes."""
    if not np.isfinite(got).all():
        return math.inf
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))
