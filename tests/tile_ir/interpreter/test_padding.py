"""Elements that no load has read: found where they change a reduction, a dot or an atomic."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError, PaddingError

N, BLOCK = 10, 16


@bn.jit
def store_result(x, y, out, function: bn.constexpr, BLOCK: bn.constexpr):
    r = bn.span(0, BLOCK)
    out[0] = function(x, y, r)


def result_of(function, debug=True):
    """A function of x in (-3, -1), y in (1, 2), both of 10, and a span of 16."""
    random = np.random.default_rng(4)
    x, y = (random.uniform(*ends, N).astype(np.float32) for ends in ((-3, -1), (1, 2)))
    out = np.full(1, np.nan, np.float32)
    store_result[1](x, y, out, function, BLOCK, debug=debug, interpret=True)
    return out[0], x, y


def hand_made_variance(x, y, r):
    distance = x[r] - bn.sum(x[r]) / x.shape[0]
    return bn.sum(distance * distance)


def running(step, start, last, first_other=None):
    """last(t) of a tile t of 4 that starts anew and takes step(t, x[s], y[s]) along the arrays."""
    def function(x, y, r):
        t = bn.full((4,), start, bn.float32)
        for s in bn.spans(x.shape[0], 4):
            a = x[s] if first_other is None else bn.load(x.at[s], other=first_other)
            t = step(t, a, y[s])
        return last(t)
    return function


def add(t, a, b):
    return t + a


def add_exp(t, a, b):
    return t + bn.exp(a)


def multiply_add(t, a, b):
    return bn.fma(a, b, t)


def greater(t, a, b):
    return bn.maximum(t, a)


def greater_of_condition(t, a, b):
    return bn.where(b > t, b, t)


def add_some(t, a, b):
    return bn.where(b > 1.5, t + b, t)


CHANGED = {
    "sum of exp": (lambda x, y, r: bn.sum(bn.exp(x[r])), "sum"),
    "sum with a constant": (lambda x, y, r: bn.sum(x[r] * 2 + 1), "sum"),
    "sum with a scalar": (lambda x, y, r: bn.sum(x[r] + y[0]), "sum"),
    "count": (lambda x, y, r: bn.sum((x[r] > -9).to(bn.int32)), "sum"),
    "sum of gathered": (lambda x, y, r: bn.sum(x[(y[r] * 2).to(bn.int32)]), "sum"),
    "variance": (hand_made_variance, "sum"),
    "max": (lambda x, y, r: bn.max(x[r]), "max"),
    "min of a masked load": (lambda x, y, r: bn.min(bn.load(y + r.index, mask=r.index < 10)),
                             "min"),
    "prod": (lambda x, y, r: bn.prod(x[r]), "prod"),
    "argmax": (lambda x, y, r: bn.argmax(x[r]), "argmax"),
    "any": (lambda x, y, r: bn.any(x[r] == 0), "any"),
    "all": (lambda x, y, r: bn.all(x[r] < 0), "all"),
    "nanmax": (lambda x, y, r: bn.nanmax(x[r]), "nanmax"),
    "softmax": (lambda x, y, r: bn.sum(bn.softmax(x[r])), "max"),
    "softmax of positive numbers": (lambda x, y, r: bn.sum(bn.softmax(y[r])), "sum"),
    "running sum of exp": (running(add_exp, 0.0, bn.sum), "sum"),
    "running maximum": (running(greater, -9.0, bn.max), "max"),
    "dot of matrices": (lambda x, y, r: bn.sum(
        bn.exp(x[r])[None, :] @ bn.exp(y[r])[:, None]), "dot"),
}


@pytest.mark.parametrize("function, name", CHANGED.values(), ids=CHANGED)
def test_a_result_that_padding_changes_is_found(function, name):
    with pytest.raises(PaddingError, match=f"^{name}: elements that no load has read change the "
                                           r"result from \S+ to \S+, in program \(0, 0, 0\)"):
        result_of(function)


SAFE = {
    "sum": (lambda x, y, r: bn.sum(x[r]), lambda x, y: x.sum()),
    "sum of products": (lambda x, y, r: bn.sum(x[r] * y[r] * 2), lambda x, y: 2 * (x @ y)),
    "max of positive numbers": (lambda x, y, r: bn.max(y[r]), lambda x, y: y.max()),
    "argmin": (lambda x, y, r: bn.argmin(x[r]), lambda x, y: x.argmin()),
    "where": (lambda x, y, r: bn.max(x[r], where=r.index < 10), lambda x, y: x.max()),
    "mean with where": (lambda x, y, r: bn.mean(x[r], where=r.index < 10), lambda x, y: x.mean()),
    "select": (lambda x, y, r: bn.max(bn.where(r.index < 10, x[r], -99)), lambda x, y: x.max()),
    "and": (lambda x, y, r: bn.any((x[r] == 0) & (r.index < 10)), lambda x, y: 0),
    "other": (lambda x, y, r: bn.max(bn.load(x.at[r], other=-99)), lambda x, y: x.max()),
    "other that is meant": (lambda x, y, r: bn.max(bn.load(x.at[r], other=0)), lambda x, y: 0),
    "running sum": (running(add, 0.0, bn.sum), lambda x, y: x.sum()),
    "running mean": (running(add, 0.0, lambda t: bn.mean(t)), lambda x, y: x.sum() / 4),
    "running sum of products": (running(multiply_add, 0.0, bn.sum), lambda x, y: x @ y),
    "running maximum": (running(greater, -9.0, bn.max, first_other=-9.0), lambda x, y: x.max()),
    "running maximum by a condition": (running(greater_of_condition, -9.0, bn.max),
                                       lambda x, y: y.max()),
    "running sum of some": (running(add_some, 0.0, bn.sum), lambda x, y: y[y > 1.5].sum()),
    "dot of matrices": (lambda x, y, r: bn.sum(x[r][None, :] @ y[r][:, None]),
                            lambda x, y: x @ y),
    "softmax": (lambda x, y, r: bn.sum(bn.softmax(x[r], where=r.index < 10)), lambda x, y: 1),
}


@pytest.mark.parametrize("function, expected", SAFE.values(), ids=SAFE)
def test_padding_that_changes_nothing_is_no_error(function, expected):
    found, x, y = result_of(function)

    np.testing.assert_allclose(found, expected(x.astype(np.float64), y.astype(np.float64)), 1e-5)


@pytest.mark.parametrize("name", ["mean", "var"])
def test_a_mean_that_counts_padding_is_found(name):
    function = getattr(bn, name)
    with pytest.raises(PaddingError, match="^mean: elements that no load has read are counted"):
        result_of(lambda x, y, r: function(x[r]))


def test_without_debug_padding_is_zero():
    found, x, _ = result_of(lambda x, y, r: bn.mean(x[r]), debug=False)

    np.testing.assert_allclose(found, x.sum() / BLOCK, 1e-6)


@bn.jit
def rows(x, out, R: bn.constexpr, C: bn.constexpr):
    r, c = bn.block(0, R), bn.span(0, C)
    loaded = x[r, c]
    shifted = loaded + 1
    out[r] = bn.sum(shifted, axis=1)


def test_the_error_names_both_lines_the_element_and_the_remedies():
    x = np.ones((6, 5), np.float32)
    with pytest.raises(PaddingError) as caught:
        rows[2](x, np.zeros(6, np.float32), 4, 8, debug=True, interpret=True)

    line = rows.python_function.__code__.co_firstlineno
    assert caught.value.message == ("sum: elements that no load has read change the result from "
                                    "10.0 to 13.0, in program (0, 0, 0), element (0,)")
    assert caught.value.loc.line == line + 5
    assert caught.value.hint == (
        f"line {line + 3} loads them, and they are outside the array or masked off: leave them "
        "out with where=, or load them with other=")


def test_rows_of_padding_alone_are_padding_themselves():
    x, out = np.ones((6, 8), np.float32), np.zeros(6, np.float32)

    rows[2](x, out, 4, 8, debug=True, interpret=True)

    assert out.tolist() == [16] * 6


@bn.jit
def scattered(index, out, atomic: bn.constexpr, masked: bn.constexpr, BLOCK: bn.constexpr):
    r = bn.span(0, BLOCK)
    inside = r.index < index.shape[0]
    if atomic:
        bn.atomic_add(out.at[index[r]], 1, mask=inside if masked else None)
    else:
        bn.store(out.at[index[r]], 1, mask=inside if masked else None)


@pytest.mark.parametrize("atomic", [False, True])
def test_an_index_of_padding_is_another_element(atomic):
    index, out = np.arange(1, 6, dtype=np.int32), np.zeros(8, np.int32)

    scattered[1](index, out, atomic, True, 8, debug=True, interpret=True)
    assert out.tolist() == [0, 1, 1, 1, 1, 1, 0, 0]
    with pytest.raises(PaddingError, match="the index is made of elements that no load has read"):
        scattered[1](index, out, atomic, False, 8, debug=True, interpret=True)


@bn.jit
def totals(x, out, BLOCK: bn.constexpr):
    bn.atomic_add(out.at[0], bn.sum(bn.exp(x[bn.block(0, BLOCK)])))


def test_a_program_of_padding_alone_must_not_add_to_a_total():
    x, out = np.zeros(16, np.float32), np.zeros(1, np.float32)

    totals[2](x, out, 8, debug=True, interpret=True)
    with pytest.raises(PaddingError, match="atomic_add: elements that no load has read change"):
        totals[3](x, out, 8, debug=True, interpret=True)


def test_the_code_for_a_gpu_knows_nothing_of_it(device):
    """The attribute and the select that debug adds are compiled as what they stand for."""
    @bn.jit
    def kernel(x, out, BLOCK: bn.constexpr):
        r = bn.span(0, BLOCK)
        out[0] = bn.mean(x[r])
        out[1] = bn.max(bn.load(x.at[r], other=-1))

    if device.kind == "cpu":
        pytest.skip("it is about code for a GPU")
    out = np.zeros(2, np.float32)

    device.run(kernel, 1, np.full(10, -4, np.float32), out, 16, debug=True)

    assert out.tolist() == [-2.5, -1]


def test_it_is_a_value_error_of_the_package():
    assert issubclass(PaddingError, BlockError) and issubclass(PaddingError, ValueError)
