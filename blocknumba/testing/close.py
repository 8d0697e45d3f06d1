"""`assert_close`: a kernel next to a function of NumPy, on arrays drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.dispatch.tune.layers import Layer
from blocknumba.errors import BlockAssertionError, require
from blocknumba.tile_ir.ir.types import DType, dtype_of
from blocknumba.tracebacks import without_our_frames

DEFAULT_STEPS = 16  # of the coarsest float of a case, for what a few roundings may do

Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype], np.ndarray]


@without_our_frames
def assert_close(kernel: Kernel | Layer, numpy_function: Callable[..., object],
                 shapes: Iterable[Sequence[tuple[int, ...]]], dtypes: Iterable = ("float32",), *,
                 grid: object, rtol: float | None = None, atol: float | None = None,
                 initial: object = None, draw: Draw | None = None, seed: int | None = None,
                 **keywords: object) -> None:
    """Assert that a kernel computes what a function of NumPy does, in every dtype and shape.

    kernel: its first arguments are the arrays that the function takes, the next ones those that
        it returns, an array or a tuple of them.
    numpy_function: called on the arrays for the dtypes and shapes of its results, and on wider
        floats, float64 or long double of float64, for their values.
    shapes: cases, each with a shape for each array that the function takes.
    dtypes: of all these arrays, or a tuple with one for each; every case is run in each.
    grid: of launches, as in kernel[grid].   keywords: constants and options of launches.
    rtol, atol: |found - expected| is at most atol + rtol * |expected|; None: 16 times the spacing
        at 1 of the coarsest float of the arguments and the result, 0 for ints and bools.
    initial: what results hold before; None: at each element something that would be wrong.
    draw: (generator, shape, dtype) -> array; else floats are normal, ints have any value.
    seed: of the generator; fresh when None.
    Errors: BlockAssertionError, an AssertionError, with the case, its worst element and the seed.

    Example:
    >>> @bn.jit
    ... def double(x, out, BLOCK: bn.constexpr):
    ...     r = bn.block(0, BLOCK)
    ...     out[r] = x[r] * 2
    >>> def check(function):
    ...     bn.testing.assert_close(double, function, [[(5,)], [(100,)]], ["int8", "float32"],
    ...                             grid=lambda a: bn.cdiv(a["x"].size, 32), seed=0, BLOCK=32)
    >>> check(lambda x: x * 2)
    >>> try:
    ...     check(lambda x: x)
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    double: int8 (5,): 5 of 5 elements of out are wrong, [2] most: -124, expected 66
    """
    require(isinstance(kernel, (Kernel, Layer)),
            "assert_close: given {!r}, accepted a kernel", kernel)
    seed = int(np.random.default_rng().integers(2**32)) if seed is None else seed
    generator = np.random.default_rng(seed)
    for case in _cases(shapes, dtypes):
        arrays = [(draw or _drawn)(generator, shape, dtype.numpy)
                  for shape, dtype in zip(case.shapes, case.dtypes)]
        expected = _expected(numpy_function, arrays)
        results = [_wrong(array) if initial is None else np.full_like(array, initial)
                   for array in expected]
        kernel[grid](*map(np.copy, arrays), *results, **keywords)
        names = kernel.signature.names[len(arrays):]
        for name, found, right in zip(names, results, expected):
            steps = _tolerance([*case.dtypes, dtype_of(right.dtype)], right)
            problem = _problem(name, found, right, steps if rtol is None else rtol,
                               steps if atol is None else atol)
            require(not problem, "{}: {}: {}", kernel.signature.kernel, case, problem,
                    error=BlockAssertionError, hint=f"seed={seed} draws the same arrays")


@dataclass(frozen=True)
class _Case:
    """The shapes and the dtypes of the arrays of a launch."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[DType, ...]

    def __str__(self) -> str:
        return ", ".join(f"{dtype} {shape}" for dtype, shape in zip(self.dtypes, self.shapes))


def _cases(shapes: Iterable, dtypes: Iterable) -> Iterator[_Case]:
    """Errors: BlockTypeError for what are not shapes; for other numbers of dtypes than of shapes.
    """
    require(not isinstance(dtypes, str), "assert_close: given {!r}, accepted a list of dtypes",
            dtypes)
    for case, kinds in product(shapes, dtypes):
        require(isinstance(case, (list, tuple)) and all(isinstance(s, tuple) for s in case),
                "assert_close: given {!r} in shapes, accepted a list of tuples", case,
                hint="each case is a list with a shape for each array: shapes=[[(5,), (5,)]]")
        kinds = kinds if isinstance(kinds, tuple) else (kinds,) * len(case)
        require(len(kinds) == len(case),
                "assert_close: given {} dtypes for {} arrays", len(kinds), len(case))
        yield _Case(tuple(case), tuple(map(dtype_of, kinds)))


def _drawn(generator: np.random.Generator, shape: tuple[int, ...], to: np.dtype) -> np.ndarray:
    """Normal floats, ints of any value, bools."""
    dtype = dtype_of(to)
    if dtype.is_float:
        return generator.standard_normal(shape).astype(to)
    if to == np.bool_:
        return generator.integers(0, 2, shape).astype(to)
    return generator.integers(dtype.minimum, dtype.maximum, shape, to, endpoint=True)


def _expected(function: Callable, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Results of a function with the values that it has on wider floats, rounded once."""
    with np.errstate(all="ignore"):  # infinities and NaN are compared like other values
        plain = _as_list(function(*arrays))
        exact = _as_list(function(*map(_wider, arrays)))
        return [wide.astype(array.dtype) for array, wide in zip(plain, exact)]


def _as_list(result: object) -> list[np.ndarray]:
    return [np.asarray(item) for item in (result if isinstance(result, tuple) else (result,))]


def _wider(array: np.ndarray) -> np.ndarray:
    if not dtype_of(array.dtype).is_float:
        return array
    return array.astype(np.longdouble if array.dtype == np.float64 else np.float64)


def _wrong(expected: np.ndarray) -> np.ndarray:
    """An array no element of which is what is expected: NaN, and 0 in its place; other ints."""
    if not dtype_of(expected.dtype).is_float:
        return ~expected
    return np.where(np.isnan(expected), 0, np.nan).astype(expected.dtype)


def _tolerance(dtypes: list[DType], expected: np.ndarray) -> float:
    """See assert_close: rtol and atol when they are not given."""
    if not dtype_of(expected.dtype).is_float:
        return 0.0
    return DEFAULT_STEPS * max(2.0**-dtype.fp_mantissa_width for dtype in dtypes if dtype.is_float)


def _problem(name: str, found: np.ndarray, expected: np.ndarray, rtol: float,
             atol: float) -> str:
    """Text about what is wrong with the result of a name, "" if nothing."""
    wide = np.longdouble if expected.dtype.kind in "biuf" else np.float64  # of ml_dtypes
    left, right = found.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        excess = np.abs(left - right) - (atol + rtol * np.abs(right))
    finite = np.isfinite(left) & np.isfinite(right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    excess = np.where(same, -np.inf, np.where(finite, excess, np.inf))
    wrong = np.count_nonzero(excess > 0)
    if not wrong:
        return ""
    worst = tuple(map(int, np.unravel_index(np.argmax(excess), excess.shape)))
    return (f"{wrong} of {found.size} elements of {name} are wrong, {list(worst)} most: "
            f"{found[worst]}, expected {expected[worst]}")
