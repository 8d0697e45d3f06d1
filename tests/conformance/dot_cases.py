"""Cases of dots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from dot_oracle import KINDS, error_bound, exact_dot, random_matrix

from case import Case, covers, one_op_case

# (M, K, N), or the number of batches before them
SHAPES = ((16, 16, 16), (1, 1, 1), (2, 4, 8), (1, 32, 16), (16, 64, 1), (64, 16, 8), (8, 2, 64),
          (32, 32, 32), (2, 16, 16, 16), (4, 1, 2, 2))
INFINITIES = [kind for kind in KINDS if kind[0] in ("float16", "bfloat16", "float32", "float64")
              and kind[3] == "ieee"]


def operands(generator: np.random.Generator, size: tuple[int, ...],
             kind: tuple[str, ...]) -> list[np.ndarray]:
    """a, b and acc of a size (..., M, K, N)."""
    *batches, rows, inner, columns = size
    shapes = (rows, inner), (inner, columns), (rows, columns)
    return [random_matrix(generator, (*batches, *shape), dtype)
            for shape, dtype in zip(shapes, kind)]


def case(title: str, tiles: list[np.ndarray], precision: str) -> Case:
    """A case that compares with the exact dot, up to the error that the op states."""
    with np.errstate(invalid="ignore", over="ignore"):
        bound = error_bound(*tiles, precision)
        expected = exact_dot(*tiles, precision).astype(tiles[2].dtype)
    return one_op_case("dot", title, tiles, [expected], ulps=int(tiles[2].dtype.kind == "f"),
                       absolute=float(bound[np.isfinite(bound)].max(initial=0.0)),
                       signed_zeros=False, precision=precision)


@covers("dot")
def dot_cases() -> Iterator[Case]:
    """Every kind of dot in every shape."""
    generator = np.random.default_rng(0)
    for kind in KINDS:
        for size in SHAPES:
            title = "-".join(map(str, (*kind, "x".join(map(str, size)))))
            yield case(title, operands(generator, size, kind), kind[3])


@covers("dot")
def dot_extreme_cases() -> Iterator[Case]:
    """Integers of the greatest magnitude; infinities and NaN, which stay in their row."""
    for kind in (kind for kind in KINDS if kind[2] == "int32"):
        for name in ("min", "max"):
            a, b = (np.full((64, 64), getattr(np.iinfo(dtype), name), dtype)
                    for dtype in kind[:2])
            acc = np.full((64, 64), np.iinfo(np.int32).max, np.int32)
            yield case(f"{'-'.join(kind[:2])}-{name}", [a, b, acc], "ieee")
    for kind in INFINITIES:
        a, b, acc = operands(np.random.default_rng(1), (16, 16, 16), kind)
        a[1, 3], a[2, 5], a[4, 0], acc[7, 7] = np.inf, np.nan, -np.inf, np.inf
        b[0, 9] = 0
        yield case(f"{'-'.join(kind)}-infinities", [a, b, acc], "ieee")
