"""Parts of tiles, and tiles of parts: NumPy's results on the interpreter, natively and emulated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import emulated_gpu
import numpy as np
import pytest
from launching import kernel_of

import blocknumba as bn
from blocknumba.errors import BlockError, BlockIndexError

SHAPES = ((64,), (8, 16), (4, 8, 4), (2, 2, 4, 2, 2, 2, 1, 2))
DTYPES = ("int8", "uint16", "int32", "int64", "float16", "float32", "float64", "bool")
TARGETS = ("sm_80", "sm_90a")


@bn.jit
def apply(x, y, out, F: bn.constexpr, SHAPE: bn.constexpr, N: bn.constexpr, SIZE: bn.constexpr):
    i = bn.span(0, N)
    tile = F(bn.reshape(x[i], SHAPE), bn.reshape(y[i], SHAPE))
    out[bn.span(0, SIZE)] = bn.reshape(tile, (SIZE,))


def tiles(shape, dtype="float32") -> tuple[np.ndarray, np.ndarray]:
    """Two tiles of distinct bits."""
    random = np.random.default_rng()
    size = int(np.prod(shape))
    numbers = random.permutation(4 * size)[:2 * size]
    numbers = numbers % 2 == 0 if dtype == "bool" else numbers % 120
    x, y = numbers.astype(dtype).reshape(2, *shape)
    return x, y


def agree(function: Callable, expected: Callable, shape: tuple[int, ...], dtype: str = "float32",
          num_warps: int = 4, target: str = "sm_90a") -> None:
    """The elements of function(x, y) are those of expected(x, y): natively and emulated."""
    x, y = tiles(shape, dtype)
    wanted = np.ascontiguousarray(expected(x, y))
    for run in ("native", "interpreted", "emulated"):
        # poisoned, with a guard behind
        out = np.full(wanted.size + 8, 77, wanted.dtype)
        given = dict(F=function, SHAPE=shape, N=x.size, SIZE=wanted.size, num_warps=num_warps)
        if run == "emulated":
            emulated_gpu.launch(apply, 1, (x.ravel(), y.ravel(), out), given, target)
        else:
            apply[1](x.ravel(), y.ravel(), out, **given, interpret=run == "interpreted")
        np.testing.assert_array_equal(out[:-8], wanted.ravel(), run)
        assert (out[-8:] == wanted.dtype.type(77)).all()


def check(function: Callable, shape: tuple[int, ...], **options) -> None:
    """A function that NumPy spells the same."""
    agree(function, function, shape, **options)


def axes_of(shape: tuple[int, ...]) -> Iterator[int]:
    """Axes from the start and from the end."""
    yield from range(-len(shape), len(shape))


EVERY_AXIS = [(shape, axis) for shape in SHAPES for axis in axes_of(shape)]


@pytest.mark.parametrize("shape, axis", EVERY_AXIS, ids=str)
def test_concatenate(shape, axis):
    check(lambda x, y: np.concatenate((x, y), axis=axis), shape)


def test_concatenate_of_several_sizes_and_dtypes():
    check(lambda x, y: np.concatenate((x, y, y, x), axis=-1), (8, 4))
    check(lambda x, y: np.concatenate((x, y[:2], x[2:4], y[4:]), axis=0), (8, 4))
    check(lambda x, y: np.concatenate((x[:, :1], y[:, :2], x[:, 3:4], y), 1), (4, 4))
    check(lambda x, y: np.concatenate((x, y), axis=None), (4, 8))
    check(lambda x, y: np.concatenate((x, x > y)), (4, 8))
    check(lambda x, y: np.concatenate((x,)), (4, 8))
    agree(lambda x, y: bn.cat(x, y, can_reorder=True), lambda x, y: np.concatenate((x, y)), (64,))
    agree(lambda x, y: bn.cat(x, y, dim=1), lambda x, y: np.concatenate((x, y), 1), (4, 8))


# the result has one axis more
STACKED = (*SHAPES[:-1], (2, 2, 4, 2, 2, 2, 2))


@pytest.mark.parametrize("shape, axis", [(shape, axis) for shape in STACKED for axis in range(
    -len(shape) - 1, len(shape) + 1)], ids=str)
def test_stack(shape, axis):
    check(lambda x, y: np.stack((x, y, y, x), axis=axis), shape)


def test_stack_of_scalars():
    check(lambda x, y: np.stack((x.max(), y.min())), (4, 8))


@pytest.mark.parametrize("shape, axis", EVERY_AXIS, ids=str)
def test_repeat(shape, axis):
    check(lambda x, y: np.repeat(x, 4, axis), shape)


def test_repeat_of_all_elements():
    check(lambda x, y: np.repeat(x, 2), (4, 8))
    check(lambda x, y: x.repeat(1, axis=1), (4, 8))


ROLLS = [(shape, axis, shift) for shape, axis in EVERY_AXIS if axis >= 0
         for shift in (1, -1, shape[axis] // 2, 5)]


@pytest.mark.parametrize("shape, axis, shift", ROLLS, ids=str)
def test_roll(shape, axis, shift):
    check(lambda x, y: np.roll(x, shift, axis), shape)


def test_roll_along_several_axes_and_all():
    check(lambda x, y: np.roll(x, 7), (4, 8))
    check(lambda x, y: np.roll(x, (1, -3), axis=(0, 1)), (4, 8))
    check(lambda x, y: np.roll(x, 3, axis=(0, 1)), (4, 8))
    check(lambda x, y: np.roll(x, 0, axis=1), (4, 8))
    check(lambda x, y: np.roll(x, 100, axis=1), (4, 8))


def test_roll_by_a_number_of_run_time():
    agree(lambda x, y: bn.roll(x, x.max(), 0), lambda x, y: np.roll(x, int(x.max()), 0), (32, 4),
          dtype="int32")
    agree(lambda x, y: bn.roll(x, -x.max(), 1), lambda x, y: np.roll(x, -int(x.max()), 1), (4, 32),
          dtype="int64")


@pytest.mark.parametrize("shape, axis", EVERY_AXIS, ids=str)
def test_flip(shape, axis):
    check(lambda x, y: np.flip(x, axis), shape)


def test_flip_of_several_axes():
    check(lambda x, y: np.flip(x), (4, 8, 2))
    check(lambda x, y: np.flip(x, (0, -1)), (4, 8, 2))
    agree(lambda x, y: bn.flip(x), lambda x, y: x[..., ::-1], (4, 8))
    agree(lambda x, y: bn.flip(x, dim=0), lambda x, y: x[::-1], (4, 8))


SLICES = [np.s_[::2], np.s_[1::2], np.s_[::4], np.s_[3::8], np.s_[::-1], np.s_[::-2], np.s_[-2::-4],
          np.s_[8:24], np.s_[1:9], np.s_[3:5], np.s_[5:37:4], np.s_[0:24:3], np.s_[62:39:-3],
          np.s_[7:15:2], np.s_[33:1:-1], np.s_[-16:], np.s_[31:33], np.s_[24:56], np.s_[48:16:-8],
          np.s_[9:10], np.s_[40:-8], np.s_[::64], np.s_[:1]]


@pytest.mark.parametrize("part", SLICES, ids=str)
@pytest.mark.parametrize("place", ["only", "first", "last", "middle"])
def test_slices(part, place):
    shape = {"only": (64,), "first": (64, 4), "last": (4, 64), "middle": (2, 64, 4)}[place]
    index = {"only": part, "first": part, "last": (..., part), "middle": (1, part)}[place]
    check(lambda x, y: x[index], shape)


def test_slices_with_other_indices():
    check(lambda x, y: x[::2, None, ::-1], (8, 16))
    check(lambda x, y: x[3, 1::2], (8, 16))
    check(lambda x, y: x[..., ::2, 5:7], (2, 4, 8))
    check(lambda x, y: x[None, ::-1, ..., -3], (2, 4, 8))
    check(lambda x, y: x[2:6, 4:12] + y[::2, ::2], (8, 16))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_dtypes(dtype, target):
    options = dict(dtype=dtype, target=target, num_warps=2)
    check(lambda x, y: np.concatenate((x[1::2], y[::-2]), axis=0), (64,), **options)
    check(lambda x, y: np.roll(x, 3, 0), (64, 4), **options)
    check(lambda x, y: np.roll(x, 3, 1), (4, 256), **options)
    check(lambda x, y: x[3:11, ::-1], (16, 32), **options)


STARTS = [*itertools.product((0, 1, 4, 7), (0, 2, 5, 12)), *itertools.product((0, 8), (0, 4))]


@pytest.mark.parametrize("starts", STARTS, ids=str)
@pytest.mark.parametrize("size", [(1, 4), (8, 2), (1, 1)], ids=str)
def test_extract_and_insert(starts, size):
    i, j = starts
    where = np.s_[i:i + size[0], j:j + size[1]]

    def replaced(x, y):
        made = x.copy()
        made[where] = y[:size[0], :size[1]]
        return made

    agree(lambda x, y: bn.extract(x, starts, size), lambda x, y: x[where], (16, 16))
    agree(lambda x, y: bn.insert(x, y[:size[0], :size[1]], starts), replaced, (16, 16))


@pytest.mark.parametrize("start", [-9, -8, -3, 1, 12, 15, 16, 2**40], ids=str)
def test_parts_that_reach_over_an_edge(start):
    """Whether a start is known or not: elements outside read as 0 and are not written."""
    first = min(max(start, -8), 16) + 8

    def window(x, y):
        return np.pad(x, ((0, 0), (8, 8)))[:, first:first + 8]

    def replaced(x, y):
        made = np.pad(x, ((0, 0), (8, 8)))
        made[:, first:first + 8] = y[:, :8]
        return made[:, 8:24]

    agree(lambda x, y: bn.extract(x, (0, start), (4, 8)), window, (4, 16))
    agree(lambda x, y: bn.insert(x, y[:, :8], (0, start)), replaced, (4, 16))


def test_spans_of_tiles():
    def window(x, y):
        start = int(x[0, 0]) - 60
        return np.pad(x, ((200, 200), (0, 0)))[200 + start:208 + start, 5:9].T

    for _ in range(5):
        agree(lambda x, y: x[bn.span(x[0, 0] - 60, 8), bn.span(4, 8)].T[1:5], window, (64, 16),
              "int16")


def test_parts_at_starts_of_run_time():
    def window(x, start, size):
        padded = np.pad(x, ((0, 0), (200, 200)))
        return padded[:, 200 + start:200 + start + size]

    def replaced(x, y):
        made, start = np.pad(x, ((0, 0), (200, 200))), int(x[0, 0]) - 60
        made[:, 200 + start:208 + start] = y[:, :8]
        return made[:, 200:-200]

    for _ in range(4):
        agree(lambda x, y: bn.extract(x, (0, x[0, 0] - 60), (4, 8)),
              lambda x, y: window(x, int(x[0, 0]) - 60, 8), (4, 64), dtype="int32")
        agree(lambda x, y: bn.insert(x, y[:, :8], (0, x[0, 0] - 60)), replaced, (4, 64),
              dtype="int32")


def gathered(x, index, axis):
    """What NumPy takes, 0 where an index is outside."""
    inside = (index >= 0) & (index < x.shape[axis])
    taken = np.take_along_axis(x, np.where(inside, index, 0), axis)
    return np.where(inside, taken, x.dtype.type(0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64"])
@pytest.mark.parametrize("shape, axis", [((64,), 0), ((8, 32), 0), ((8, 32), -1), ((2, 8, 4), 1)])
def test_gather(dtype, shape, axis):
    agree(lambda x, y: bn.gather(x, y, axis), lambda x, y: gathered(x, y.astype(np.int64), axis),
          shape, dtype=dtype)


def test_gather_of_other_extents_and_wide_indices():
    agree(lambda x, y: np.take_along_axis(x, (y & 7)[:1], 1),
          lambda x, y: np.take_along_axis(x, (y & 7)[:1], 1), (4, 8), dtype="int32")
    agree(lambda x, y: np.take_along_axis(x, y & 31, None),
          lambda x, y: np.take_along_axis(x, (y & 31).ravel(), None), (32,), dtype="int32")
    agree(lambda x, y: bn.gather(x, y + (1 << 32), 0), lambda x, y: np.zeros_like(x), (64,),
          dtype="int64")
    agree(lambda x, y: x.gather(-1, 1), lambda x, y: x[:, -1:], (4, 8))
    agree(lambda x, y: bn.gather(x, bn.arange(0, 256).reshape(1, 256) & 7, axis=1),
          lambda x, y: np.tile(x, (1, 32)), (4, 8))


def scattered(x, index, values, axis):
    """Element by element, in C order: the last one counts."""
    made = x.copy()
    for place in np.ndindex(index.shape):
        at = int(index[place])
        if 0 <= at < x.shape[axis]:
            made[(*place[:axis], at, *place[axis + 1:])] = values[place]
    return made


SCATTERS = [((64,), 0), ((4,), 0), ((1,), 0), ((8, 16), 0), ((8, 16), 1), ((2, 8, 4), 1),
            ((2, 1, 4, 2), 2), ((256,), 0)]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
@pytest.mark.parametrize("shape, axis", SCATTERS, ids=str)
def test_scatter(dtype, shape, axis):
    agree(lambda x, y: bn.scatter(x, y % 19 - 1, x + y, axis),
          lambda x, y: scattered(x, (y % 19).astype(int) - 1, x + y, axis), shape, dtype=dtype)


def test_scatter_of_other_extents_and_of_numbers():
    agree(lambda x, y: bn.scatter(x, bn.arange(0, 4).reshape(1, 4) * 3, -1, -1),
          lambda x, y: scattered(x, np.tile(np.arange(4) * 3, (8, 1)), np.full((8, 4), -1), 1),
          (8, 16))
    agree(lambda x, y: bn.scatter(x, bn.zeros((128,), bn.int32), bn.arange(0, 128), 0),
          lambda x, y: scattered(x, np.zeros(128, int), np.arange(128), 0), (16,))


@bn.jit
def pick(x, index, out):
    i = bn.span(0, 64)
    out[i] = bn.gather(x[i], index[i], 0)


def test_debug_reports_an_index_outside_of_a_tile():
    index = np.arange(64, dtype=np.int32)
    index[5] = -1

    with pytest.raises(BlockIndexError, match=r"gather of tile<64xfloat32>: index -1 is outside "
                                              r"axis 0, in program \(0, 0, 0\), element \(5,\)"):
        pick[1](np.ones(64, np.float32), index, np.ones(64, np.float32), debug=True)


def test_rearrangements_take_no_shared_memory_that_they_do_not_need():
    x = np.arange(1024, dtype=np.float32)
    out, wanted = np.zeros(512, np.float32), np.concatenate((x[:256], x[512:768]))

    compiled = emulated_gpu.launch(apply, 1, (x, x, out), dict(
        F=lambda x, y: np.concatenate((x[:256], y[512:768])), SHAPE=(1024,), N=1024, SIZE=512,
        num_warps=1), "sm_90a")

    np.testing.assert_array_equal(out, wanted)
    assert compiled.stats.shared_bytes == 0


def test_a_table_in_lanes_is_read_without_shared_memory():
    random = np.random.default_rng()
    x, index = random.random(16, np.float32), random.integers(0, 16, 1024, np.int32)
    out = np.zeros(1024, np.float32)

    compiled = emulated_gpu.launch(look_up, 1, (x, index, out), {}, "sm_90a")

    np.testing.assert_array_equal(out, x[index])
    assert compiled.stats.shared_bytes == 0 and "shfl.sync.idx" in compiled.ptx


@bn.jit
def look_up(x, index, out):
    i = bn.span(0, 1024)
    out[i] = bn.gather(x[bn.span(0, 16)], index[i], 0)


X, ROW = "tile<8x16xfloat32>", "tile<16xfloat32>"
ERRORS = [
    (lambda x: x[:3], f"index: the slice :3 of {X}: given 3 elements along an axis, "
     "accepted powers of two", "the next valid size is 4"),
    (lambda x: x[1::3], f"index: the slice 1::3 of {X}: given 3 elements along an axis, "
     "accepted powers of two", "the next valid size is 4"),
    (lambda x: x[4:4], f"index: the slice 4:4 of {X} has no elements, accepted some", ""),
    (lambda x: np.concatenate((x, x[:4])), "concatenate: axis 0 of the result has extent 12, "
     "accepted powers of two", "the next valid extent is 16: add tiles of zeros"),
    (lambda x: np.concatenate((x, x[:, :4])), "concatenate: given shapes (8, 16) and (8, 4), "
     "accepted the same extents but for axis 0", ""),
    (lambda x: np.concatenate(x), f"concatenate: given {X}, accepted a tuple of tiles",
     "write bn.concatenate((x, y))"),
    (lambda x: np.concatenate((x.max(), x)), "concatenate: given a scalar, accepted tiles of rank "
     "1 or more", "bn.stack and bn.join take scalars"),
    (lambda x: np.concatenate((x, x), axis=2), "concatenate: axis 2 is out of range for rank 2, "
     "accepted -2 to 1", ""),
    (lambda x: np.stack((x, x, x)), "stack: axis 0 of the result has extent 3, accepted powers of "
     "two", "the next valid extent is 4: add tiles of zeros"),
    (lambda x: np.stack((x, x[0])), "stack: given shapes (8, 16) and (16,), accepted one shape",
     ""),
    (lambda x: np.repeat(x, 3, 0), "repeat: repeats must be a power of two, got 3",
     "the next valid number is 4"),
    (lambda x: np.roll(x, 1.5, 0), "roll: shift must be an int, got 1.5", ""),
    (lambda x: np.roll(x, (1, 2), 0), "roll: given 2 shifts and 1 axes, accepted as many", ""),
    (lambda x: np.flip(x, 2), "flip: axis 2 is out of range for rank 2, accepted -2 to 1", ""),
    (lambda x: bn.gather(x, x, 0), f"gather: given index {X} for {X}, "
     "accepted ints of its rank", ""),
    (lambda x: bn.gather(x, bn.arange(0, 8), 0), f"gather: given index tile<8xint32> for {X}, "
     "accepted ints of its rank", ""),
    (lambda x: bn.gather(x, bn.zeros((8, 4), bn.int32), 0), "gather: given index tile<8x4xint32> "
     f"for {X}, accepted the same extents but for axis 0", ""),
    (lambda x: bn.gather(x, 16, 1), f"gather: index 16 is out of range for axis 1 of {X}",
     ""),
    (lambda x: bn.scatter(x, x, 0, 0), f"scatter: given index {X} for {X}, accepted ints of its "
     "rank", ""),
    (lambda x: bn.scatter(x[:1], bn.zeros((8, 4), bn.int32), 0, 1), "scatter: given index "
     "tile<8x4xint32> for tile<1x16xfloat32>, accepted the same extents but for axis 1", ""),
    (lambda x: bn.extract(x, (0, 12), (16, 8)), "extract: given a part of shape (16, 8), "
     f"accepted one that {X} can hold", ""),
    (lambda x: bn.extract(x, (0, 0), (3, 8)), "extract: given 3 elements along an axis, accepted "
     "powers of two", "the next valid size is 4"),
    (lambda x: bn.extract(x, 0, 8), "extract: given 1 starts and 1 extents, accepted one for each "
     f"axis of {X}", ""),
    (lambda x: bn.insert(x, x[0], (0, 0)), f"insert: given a part {ROW} for {X}, "
     "accepted one of its rank", ""),
    (lambda x: bn.insert(x[:4], x, (0, 1)), "insert: given a part of shape (8, 16), accepted one "
     "that tile<4x16xfloat32> can hold", ""),
]


@pytest.mark.parametrize("function, message, hint", ERRORS, ids=[row[1] for row in ERRORS])
def test_errors(function, message, hint):
    def kernel(x, F):
        F(x[bn.span(0, 8), bn.span(0, 16)])

    with pytest.raises(BlockError) as caught:
        kernel_of(kernel, x=np.zeros((8, 16), np.float32), constants={"F": function})

    assert caught.value.message == message
    assert caught.value.hint == hint
