"""Cases of the op that calls scalar functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from blocknumba.tile_ir.ir.types import DTYPES, DType, bool_, float32, float64, int32
from blocknumba.tile_ir.ops.map import ScalarFunction
from blocknumba.typing.scalars.functions import NumbaFunction
from blocknumba.typing.scalars.signature import Signature

from case import Case, covers, one_op_case
from values import edges, padded

PASSED = tuple(dtype for dtype in DTYPES.values() if not dtype.is_float or dtype.bits >= 32)
SHAPES = ((), (1,), (64,), (8, 32))


def scalar_function(function: Callable, *parameters: DType) -> ScalarFunction:
    body = NumbaFunction(function, Signature(parameters), "")
    return ScalarFunction(function.__name__, parameters, body.results, body)


def same(x):
    return x


def swapped(x, y):
    return y, x


def halvings(x, limit):
    """Steps until |x| is at most 1, and what is left: a loop whose length depends on data."""
    count = 0
    while abs(x) > 1 and count < limit:
        x *= 0.5
        count += 1
    return np.int32(count), x, count == limit


def positive(x):
    if x < 0:
        raise ValueError("negative")
    return x + 1


def map_case(title: str, function: ScalarFunction, mask: np.ndarray, tiles: list[np.ndarray],
             expected: list[np.ndarray]) -> Case:
    """expected: the results where the mask is true."""
    results = [np.where(mask, result, np.zeros((), result.dtype)) for result in expected]
    return one_op_case("map", title, [mask, *tiles], results, function=function)


def _masks(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    count = np.arange(int(np.prod(shape))).reshape(shape)
    return {"all": count >= 0, "none": count < 0, "some": count % 5 < 2}


@covers("map")
def dtype_cases() -> Iterator[Case]:
    """Every dtype that scalar functions take goes in and comes out, alone and beside another."""
    for dtype in PASSED:
        x, = padded([edges(dtype)])
        for title, mask in _masks(x.shape).items():
            yield map_case(f"{dtype}-{title}", scalar_function(same, dtype), mask, [x], [x])
    for first, second in itertools.product((bool_, int32, float64), PASSED):
        x, y = (np.resize(edges(dtype), 64) for dtype in (first, second))
        function = scalar_function(swapped, first, second)
        yield map_case(f"{first}-{second}", function, x == x[::-1], [x, y], [y, x])


@covers("map")
def loop_cases() -> Iterator[Case]:
    """Iterations that differ from element to element, in tiles of several shapes."""
    function = scalar_function(halvings, float32, int32)
    for shape in SHAPES:
        generator = np.random.default_rng(len(shape))
        x = np.exp2(generator.uniform(-4, 30, shape)).astype(np.float32)
        limit = generator.integers(0, 20, shape).astype(np.int32)
        steps = np.minimum(np.ceil(np.log2(np.maximum(x, np.float32(1)).astype(float))), limit)
        left = np.ldexp(x, -steps.astype(np.int32)).astype(np.float32)
        for title, mask in _masks(shape).items():
            yield map_case(f"halvings-{shape}-{title}", function, mask, [x, limit],
                           [steps.astype(np.int32), left, steps == limit])


@covers("map")
def raising_cases() -> Iterator[Case]:
    """Elements for which the function raises are 0, others are not disturbed."""
    x = np.arange(-16, 16, dtype=np.int64)
    expected = np.where(x < 0, 0, x + 1)
    function = scalar_function(positive, DTYPES["int64"])
    for title, mask in _masks(x.shape).items():
        yield map_case(f"raises-{title}", function, mask, [x], [expected])
