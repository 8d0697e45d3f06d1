"""Linear algebra over GF(2).

A vector is an int, bit r of it is its entry in row r.  A matrix is a tuple of its columns:

    (1, 2, 6)   is   1 0 0   row 0       apply((1, 2, 6), 0b101) == 1 ^ 6 == 7
                     0 1 1   row 1
                     0 0 1   row 2

A subspace is given by any tuple of vectors that span it.
"""

from collections.abc import Iterable

Matrix = tuple[int, ...]


def identity(size: int) -> Matrix:
    """The (size, size) identity."""
    return tuple(1 << row for row in range(size))


def apply(matrix: Matrix, vector: int) -> int:
    """matrix @ vector: the xor of the columns that the set bits of vector select."""
    image = 0
    for column in matrix:
        if vector & 1:
            image ^= column
        vector >>= 1
    return image


def compose(outer: Matrix, inner: Matrix) -> Matrix:
    """outer @ inner."""
    return tuple(apply(outer, column) for column in inner)


def images(matrix: Matrix) -> list[int]:
    """matrix @ v for v = 0, 1, ..., 2**columns - 1."""
    values = [0]
    for column in matrix:
        values += [value ^ column for value in values]
    return values


class Echelon:
    """A growing row-echelon basis, and of which added vectors each basis vector is the xor.

    add(v) takes the next vector; vectors are numbered in the order in which they are added.
    """

    def __init__(self, vectors: Iterable[int] = ()):
        self._basis: dict[int, tuple[int, int]] = {}
        self._count = 0
        for vector in vectors:
            self.add(vector)

    def __len__(self) -> int:
        return len(self._basis)

    def add(self, vector: int) -> tuple[int, int]:
        """Add a vector: (its component outside the span, the set of vectors that xor to that).

        The first is 0 if the vector depends on earlier ones; the second is then a kernel vector.
        """
        rest, used = self.reduce(vector)
        used ^= 1 << self._count
        self._count += 1
        if rest:
            self._basis[rest.bit_length() - 1] = (rest, used)
        return rest, used

    def reduce(self, vector: int) -> tuple[int, int]:
        """(component of vector outside the span, set of added vectors that xor to the rest)."""
        rest, used = vector, 0
        remaining = vector
        while remaining:
            pivot = remaining.bit_length() - 1
            remaining ^= 1 << pivot
            found = self._basis.get(pivot)
            if found is not None:
                rest, used = rest ^ found[0], used ^ found[1]
                remaining = rest & (1 << pivot) - 1
        return rest, used

    def spans(self, vector: int) -> bool:
        """Whether vector is an xor of the vectors added so far."""
        return self.reduce(vector)[0] == 0


def rank(matrix: Matrix) -> int:
    """The dimension of the space that the columns span."""
    return len(Echelon(matrix))


def independent(matrix: Matrix) -> Matrix:
    """The columns that do not depend on the columns before them: a basis of the span."""
    echelon = Echelon()
    return tuple(column for column in matrix if echelon.add(column)[0])


def kernel(matrix: Matrix) -> Matrix:
    """A basis of {v : matrix @ v == 0}."""
    echelon = Echelon()
    added = [echelon.add(column) for column in matrix]
    return tuple(used for rest, used in added if not rest)


def solve(matrix: Matrix, vector: int) -> int | None:
    """Some v with matrix @ v == vector, or None if there is none."""
    rest, used = Echelon(matrix).reduce(vector)
    return None if rest else used


def right_inverse(matrix: Matrix, rows: int) -> Matrix | None:
    """Some x with matrix @ x == identity(rows), or None if matrix does not reach every row."""
    echelon = Echelon(matrix)
    solved = [echelon.reduce(1 << row) for row in range(rows)]
    return None if any(rest for rest, _ in solved) else tuple(used for _, used in solved)


def factor_through(matrix: Matrix, inner: Matrix, rows: int) -> Matrix | None:
    """Some x with x @ inner == matrix, 0 off the span of inner, or None if there is none.

    rows: the number of rows of inner, hence of columns of x.
    """
    echelon = Echelon(inner)
    if any(apply(matrix, null) for null in kernel(inner)):
        return None
    completed = inner + tuple(v for v in identity(rows) if echelon.add(v)[0])
    inverse = right_inverse(completed, rows)
    mask = (1 << len(inner)) - 1
    return tuple(apply(matrix, column & mask) for column in inverse)


def intersection(first: Matrix, second: Matrix) -> Matrix:
    """A basis of span(first) & span(second)."""
    mask = (1 << len(first)) - 1
    return independent(tuple(apply(first, pair & mask) for pair in kernel(first + second)))


def extension(inner: Matrix, outer: Matrix) -> Matrix:
    """The columns of outer that, added in turn to inner, each raise the rank."""
    echelon = Echelon(inner)
    return tuple(column for column in outer if echelon.add(column)[0])


def avoiding_basis(size: int, first: Matrix, second: Matrix) -> Matrix:
    """A basis of GF(2)**size, every prefix of which meets span(first) and span(second) least.

    Vectors outside both come first, then sums of a vector only in one and a vector only in the
    other, which lie in neither.
    Source: "Linear Layouts" (arXiv 2505.23819), optimal swizzling.
    """
    shared = intersection(first, second)
    only_first = extension(shared, first)
    only_second = extension(shared, second)
    sums = tuple(a ^ b for a, b in zip(only_first, only_second))
    outside = extension(first + second, identity(size))
    longer = only_first if len(only_first) > len(only_second) else only_second
    return independent(outside + sums + longer[len(sums) :] + shared + identity(size))
