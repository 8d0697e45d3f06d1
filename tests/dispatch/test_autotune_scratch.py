"""Scratch copies of arrays, on the host."""

import numpy as np
import pytest

from blocknumba.dispatch.launch.arrays import array_info, host_view
from blocknumba.dispatch.launch.staging import PAGE
from blocknumba.dispatch.tune.trial import HostMemory, Scratch


def scratch_of(stored, **arrays):
    infos = {name: array_info(array, name) for name, array in arrays.items()}
    return Scratch(HostMemory(None, None), infos, frozenset(stored), None), infos


@pytest.mark.parametrize("view", [
    lambda x: x, lambda x: x[::-1], lambda x: x[3::2], lambda x: x.reshape(8, 8).T,
    lambda x: x.reshape(8, 8)[1:5, 2:7], lambda x: x[:0], lambda x: x[5:6],
    lambda x: np.broadcast_to(x[:8], (3, 8))])
def test_a_copy_has_the_values_strides_and_alignment_of_the_array(view):
    x = view(np.arange(64, dtype=np.float32))
    scratch, infos = scratch_of("x", x=x)

    with scratch:
        copy = scratch.infos["x"]

        np.testing.assert_array_equal(host_view(copy), x)
        assert copy.strides == infos["x"].strides
        assert copy.pointer % PAGE == infos["x"].pointer % PAGE or not x.size
        assert copy.pointer != infos["x"].pointer or not x.size


def test_arrays_that_are_only_read_are_not_copied():
    x, out = np.zeros((2, 4), np.float32).copy()
    scratch, infos = scratch_of(["out"], x=np.ones(4), out=out)

    with scratch:
        assert scratch.infos["x"] == infos["x"]
        assert scratch.infos["out"] != infos["out"]


def test_copies_overlap_as_the_arrays_do():
    memory = np.arange(10, dtype=np.float32)
    scratch, _ = scratch_of(["out"], x=memory[:8], out=memory[2:])

    with scratch:
        host_view(scratch.infos["out"])[...] = -1

        np.testing.assert_array_equal(host_view(scratch.infos["x"]), [0, 1] + [-1] * 6)
    np.testing.assert_array_equal(memory, np.arange(10))


def test_copies_get_their_first_values_back():
    x = np.arange(6, dtype=np.float32)
    scratch, _ = scratch_of("x", x=x)

    with scratch:
        copy = host_view(scratch.infos["x"])
        copy[...] = 9
        scratch.restore(["x"])

        np.testing.assert_array_equal(copy, x)


def test_copies_are_cleared_and_what_is_beside_them_is_not():
    memory = np.arange(1, 9, dtype=np.int16)
    scratch, _ = scratch_of(["x", "y"], x=memory[:6], y=memory[4:])

    with scratch:
        scratch.clear(["x"])

        np.testing.assert_array_equal(host_view(scratch.infos["y"]), [0, 0, 7, 8])
    np.testing.assert_array_equal(memory, np.arange(1, 9))


def test_a_read_only_array_can_be_stored_to_in_scratch_only():
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    scratch, _ = scratch_of("x", x=x)

    with scratch:
        host_view(scratch.infos["x"])[...] = 1

    assert (x == 0).all()
