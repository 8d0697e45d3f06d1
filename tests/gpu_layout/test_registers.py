"""Register layouts follow the shape of a tile as NumPy moves its elements."""

import itertools

import numpy as np
import pytest
from emulated_threads import distribute, element_index
from layouts_with_copies import insert_axis, replicated, stretch

from blocknumba.gpu_layout.layouts.registers import (
    blocked, can_split, collapse, contiguous_registers, drop_axis, inverse_axes, join,
    replication, reshape, shape_of, split, transpose, without_register_copies,
)

SHAPES = ((1,), (8,), (64,), (256,), (4, 8), (16, 4), (1, 64), (32, 32), (2, 4, 8), (8, 1, 32))


def some_layouts():
    for shape in SHAPES:
        for order in itertools.permutations(range(len(shape))):
            for vector, warps in ((1, 1), (4, 2), (2, 4)):
                yield blocked(shape, order, vector, warps)


LAYOUTS = tuple(dict.fromkeys(some_layouts()))


def tile_of(layout):
    shape = shape_of(layout)
    return np.arange(np.prod(shape)).reshape(shape)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_blocked_layout_covers_its_shape_without_copies_in_a_thread(layout):
    held = element_index(layout)

    assert set(held.ravel()) == set(range(tile_of(layout).size))
    for registers in held.reshape(-1, held.shape[2]):
        assert len(set(registers)) == held.shape[2]


def test_the_first_accesses_of_a_blocked_row_are_one_run_of_neighbours():
    held = element_index(blocked((1024,), (0,), 4, 4))

    first = held[:, :, :4].reshape(-1)
    assert (first == np.arange(512)).all()


def test_a_small_tile_is_replicated_over_the_threads_left_over():
    layout = blocked((16,), (0,), 2, 2)

    held = element_index(layout)

    assert held.shape == (2, 32, 2)
    assert (held[0, :8] == np.arange(16).reshape(8, 2)).all()
    assert (held[:, 8:16] == held[:, :8]).all()


def test_warps_go_first_along_the_axis_asked_for():
    held = element_index(blocked((4, 1024), (1, 0), 4, 4, warp_order=(0,)))

    assert [set(held[warp].ravel() // 1024) for warp in range(4)] == [{0}, {1}, {2}, {3}]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_exactly_one_holder_of_each_element_is_kept(layout):
    stored = collapse(layout, (0,))
    masks = replication(stored)

    held = element_index(stored)
    warp, lane, register = np.indices(held.shape)
    kept = held[((warp & masks.warp) | (lane & masks.lane) | (register & masks.register)) == 0]

    assert sorted(kept) == list(range(tile_of(stored).size))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_reshape_keeps_every_register(layout):
    tile = tile_of(layout)

    flat = reshape(layout, (tile.size,))

    assert (distribute(tile.ravel(), flat) == distribute(tile, layout)).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_transpose_keeps_every_register(layout):
    tile = tile_of(layout)
    for axes in itertools.permutations(range(tile.ndim)):
        moved = transpose(layout, axes)

        assert (distribute(tile.transpose(axes), moved) == distribute(tile, layout)).all()
        assert transpose(moved, inverse_axes(axes)) == layout


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_reduced_tile_has_a_holder_in_every_thread_that_held_its_row(layout):
    tile = tile_of(layout)
    for axis in range(tile.ndim):
        index = np.arange(tile.size // tile.shape[axis])
        kept = index.reshape(tile.shape[:axis] + tile.shape[axis + 1 :])
        wide = np.broadcast_to(np.expand_dims(kept, axis), tile.shape)

        dropped = distribute(kept, drop_axis(layout, axis))

        before = distribute(wide, layout)
        for warp, lane in np.ndindex(*dropped.shape[:2]):
            after = list(dropped[warp, lane])
            assert set(after) == set(before[warp, lane]) and len(set(after)) == len(after)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_collapsing_an_axis_of_a_stretched_tile_gives_the_tile_back(layout):
    inserted = insert_axis(layout, 1)
    shape = shape_of(inserted)

    wide = stretch(inserted, (shape[0], 8, *shape[2:]))

    assert shape_of(wide) == (shape[0], 8, *shape[2:])
    assert collapse(wide, (1,)) == inserted
    assert drop_axis(wide, 1) == layout


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_join_interleaves_registers_and_split_undoes_it(layout):
    tile = tile_of(layout)

    joined = join(layout)

    held = distribute(np.stack([tile, tile + 1000], axis=-1), joined)
    assert (held[:, :, 0::2] == distribute(tile, layout)).all()
    assert (held[:, :, 1::2] == distribute(tile + 1000, layout)).all()
    assert can_split(joined) and split(joined) == layout


def test_a_last_axis_that_lies_across_lanes_cannot_be_split():
    assert not can_split(blocked((32, 2), (1, 0), 1, 1))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_contiguous_registers_are_neighbours_and_aligned_in_every_thread(layout):
    tile = tile_of(layout)
    for axis in range(tile.ndim):
        count = contiguous_registers(layout, axis)
        indices = np.indices(tile.shape)
        held = [distribute(indices[a], layout) for a in range(tile.ndim)]

        run = held[axis][:, :, :count]
        assert (run == run[:, :, :1] + np.arange(count)).all()
        assert (run[:, :, 0] % count == 0).all()


def test_copies_within_a_thread_are_dropped():
    everything = replicated((8,), 2)
    doubled = everything.with_columns("register", (1, 3, 2, 4))

    assert without_register_copies(doubled)["register"] == (1, 3, 4)
