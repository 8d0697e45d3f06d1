"""Recipes of reductions, scans, order, products of matrices, and random numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernel_recipes import ANY, EXACT, Facts, Made, Variable, bounded, recipe, with_zero
from numpy_tiles import BOOL, DTYPES, FLOATS, HALVES


def _fits_sums(x: Variable, count: int) -> bool:
    """Whether sums of so many elements are the same in any order."""
    if not x.is_float:
        return True
    wide = x.dtype if x.dtype not in HALVES else DTYPES["float32"]
    return x.is_whole and x.facts.size * count <= EXACT[wide.name]


def _along(m, x: Variable) -> tuple[str, int]:
    """An axis, several or all, as text, and how many elements are reduced at most."""
    axis = m.pick([None, *range(len(x.shape)), *([(0, len(x.shape) - 1)] * (len(x.shape) > 1))])
    return str(axis), x.size


def _summed(x: Variable, count: int, dtype: np.dtype) -> Facts:
    if not x.is_whole:
        return ANY
    return bounded(min(x.facts.low * count, x.facts.low), max(x.facts.high * count, x.facts.high),
                   dtype)


@recipe(6)
def sums(m):
    x = m.any_of(lambda v: v.shape and v.is_exact and _fits_sums(v, v.size))
    if x is None:
        return None
    axis, count = _along(m, x)
    where = m.like(x, lambda v: v.dtype == BOOL and v.shape == x.shape)
    text = f"bn.sum({x.name}, {axis})"
    if where is not None and m.chance(0.3):
        text = f"bn.sum({x.name}, {axis}, where={where.name})"
    elif m.chance(0.3):
        texts = [f"bn.sum({x.name}, {axis}, keep_dims=True)", f"bn.nansum({x.name}, {axis})",
                 f"bn.count_nonzero({x.name}, {axis})"]
        if x.is_whole and x.facts.size * count <= EXACT["float32"]:
            texts.append(f"bn.mean({x.name}, {axis})")
        return Made(m.pick(texts))
    return Made(text, with_zero(_summed(x, count, m.dtype_of(text))))


@recipe(6)
def greatest(m):
    x = m.any_of(lambda v: v.shape and v.is_exact)
    if x is None:
        return None
    axis, _ = _along(m, x)
    names = ["max", "min", "any", "all"] + ["nanmax", "nanmin"] * x.is_float + (
        ["xor_sum", "reduce_or", "reduce_and"] * (not x.is_float)) + ["ptp"] * x.is_int
    name = m.pick(names)
    facts = x.facts if name in ("max", "min") else ANY
    where = m.like(x, lambda v: v.dtype == BOOL and v.shape == x.shape)
    if name in ("max", "min", "any", "all") and where is not None and m.chance(0.25):
        return Made(f"bn.{name}({x.name}, {axis}, where={where.name})")
    keep = ", keep_dims=True" if name in ("max", "min", "any", "all") and m.chance(0.3) else ""
    return Made(f"bn.{name}({x.name}, {axis}{keep})", facts)


@recipe(3)
def index_of_greatest(m):
    x = m.any_of(lambda v: v.shape and v.is_exact)
    if x is None:
        return None
    axis = m.pick([None, *range(len(x.shape))])
    where = m.like(x, lambda v: v.dtype == BOOL and v.shape == x.shape)
    masked = f", where={where.name}" if where is not None and m.chance(0.3) else ""
    return Made(f"bn.{m.pick(['argmax', 'argmin'])}({x.name}, {axis}{masked})",
                Facts(0, x.size - 1))


@recipe(2)
def products(m):
    x = m.any_of(lambda v: v.shape and v.is_int)
    if x is None:
        return None
    axis, _ = _along(m, x)
    return Made(m.pick([f"bn.prod({x.name}, {axis})", f"bn.nanprod({x.name}, {axis})"]))


@recipe(5)
def scans(m):
    x = m.any_of(lambda v: v.shape and v.is_exact and _fits_sums(v, v.size))
    if x is None:
        return None
    names = ["cumsum", "cummax", "cummin"] + ["cumprod"] * (not x.is_float)
    name = m.pick(names)
    axis = m.pick([None, *range(len(x.shape))])
    backwards = m.pick(["", ", reverse=True"])
    text = f"bn.{name}({x.name}, {axis}{backwards})"
    if name in ("cummax", "cummin"):
        return Made(text, x.facts)
    return Made(text, _summed(x, x.size, m.dtype_of(text)) if name == "cumsum" else ANY)


@recipe(2)
def spread_of_elements(m):
    x = m.any_of(lambda v: v.shape and v.is_whole and v.facts.size <= 100)
    if x is None:
        return None
    size = max(x.facts.size, 1)
    name, axis = m.pick(["var", "std"]), m.axis(x)
    return Made(f"bn.{name}({x.name}, {axis})",
                Facts(ulps=16, absolute=(1e-6 if x.dtype.itemsize < 8 else 1e-12) * size * size))


@recipe(3)
def own_functions(m):
    x = m.any_of(lambda v: v.shape and v.is_exact and v.dtype != BOOL and v.size <= 512)
    if x is None:
        return None
    y = m.like(x, lambda v: v.is_int and v.shape == x.shape)
    axis, name = m.axis(x), m.pick(["associative_scan", "reduce"])
    backwards = m.pick(["", ", reverse=True"]) if name == "associative_scan" else ""
    if x.is_int and m.chance(0.4):
        return Made(f"bn.{name}(({x.name}, {x.name}), {axis}, affine{backwards})", (ANY, ANY))
    if y is not None and not x.is_float and m.chance(0.6):
        return Made(f"bn.{name}(({x.name}, {y.name}), {axis}, best{backwards})", (ANY, ANY))
    return Made(f"bn.{name}({x.name}, {axis}, {m.pick(['larger', 'right'])}{backwards})")


@recipe(4)
def sorted_elements(m):
    x = m.any_of(lambda v: v.shape and v.is_exact and v.size <= 512)
    if x is None:
        return None
    axis = m.axis(x)
    descending = m.pick(["", ", descending=True"])
    k = 1 << m.random.randint(0, x.shape[axis].bit_length() - 1)
    largest = m.pick(["", ", largest=False"])
    return m.pick([
        Made(f"bn.sort({x.name}, {axis}{descending})", x.facts),
        Made(f"bn.argsort({x.name}, {axis}{descending})", Facts(0, x.shape[axis] - 1)),
        Made(f"bn.topk({x.name}, {k}, {axis}{largest})", x.facts),
        Made(f"bn.topk({x.name}, {k}, {axis}{largest}, return_indices=True)",
             (x.facts, Facts(0, x.shape[axis] - 1)))])


@recipe(2)
def counted(m):
    x = m.any_of(lambda v: v.shape and (v.is_int or v.is_float and v.is_whole) and v.size <= 256)
    if x is None:
        return None
    bins = m.pick([2, 8, 32])
    y = m.like(x, lambda v: v.is_exact and v.dtype == x.dtype)
    first = f"bn.sort(bn.ravel({x.name}))"
    side = m.pick(["left", "right"])
    choices = [Made(f"bn.searchsorted({first}, {y.name}, {side!r})", Facts(0, x.size)),
               Made(f"bn.unique_counts({x.name})", (x.facts, Facts(0, x.size), Facts(1, x.size)))]
    if x.is_int:
        where = m.like(x, lambda v: v.dtype == BOOL and v.shape == x.shape)
        mask = f", mask={where.name}" if where is not None and m.chance(0.5) else ""
        choices += [Made(f"bn.histogram({x.name}, {bins}{mask})", Facts(0, x.size))] * 2
    elif x.facts.size <= 1024:
        choices.append(Made(f"bn.median({x.name}, {m.axis(x)})"))
    return m.pick(choices)


# products of matrices, random numbers ---------------------------------------------------------

@recipe(3)
def product_of_matrices(m):
    def fits(v: Variable) -> bool:
        return len(v.shape) == 2 and (v.dtype in FLOATS and v.is_whole
                                      and v.facts.size**2 * max(v.shape) <= EXACT["float32"]
                                      or v.dtype.name == "int8")
    x = m.any_of(fits)
    if x is None:
        return None
    y = m.any_of(lambda v: fits(v) and v.dtype == x.dtype)
    right = y.name if y.shape[0] == x.shape[1] else f"bn.trans({x.name})"
    other = y if right == y.name else replace(x, shape=x.shape[::-1])
    text = f"bn.dot({x.name}, {right})"
    if x.shape[0] * other.shape[1] > m.max_size:
        return None
    if not x.is_float:
        return Made(text)
    size = x.facts.size * other.facts.size * x.shape[1]
    return Made(text, bounded(-size, size, m.dtype_of(text)))


@recipe(2)
def random_numbers(m):
    x = m.any_of(lambda v: v.is_int and v.shape)
    if x is None:
        return None
    seed = m.pick([str(m.random.randint(0, 2**31)), *m.numbers])
    name = m.pick(["rand", "randint", "randint4x", "rand4x"])
    return Made(f"bn.{name}({seed}, {x.name})", (ANY,) * 4 if "4x" in name else ANY)
