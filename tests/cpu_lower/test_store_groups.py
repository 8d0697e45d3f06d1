"""Stores that one nest does, and stores that must not become one nest."""

import numpy as np
import pytest

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def multiply_in_place(a, b, B: bn.constexpr):
    """Complex numbers, (N, 2)."""
    r = bn.block(0, B)
    x, y, u, v = a[r, 0], a[r, 1], b[r, 0], b[r, 1]
    a[r, 0] = x * u - y * v
    a[r, 1] = x * v + y * u


@bn.jit(device="cpu")
def reversed_channels(image, out, R: bn.constexpr, C: bn.constexpr):
    r, c = bn.block(0, R), bn.block(1, C)
    for k in bn.static_range(4):
        out[r, c, k] = image[r, c, 3 - k]


@bn.jit(device="cpu")
def exchanged(x, B: bn.constexpr):
    r = bn.block(0, B)
    x[r, 0], x[r, 1] = x[r, 1], x[r, 0]


@bn.jit(device="cpu")
def momentum(p, m, v, gradient, B: bn.constexpr):
    r = bn.block(0, B)
    g = gradient[r]
    first, second = 0.5 * m[r] + g, 0.25 * v[r] + g * g
    m[r], v[r] = first, second
    p[r] = p[r] - first / (bn.sqrt(second) + 1)


@bn.jit(device="cpu")
def read_again(x, y, z, B: bn.constexpr):
    r = bn.span(0, B)
    a = z[r]
    x[r] = a + 1
    y[r] = x[r] + a


@bn.jit(device="cpu")
def one_number_again(x, y, B: bn.constexpr):
    r = bn.span(0, B)
    a = y[r]
    x[r] = a + 1
    y[r] = a + x[B - 1]


@bn.jit(device="cpu")
def neighbours(x, y, B: bn.constexpr):
    """A load of what the second store writes, one element on."""
    r = bn.span(0, B)
    a = x[r]
    y[r] = a
    x[r + 1] = a * 2


@bn.jit(device="cpu")
def twice(x, out, B: bn.constexpr):
    """Elements that both stores write keep the second value."""
    r = bn.span(0, B)
    out[r + 1] = x[r]
    out[r] = x[r] * 2


@bn.jit(device="cpu")
def crossing(out, N: bn.constexpr):
    """Two steps of which no number but 1 divides both: the stores meet."""
    place = out + (2 * bn.arange(N)[:, None] + 3 * bn.arange(N)[None, :])
    bn.store(place, bn.full((N, N), 1, bn.float32))
    bn.store(place + 1, bn.full((N, N), 2, bn.float32))


@pytest.mark.parametrize("size", [256, 300])
def test_pairs_are_multiplied_in_place(size):
    a, b = GENERATOR.standard_normal((2, size, 2)) @ [1, 1j]
    found = a.copy()
    compiled = multiply_in_place[bn.cdiv(size, 64)](
        *(x.view(float).reshape(-1, 2) for x in (found, b)), B=64)
    np.testing.assert_allclose(found, a * b, rtol=1e-13)
    assert compiled.native.llvm_ir.count("llvm.masked.store") == 0  # no half vectors


def test_channels_of_pictures_fill_vectors():
    image = GENERATOR.integers(0, 256, (20, 300, 4), np.uint8)
    out = np.full_like(image, 7)
    reversed_channels[3, 3](image, out, R=8, C=128)
    np.testing.assert_array_equal(out, image[..., ::-1])


def test_neighbours_that_are_exchanged():
    x = GENERATOR.standard_normal((500, 2))
    expected = x[:, ::-1].copy()
    exchanged[bn.cdiv(500, 128)](x, B=128)
    np.testing.assert_array_equal(x, expected)


def test_several_arrays_are_updated_in_place():
    p, m, v, g = GENERATOR.random((4, 1000))
    first, second = 0.5 * m + g, 0.25 * v + g * g
    expected = p - first / (np.sqrt(second) + 1), first, second
    momentum[8](p, m, v, g, B=128)
    for found, exact in zip((p, m, v), expected, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-14)


def test_what_a_store_wrote_is_read_again():
    x, y, z = GENERATOR.standard_normal((3, 128))
    read_again[1](x, y, z, B=128)
    np.testing.assert_array_equal(x, z + 1)
    np.testing.assert_array_equal(y, (z + 1) + z)


def test_a_number_that_a_store_wrote_is_read_again():
    x, y = GENERATOR.standard_normal((2, 128))
    before = y.copy()
    one_number_again[1](x, y, B=128)
    np.testing.assert_array_equal(y, before + (before[-1] + 1))


def test_a_load_sees_no_later_store_of_its_neighbour():
    x, y = GENERATOR.standard_normal(129), np.full(128, np.nan)
    before = x.copy()
    neighbours[1](x, y, B=128)
    np.testing.assert_array_equal(y, before[:-1])
    np.testing.assert_array_equal(x, np.append(before[0], before[:-1] * 2))


def test_the_later_of_two_stores_to_one_element_counts():
    x, out = GENERATOR.standard_normal(128), np.full(129, np.nan)
    twice[1](x, out, B=128)
    np.testing.assert_array_equal(out, np.append(x * 2, x[-1]))


def test_stores_whose_steps_cross_keep_their_order():
    out = np.zeros(100, np.float32)
    crossing[1](out, N=16)
    first = {2 * i + 3 * j for i in range(16) for j in range(16)}
    expected = [2.0 if place - 1 in first else float(place in first) for place in range(100)]
    assert out.tolist() == expected
