"""NumPy's functions that make tiles and change their shapes."""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.types import float64, int64
from blocknumba.typing.function import function
from blocknumba.typing.functions import create, shape
from blocknumba.typing.functions.concatenate import concatenate, stack
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import where as choose
from blocknumba.typing.functions.parts import gather
from blocknumba.typing.functions.shape import broadcast_to, flip, ravel, reshape
from blocknumba.typing.numpy_functions import sums
from blocknumba.typing.numpy_functions.parts import accept, extents, tile, whole
from blocknumba.typing.static_values import static_axis

_arange, _full, _zeros, _ones, _empty = (create.arange, create.full, create.zeros, create.ones,
                                         create.empty)


def zeros(shape, dtype=float64):
    """A tile of zeros."""
    return _zeros(shape, dtype)


def ones(shape, dtype=float64):
    """A tile of ones."""
    return _ones(shape, dtype)


def empty(shape, dtype=float64):
    """A tile of any values."""
    return _empty(shape, dtype)


def full(shape, fill_value, dtype=None):
    """A tile of one value: a Python float is a float64, a Python int an int64."""
    return _full(shape, fill_value, _of_filling(fill_value) if dtype is None else dtype)


@function
def _of_filling(context, value):
    """The dtype that NumPy gives an array of a value."""
    if isinstance(value, (bool, int, float)):
        return create.static_dtype("np.full", type(value))
    return None


def zeros_like(a, dtype=None):
    """Zeros of a's shape, and its dtype if none is given."""
    return create.zeros_like(a) if dtype is None else _zeros(a.shape, dtype)


def ones_like(a, dtype=None):
    """Ones of a's shape, and its dtype if none is given."""
    return create.ones_like(a) if dtype is None else _ones(a.shape, dtype)


def full_like(a, fill_value, dtype=None):
    """One value in a's shape, in its dtype if none is given."""
    if dtype is None:
        return create.full_like(a, fill_value)
    return _full(a.shape, fill_value, dtype)


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... less than stop, of compile-time ints; int64 by default."""
    if stop is None:
        start, stop = 0, start
    count = -(-(whole("arange: stop", stop) - whole("arange: start", start))
              // whole("arange: step", step))
    counted = cast(_arange(0, count), int64 if dtype is None else dtype)
    return counted * step + start


def linspace(start, stop, num=50, endpoint=True, dtype=float64):
    """num numbers from start to stop, which is the last of them if endpoint."""
    last = num - 1 if endpoint else num
    places = cast(_arange(0, num), float64)
    made = places * ((stop - start) / last) + start
    if endpoint and num > 1:
        made = choose(places == last, stop, made)
    return cast(made, dtype)


def eye(N, M=None, k=0, dtype=float64):
    """Ones on the k-th diagonal of N rows and M columns, zeros elsewhere."""
    columns = _arange(0, N if M is None else M)
    return cast(columns[None, :] - _arange(0, N)[:, None] == k, dtype)


def identity(n, dtype=float64):
    """Ones on the diagonal of n rows and columns."""
    return eye(n, n, 0, dtype)


def tri(N, M=None, k=0, dtype=float64):
    """Ones at and below the k-th diagonal, zeros elsewhere."""
    columns = _arange(0, N if M is None else M)
    return cast(columns[None, :] - _arange(0, N)[:, None] <= k, dtype)


def tril(m, k=0):
    """The elements of the last two axes at and below the k-th diagonal; zeros elsewhere."""
    rows, columns = m.shape[-2], m.shape[-1]
    is_in = _arange(0, columns)[None, :] - _arange(0, rows)[:, None] <= k
    return choose(is_in, m, create.zeros_like(m))


def triu(m, k=0):
    """The elements of the last two axes at and above the k-th diagonal; zeros elsewhere."""
    rows, columns = m.shape[-2], m.shape[-1]
    is_in = _arange(0, columns)[None, :] - _arange(0, rows)[:, None] >= k
    return choose(is_in, m, create.zeros_like(m))


def diag(v, k=0):
    """A tile with v on its diagonal; of a tile of rank 2 its diagonal."""
    accept(k == 0, "np.diag: accepted k=0")
    if len(v.shape) == 2:
        return diagonal(v)
    n = v.shape[0]
    is_on = _arange(0, n)[None, :] == _arange(0, n)[:, None]
    return choose(is_on, v[:, None], create.zeros_like(v)[:, None])


def diagonal(a):
    """The elements a[i, i]."""
    a = tile("diagonal", a, 2)
    n = min(a.shape)
    at = _arange(0, n)[:, None] if a.shape[0] >= a.shape[1] else _arange(0, n)[None, :]
    if a.shape[0] >= a.shape[1]:
        return reshape(gather(a, broadcast_to(at.T, (1, n)), 0), (n,))
    return reshape(gather(a, broadcast_to(at.T, (n, 1)), 1), (n,))


def trace(a):
    """The sum of the elements a[i, i], in the dtype that sums have."""
    a = tile("trace", a, 2)
    is_on = _arange(0, a.shape[1])[None, :] == _arange(0, a.shape[0])[:, None]
    return sums.sum(a, where=is_on)


def outer(a, b):
    """a[i] * b[j] of all elements of a and b."""
    return ravel(a)[:, None] * ravel(b)[None, :]


def fliplr(m):
    """The columns in reverse."""
    return flip(m, 1)


def flipud(m):
    """The rows in reverse."""
    return flip(m, 0)


def rot90(m, k=1):
    """The rows and columns of a tile turned by k quarters, from the first axis to the second."""
    m, turns = tile("rot90", m, 2), whole("rot90: k", k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(flip(m, 0), 1)
    return flip(m, 1).T if turns == 1 else flip(m.T, 1)


def hstack(tup):
    """Tiles side by side: along the first axis of vectors, else the second."""
    return concatenate(tup, 0 if len(tup[0].shape) == 1 else 1)


def vstack(tup):
    """Tiles one below the other; vectors are rows."""
    return stack(tup, 0) if len(tup[0].shape) == 1 else concatenate(tup, 0)


def column_stack(tup):
    """Tiles side by side; vectors are columns."""
    return stack(tup, 1) if len(tup[0].shape) == 1 else concatenate(tup, 1)


def tiled(A, reps):
    """A repeated along its axes: the last one, if reps is a number."""
    times = extents("tile", reps)
    times = (1,) * (len(A.shape) - len(times)) + times
    of = (1,) * (len(times) - len(A.shape)) + A.shape
    return reshape(broadcast_to(reshape(A, _pairs(of, 1)), _pairs(of, times)), _joined(of, times))


@function
def _pairs(context, of, times):
    """(t0, n0, t1, n1 ...): what is repeated before each axis."""
    times = times if isinstance(times, tuple) else (times,) * len(of)
    return tuple(n for pair in zip(times, of) for n in pair)


@function
def _joined(context, of, times):
    """The extents after the repetition."""
    return tuple(n * t for n, t in zip(of, times))


def take(a, indices, axis=None):
    """The elements at indices along axis, of all elements in their order if it is None."""
    if axis is None:
        return taken(ravel(a), indices)
    if len(a.shape) == 1:
        return taken(a, indices)
    accept(len(indices.shape) == 1, "np.take: along an axis, accepted indices of rank 1")
    front = moveaxis(a, axis, 0)
    rows = reshape(front, (front.shape[0], -1))
    index = broadcast_to(indices[:, None], (indices.shape[0], rows.shape[1]))
    return moveaxis(reshape(gather(rows, index, 0), indices.shape + front.shape[1:]), 0, axis)


def taken(vector, indices):
    """The elements of a vector at indices of any shape."""
    return reshape(gather(vector, ravel(indices), 0), indices.shape)


@function
def transpose(context, a, *axes):
    """The axes in the order of axes; in reverse if there are none."""
    rank = len(tile.rule(context, "transpose", a).type.shape)
    given = axes[0] if len(axes) == 1 else axes or None
    return shape.permute.rule(context, a, tuple(range(rank))[::-1] if given is None else given)


@function
def matrix_transpose(context, x):
    """The last two axes exchanged."""
    return shape.swapaxes.rule(context, x, -1, -2)


@function
def moveaxis(context, a, source, destination):
    """The axes of source at the places of destination, the others in their order."""
    rank = len(tile.rule(context, "moveaxis", a).type.shape)
    moved, places = (tuple(static_axis("np.moveaxis", axis, rank) for axis in given)
                     for given in (_tuple(source), _tuple(destination)))
    require(len(set(moved)) == len(moved) == len(set(places)) == len(places),
            "np.moveaxis: given {} to {}, accepted different axes, as many as places",
            source, destination, error=BlockTypeError)
    order = [axis for axis in range(rank) if axis not in moved]
    for place, axis in sorted(zip(places, moved)):
        order.insert(place, axis)
    return shape.permute.rule(context, a, tuple(order))


def _tuple(given: object) -> tuple:
    return given if isinstance(given, tuple) else (given,)


@function
def at_least(context, x, rank):
    """x with axes of extent 1, as atleast_1d and atleast_2d add them in front."""
    found = tile.rule(context, "atleast", x)
    own = found.type.shape
    return shape.reshape.rule(context, found, (1,) * (rank - len(own)) + own)


def atleast_1d(x):
    """x with at least one axis."""
    return at_least(x, 1)


def atleast_2d(x):
    """x with at least two axes, new ones in front."""
    return at_least(x, 2)


def ndim(a):
    """The number of axes."""
    return len(a.shape)


def size(a, axis=None):
    """The number of elements, or the extent of an axis."""
    return a.size if axis is None else a.shape[axis]


def shape_of(a):
    """The extents, a tuple."""
    return a.shape


def asarray(a, dtype=None):
    """a, in a dtype if one is given."""
    a = tile("asarray", a)
    return a if dtype is None else cast(a, dtype)
