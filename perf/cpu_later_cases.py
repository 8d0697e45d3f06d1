"""Cases of compare_cpu.py: the kernels of cpu_later_kernels.py."""

from __future__ import annotations

from collections.abc import Iterator

import cpu_later_kernels as ours
import cpu_later_peers as peers
import numpy as np
from cpu_case import Case, wide

import blocknumba as bn

LENGTH = 4_000_000


def later_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Pictures, rows, integers, bytes."""
    picture = generator.random((1500, 2001), np.float32)
    yield "Sobel, borders repeat", Case(
        lambda out: ours.edges[bn.cdiv(1500, 16), bn.cdiv(2001, 256)](picture, out, R=16, C=256),
        peers.edges, (picture,), lambda: edges(picture), lambda: edges(*wide(picture)),
        (np.empty_like(picture),), 1e-4)
    rows = generator.standard_normal((4096, 1000))

    def running() -> np.ndarray:
        return np.maximum.accumulate(rows, 1)
    yield "running maximum, float64", Case(
        lambda out: ours.running_maximum[len(rows)](rows, out, B=1024), peers.running_maximum,
        (rows,), running, running, (np.empty_like(rows),), 0)
    keys = generator.integers(0, 1 << 64, LENGTH, np.uint64)
    yield "hashes, uint64", Case(
        lambda out: ours.hashes[bn.cdiv(LENGTH, 4096)](keys, out, B=4096), peers.hashes, (keys,),
        lambda: hashes(keys), lambda: hashes(keys), (np.empty_like(keys),), 0)
    colours = generator.random((1_000_000, 3), np.float32)
    yield "hue, saturation, value", Case(
        lambda out: ours.hue_saturation_value[bn.cdiv(len(colours), 512)](colours, out, B=512),
        peers.hue_saturation_value, (colours,), lambda: hue_saturation_value(colours),
        lambda: hue_saturation_value(*wide(colours)), (np.empty_like(colours),), 1e-4)
    text = generator.integers(0, 128, 4 * LENGTH, np.uint8)

    def upper_case() -> np.ndarray:
        return np.where((text >= 97) & (text <= 122), text - np.uint8(32), text)
    yield "upper case, uint8", Case(
        lambda out: ours.upper_case[bn.cdiv(text.size, 8192)](text, out, B=8192),
        peers.upper_case, (text,), upper_case, upper_case, (np.empty_like(text),), 0)
    yield from record_cases(generator)


def record_cases(generator: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Elements that lie a few apart."""
    flags = generator.integers(0, 2, (LENGTH // 2, 8), np.uint8)

    def packed() -> np.ndarray:
        return np.packbits(flags, axis=1)[:, 0]
    yield "packed bits", Case(
        lambda out: ours.packed_bits[bn.cdiv(len(flags), 1024)](flags, out, B=1024),
        peers.packed_bits, (flags,), packed, packed, (np.empty(len(flags), np.uint8),), 0)
    x = generator.standard_normal(1 << 21, np.float32)
    yield "Haar's wavelet", Case(
        lambda out: ours.haar[x.size // 4096](x, out, B=2048), peers.haar, (x,),
        lambda: haar(x), lambda: haar(*wide(x)), (np.empty_like(x),))
    factors = generator.standard_normal((LENGTH // 40, 4, 4))
    squares = factors @ factors.transpose(0, 2, 1) + np.eye(4)

    def cholesky() -> np.ndarray:
        return np.linalg.cholesky(squares)
    yield "4x4 Cholesky, float64", Case(
        lambda out: ours.cholesky[bn.cdiv(len(squares), 64)](squares, out, B=64), peers.cholesky,
        (squares,), cholesky, cholesky, (np.empty_like(squares),), 1e-9)


def haar(x: np.ndarray) -> np.ndarray:
    """Means of pairs, then half their differences."""
    return np.concatenate([x[::2] + x[1::2], x[::2] - x[1::2]]) / 2


def edges(x: np.ndarray) -> np.ndarray:
    """Sobel's filter by shifts of a padded picture."""
    padded = np.pad(x, 1, "edge")
    part = {(a, b): padded[a:a + x.shape[0], b:b + x.shape[1]] for a in range(3) for b in range(3)}
    across = sum(weight * (part[a, 2] - part[a, 0]) for a, weight in enumerate((1, 2, 1)))
    down = sum(weight * (part[2, b] - part[0, b]) for b, weight in enumerate((1, 2, 1)))
    return np.sqrt(across * across + down * down)


def hashes(x: np.ndarray) -> np.ndarray:
    """Each key for itself, modulo 2**64."""
    u64 = np.uint64
    z = x + u64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
    return z ^ (z >> u64(31))


def hue_saturation_value(rgb: np.ndarray) -> np.ndarray:
    """(N, 3) each; no colour is black."""
    r, g, b = rgb.T
    value = rgb.max(1)
    chroma = value - rgb.min(1)
    hue = np.where(value == r, (g - b) / chroma,
                   np.where(value == g, 2 + (b - r) / chroma, 4 + (r - g) / chroma)) / 6
    return np.stack([np.where(hue < 0, hue + 1, hue), chroma / value, value], 1)
