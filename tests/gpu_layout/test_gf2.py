"""Linear algebra over GF(2), against enumeration."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from blocknumba.gpu_layout.layouts import gf2

ROWS = 6
vectors = st.integers(0, (1 << ROWS) - 1)
matrices = st.lists(vectors, max_size=8).map(tuple)


def span(matrix):
    return {gf2.apply(matrix, point) for point in range(1 << len(matrix))}


@given(matrices)
def test_images_lists_the_image_of_every_point(matrix):
    assert gf2.images(matrix) == [gf2.apply(matrix, x) for x in range(1 << len(matrix))]


@given(matrices)
def test_the_span_has_as_many_points_as_the_rank_says(matrix):
    assert len(span(matrix)) == 1 << gf2.rank(matrix)


@given(matrices)
def test_the_kernel_is_all_that_maps_to_zero(matrix):
    kernel = gf2.kernel(matrix)

    null = {x for x in range(1 << len(matrix)) if gf2.apply(matrix, x) == 0}
    assert span(kernel) == null
    assert gf2.rank(kernel) == len(kernel)


@given(matrices, vectors)
def test_solve_finds_a_preimage_exactly_when_there_is_one(matrix, vector):
    found = gf2.solve(matrix, vector)

    assert (found is not None) == (vector in span(matrix))
    assert found is None or gf2.apply(matrix, found) == vector


@given(matrices)
def test_a_right_inverse_exists_exactly_for_full_rank(matrix):
    inverse = gf2.right_inverse(matrix, ROWS)

    assert (inverse is not None) == (gf2.rank(matrix) == ROWS)
    assert inverse is None or gf2.compose(matrix, inverse) == gf2.identity(ROWS)


@given(matrices, matrices)
def test_the_intersection_is_what_both_spans_hold(first, second):
    assert span(gf2.intersection(first, second)) == span(first) & span(second)


@given(matrices, matrices)
def test_an_extension_completes_the_span(inner, outer):
    added = gf2.extension(inner, outer)

    assert span(inner + added) == span(inner + outer)
    assert gf2.rank(inner) + len(added) == gf2.rank(inner + outer)


@given(st.lists(st.tuples(vectors, vectors), max_size=6))
def test_a_factor_exists_exactly_when_equal_inners_have_equal_images(pairs):
    matrix, inner = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)

    factor = gf2.factor_through(matrix, inner, ROWS)

    points = range(1 << len(pairs))
    image = {}
    fits = all(
        image.setdefault(gf2.apply(inner, x), gf2.apply(matrix, x)) == gf2.apply(matrix, x)
        for x in points
    )
    assert (factor is not None) == fits
    assert factor is None or gf2.compose(factor, inner) == matrix


@given(matrices, matrices)
def test_every_prefix_of_an_avoiding_basis_meets_both_spans_as_little_as_can_be(first, second):
    basis = gf2.avoiding_basis(ROWS, first, second)

    assert gf2.rank(basis) == len(basis) == ROWS
    for size, matrix in itertools.product(range(ROWS + 1), (first, second)):
        met = len(gf2.intersection(basis[:size], matrix))
        least_of_larger = size + max(gf2.rank(first), gf2.rank(second)) - ROWS
        assert met <= max(0, least_of_larger)
