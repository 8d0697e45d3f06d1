"""Cases of functions of the language as kernels write them: one expression, by NumPy alone too.

x, y: tiles of the dtype and shape under test; i: an int32 tile of that shape, 0 to 7; b: bools.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np

import blocknumba as bn
from blocknumba.tile_ir.ops.elementwise import ERROR_ULPS

from case import Case, covers, function_case
from numpy_functions import FUNCTIONS
from numpy_tiles import BOOL, FLOATS, HALVES, INTS, Tile, is_float

SHAPES = ((64,), (8, 16), (1,), (2, 4, 8), (512,), (32, 4), (2, 2, 2, 4), (16, 1))
PER_FUNCTION = 32
NUMBERS = (*INTS, *FLOATS)
ANY = (BOOL, *NUMBERS)
WORDS = tuple(dtype for dtype in INTS if dtype.itemsize >= 4)


@dataclass(frozen=True)
class Expression:
    """What is written, the dtypes of x and y, and how far floats may be off.

    rank: the least of x, and where it is 2 the only one.   low, high: of its numbers, which are
    multiples of scale.
    """

    text: str
    dtypes: tuple[np.dtype, ...] = ANY
    rank: int = 0
    ulps: int = 0
    absolute: float = 0.0
    low: int = -9
    high: int = 9
    scale: float = 1.0


def _near(name: str, low: int, high: int, text: str = "") -> Expression:
    return Expression(text or f"bn.{name}(x)", FLOATS, ulps=ERROR_ULPS.get(name, 1) + 1,
                      absolute=1e-15, low=low, high=high, scale=0.125)


def _along(name: str, dtypes: tuple[np.dtype, ...] = ANY, **bounds: object) -> list[Expression]:
    """A function along the last axis and of all elements."""
    return [Expression(f"bn.{name}(x, {axis})", dtypes, **bounds) for axis in (-1, None)]


EXPRESSIONS: dict[str, list[Expression]] = {
    # elementwise
    "abs": [Expression("bn.abs(x)")],
    "maximum": [Expression("bn.maximum(x, y)")], "minimum": [Expression("bn.minimum(x, y)")],
    "where": [Expression("bn.where(b, x, y)"), Expression("bn.where(x > y, x, 2)", NUMBERS)],
    "clamp": [Expression("bn.clamp(x, 1, 5)", NUMBERS)],
    "fma": [Expression("bn.fma(x, y, x)", FLOATS)],
    "umulhi": [Expression("bn.umulhi(x * 77777777, y * 7777777)", WORDS)],
    "popc": [Expression("bn.popc(x)", WORDS)], "clz": [Expression("bn.clz(x)", WORDS)],
    "ffs": [Expression("bn.ffs(x)", WORDS)],
    "cast": [Expression("bn.cast(x, bn.float32)"), Expression("bn.cast(x, bn.int16)"),
             Expression("bn.cast(x, bn.bool_)"), Expression("bn.cast(x, bn.float64)")],
    "fmin": [Expression("bn.fmin(x, y)", FLOATS)], "fmax": [Expression("bn.fmax(x, y)", FLOATS)],
    "copysign": [Expression("bn.copysign(x, y + 0.0)", FLOATS)],
    "nextafter": [Expression("bn.nextafter(x, y)", FLOATS[2:], rank=0)],
    "div": [Expression("bn.div(x, y)", NUMBERS, low=1)],
    "div_rn": [Expression("bn.div_rn(x, y)", NUMBERS, low=1)],
    "fdiv": [Expression("bn.fdiv(x, y)", NUMBERS, low=1)],
    "sqrt": [Expression("bn.sqrt(x)", NUMBERS, low=0)],
    "sqrt_rn": [Expression("bn.sqrt_rn(x)", NUMBERS, low=0)],
    **{name: [Expression(f"bn.{name}(x)", FLOATS, scale=0.25)]
       for name in ("floor", "ceil", "trunc", "rint", "round")},
    **{name: [Expression(f"bn.{name}(x / y)", FLOATS, low=0, high=2)]
       for name in ("isnan", "isinf", "isfinite")},
    **{name: [_near(name, -40, 40)] for name in (
        "exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh",
        "cbrt", "erf")},
    **{name: [_near(name, 1, 90)] for name in ("log", "log2", "log10", "log1p", "rsqrt",
                                               "lgamma", "gamma")},
    **{name: [_near(name, -7, 7)] for name in ("asin", "acos", "atanh")},
    "erfc": [_near("erfc", -16, 16)],
    "acosh": [_near("acosh", 9, 90)],
    "sigmoid": [Expression("bn.sigmoid(x)", NUMBERS, ulps=6)],
    "hypot": [_near("hypot", 1, 40, "bn.hypot(x, y)")],
    "atan2": [_near("atan2", 1, 40, "bn.atan2(x, y)")],
    "cdiv": [Expression("x + bn.cdiv(7, 2)", NUMBERS)],
    "next_power_of_2": [Expression("x + bn.next_power_of_2(5)", NUMBERS)],
    "swizzle2d": [Expression("bn.swizzle2d(i, i // 2, 8, 4, 2)")],
    # tiles of one value, shapes, parts
    "full": [Expression("bn.full((4, 8), 3, x.dtype)", NUMBERS)],
    "zeros": [Expression("x + bn.zeros((1,), x.dtype)", NUMBERS)],
    "ones": [Expression("x * bn.ones((1,), x.dtype)", NUMBERS)],
    "full_like": [Expression("bn.full_like(x, 1)")],
    "arange": [Expression("x[..., None] + bn.arange(3, 7)", INTS)],
    "reshape": [Expression("bn.reshape(x, (-1, 1))"), Expression("bn.reshape(x, (1, -1))")],
    "view": [Expression("bn.view(x, (1, -1))")],
    "permute": [Expression("bn.permute(x, (1, 0))", rank=2)],
    "squeeze": [Expression("bn.squeeze(x[None])"), Expression("bn.squeeze(x[..., None], -1)")],
    "expand_dims": [Expression("bn.expand_dims(x, 0)"), Expression("bn.expand_dims(x, -1)")],
    "broadcast_to": [Expression("bn.broadcast_to(x[None], (2, *x.shape))")],
    "broadcast": [Expression("bn.broadcast(x[None], y)")],
    "item": [Expression("bn.item(bn.reshape(bn.max(x), (1,)))", NUMBERS)],
    "join": [Expression("bn.join(x, y)")], "split": [Expression("bn.split(bn.join(x, y))")],
    "interleave": [Expression("bn.interleave(x, y)", rank=1)],
    "concatenate": [Expression("bn.concatenate((x, y), 0)"),
                    Expression("bn.concatenate((x, y), -1)")],
    "cat": [Expression("bn.cat(x, y, dim=0)")],
    "stack": [Expression("bn.stack((x, y), 0)"), Expression("bn.stack((x, y), -1)")],
    "repeat": [Expression("bn.repeat(x, 2, 0)"), Expression("bn.repeat(x, 4)")],
    "roll": [Expression("bn.roll(x, 3, 0)"), Expression("bn.roll(x, -1)")],
    "extract": [Expression("bn.extract(x[None], (0, *(0,) * len(x.shape)), (1, *x.shape))")],
    "insert": [Expression("bn.insert(x, y, (0,) * len(x.shape))")],
    "gather": [Expression("bn.gather(x, i, 0)"), Expression("bn.gather(x, i - 1, -1)")],
    "scatter": [Expression("bn.scatter(x, i % 2, y, 0)"),
                Expression("bn.scatter(x, i, y, len(x.shape) - 1)")],
    # reductions, scans, order
    "prod": _along("prod", INTS), "ptp": _along("ptp", NUMBERS),
    "count_nonzero": _along("count_nonzero"), "mean": _along("mean"),
    "var": _along("var", NUMBERS, ulps=16, absolute=1e-5),
    "std": _along("std", NUMBERS, ulps=16, absolute=1e-5),
    "welford": _along("welford", NUMBERS, ulps=16, absolute=1e-3),
    "logsumexp": _along("logsumexp", NUMBERS, ulps=8, absolute=1e-6),
    "softmax": [Expression("bn.softmax(x, 0)", NUMBERS, ulps=16, absolute=1e-7)],
    "reduce_and": _along("reduce_and", (BOOL, *INTS)),
    "reduce_or": _along("reduce_or", (BOOL, *INTS)), "xor_sum": _along("xor_sum", (BOOL, *INTS)),
    **{name: [Expression(f"bn.{name}(x / y, {axis})", FLOATS, low=0, high=2)
              for axis in (-1, None)] for name in ("nanmax", "nanmin")},
    **{name: [Expression(f"bn.{name}(bn.where(b, x, x / 0), {axis})", FLOATS, low=0, high=1)
              for axis in (-1, None)] for name in ("nansum", "nanprod", "nanargmax", "nanargmin")},
    "nanmean": _along("nanmean", NUMBERS, ulps=4, absolute=1e-6),
    "nanvar": _along("nanvar", NUMBERS, ulps=16, absolute=1e-5),
    "nanstd": _along("nanstd", NUMBERS, ulps=16, absolute=1e-5),
    "nancumsum": _along("nancumsum"), "nancumprod": _along("nancumprod", INTS),
    "cumprod": _along("cumprod", INTS), "cummax": _along("cummax"), "cummin": _along("cummin"),
    "reduce": [Expression("bn.reduce(x, 0, lambda p, q: bn.maximum(p, q))"),
               Expression("bn.reduce((x, y), -1, lambda p, u, q, v: (p * q, p * v + u))", INTS)],
    "associative_scan": [
        Expression("bn.associative_scan(x, 0, lambda p, q: bn.minimum(p, q))"),
        Expression("bn.associative_scan((x, y), -1, lambda p, u, q, v: (p * q, u * q + v))", INTS)],
    "sort": [Expression("bn.sort(x, 0)"), Expression("bn.sort(x, -1, descending=True)")],
    "argsort": [Expression("bn.argsort(x, 0)"), Expression("bn.argsort(x, -1, descending=True)")],
    "topk": [Expression("bn.topk(x, 1, 0, return_indices=True)"),
             Expression("bn.topk(x, x.shape[-1], -1, largest=False)")],
    "median": _along("median", NUMBERS),
    "histogram": [Expression("bn.histogram(x, 8)", INTS),
                  Expression("bn.histogram(x, 4, mask=b)", INTS)],
    "searchsorted": [Expression("bn.searchsorted(bn.sort(bn.ravel(x)), y)"),
                     Expression("bn.searchsorted(bn.sort(bn.ravel(x)), y, 'right')")],
    "unique_counts": [Expression("bn.unique_counts(x)", NUMBERS)],
    # products and random numbers
    "dot": [Expression("bn.dot(x, bn.trans(y))", FLOATS, rank=2)],
    "rand": [Expression("bn.rand(42, x)", INTS)],
    "randint": [Expression("bn.randint(42, x)", INTS)],
    "rand4x": [Expression("bn.rand4x(7, x)", INTS)],
    "randint4x": [Expression("bn.randint4x(7, x)", INTS)],
    "randn": [Expression("bn.randn(7, x)", INTS, ulps=16, absolute=1e-6)],
    "randn4x": [Expression("bn.randn4x(7, x)", INTS, ulps=16, absolute=1e-6)],
    "philox": [Expression("bn.philox(7, x, 0, 0, 0)", tuple(d for d in INTS if d.kind == "u"))],
    "uint_to_uniform_float": [Expression("bn.uint_to_uniform_float(bn.randint(3, x))", INTS)],
    "pair_uniform_to_normal": [Expression(
        "bn.pair_uniform_to_normal(bn.rand(3, x), bn.rand(4, x))", INTS, ulps=16, absolute=1e-6)],
}
_LANGUAGE = SimpleNamespace(**FUNCTIONS)


def _operands(expression: Expression, dtype: np.dtype, shape: tuple[int, ...],
              seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    low = max(expression.low, 0) if dtype.kind == "u" or dtype == BOOL else expression.low
    high = 1 if dtype == BOOL else expression.high

    def numbers() -> np.ndarray:
        whole = generator.integers(low, high + 1, shape)
        return (whole * expression.scale).astype(dtype) if is_float(dtype) else whole.astype(dtype)

    return [numbers(), numbers(), generator.integers(0, 8, shape).astype(np.int32),
            generator.random(shape) < 0.6]


def expression_case(name: str, number: int) -> Case:
    """One of the cases of a function: expressions, dtypes and shapes in turn."""
    expressions = EXPRESSIONS[name]
    expression = expressions[number % len(expressions)]
    shapes = [shape for shape in SHAPES if len(shape) >= expression.rank and (
        len(shape) == 2 or expression.rank != 2)]
    turn = number // len(expressions)
    dtype = expression.dtypes[turn % len(expression.dtypes)]
    shape = shapes[(turn + turn // len(expression.dtypes)) % len(shapes)]
    tiles = _operands(expression, dtype, shape, number)
    source = f"lambda x, y, i, b: {expression.text}"
    with np.errstate(all="ignore"):
        made = eval(source, {"bn": _LANGUAGE})(*map(Tile, tiles))
    expected = [value.array for value in (made if isinstance(made, tuple) else (made,))]
    ulps = min(expression.ulps, 4) if dtype in HALVES else expression.ulps
    return function_case(name, f"{dtype}-{shape}-{number}", eval(source, {"bn": bn}), tiles,
                         expected, ulps=ulps, absolute=expression.absolute, signed_zeros=False)


def _cases(name: str) -> Iterator[Case]:
    return (expression_case(name, number) for number in range(PER_FUNCTION))


for _name in EXPRESSIONS:
    covers(f"bn.{_name}")(partial(_cases, _name))
