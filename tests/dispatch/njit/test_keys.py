"""Keys of launches: arguments with equal keys have one specialization."""

import ctypes
import itertools
from dataclasses import replace

import numpy as np
import pytest
from numba import njit

import blocknumba as bn
from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.specialize import arguments_of, stores_are_apart
from blocknumba.dispatch.njit import site as site_module
from blocknumba.dispatch.njit.launch_table import DONE

RANDOM = np.random.default_rng(11)


@bn.jit
def one_axis(x, out, n):
    out[0] = x[0] + n % 3


@bn.jit
def three_axes(x, out, n):
    out[0, 0, 0] = x[0, 0, 0] % n


@njit
def launch_one(x, out, n):
    one_axis[1](x, out, n)


@njit
def launch_three(x, out, n):
    three_axes[1](x, out, n)


def known(signature, infos) -> tuple:
    """What code for the CPU may rely on: tensor maps are of GPUs."""
    return tuple((name, replace(argument, mappable=False) if name in ("x", "out") else argument)
                 for name, argument in arguments_of(signature, infos, on_host=True))


@pytest.fixture
def seen(monkeypatch):
    """(key, specialization) of each launch that native code does not know."""
    found = []

    def launch(self, record, key, *_):
        layout = self.description.layout
        slots = (ctypes.c_int64 * layout.slot_count).from_address(record)
        infos = layout.read(slots, "kernel")
        words = tuple((ctypes.c_uint64 * self._key_words).from_address(key))
        arrays = {name: info for name, info in infos.items() if isinstance(info, ArrayInfo)}
        apart = stores_are_apart(arrays, {"out"})
        found.append((words, (known(self.kernel.signature, infos), apart)))
        return DONE

    monkeypatch.setattr(site_module.Site, "launch", launch)
    return found


def views_of_one_axis() -> list[np.ndarray]:
    memory = np.zeros(4096, np.float32)
    starts, sizes, steps = (0, 1, 2, 4, 64, 1000), (0, 1, 2, 3, 16, 100), (1, 2, 3, 16, -1, -8)
    views = [memory[start:][::step][:size]
             for start, size, step in itertools.product(starts, sizes, steps)]
    return [*views, np.broadcast_to(memory[3:4], 48), np.broadcast_to(memory[0], 1)]


def views_of_three_axes() -> list[np.ndarray]:
    memory = np.zeros((6, 8, 32), np.int16)
    cuts = [slice(None), slice(1, None), slice(0, 1), slice(None, None, 2), slice(None, None, -1),
            slice(0, 0)]
    views = [memory[index] for index in itertools.product(cuts, repeat=3)]
    return [*views, *(view.transpose(2, 0, 1) for view in views[::3]),
            np.broadcast_to(memory[0, 0, :4], (2, 3, 4))]


NUMBERS = [0, 1, -1, 2, 3, 16, 24, 32, 256, 512, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**40,
           2**63 - 1, -2**63]


def check(seen) -> None:
    by_key = {}
    for key, specialization in seen:
        assert by_key.setdefault(key, specialization) == specialization
    # else any two launches would do
    assert len({specialization for _, specialization in seen}) > 20


@pytest.mark.parametrize("launch, views", [(launch_one, views_of_one_axis()),
                                           (launch_three, views_of_three_axes())],
                         ids=["one axis", "three axes"])
def test_equal_keys_mean_one_specialization(seen, launch, views):
    outs = [view for view in views if view.ndim == views[0].ndim and view.flags.writeable]
    for view in views:
        out, n = outs[RANDOM.integers(len(outs))], NUMBERS[RANDOM.integers(len(NUMBERS))]
        launch(view, out, n)
    for n in NUMBERS:
        launch(views[0], outs[5], n)

    check(seen)


def test_arrays_that_share_memory_have_another_key(seen):
    memory = np.zeros(256, np.float32)
    launch_one(memory[:64], memory[64:128], 1)
    launch_one(memory[:68], memory[64:128], 1)
    launch_one(memory[64:128], memory[:64], 1)
    launch_one(memory[:64], memory[:0], 1)

    apart = [specialization[1] for _, specialization in seen]
    assert apart == [True, False, True, True]
    assert seen[0][0] == seen[2][0] != seen[1][0]


def test_a_word_says_what_a_wide_array_is(seen):
    far = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2**31,), (0,))
    wide = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**31 - 2**20 + 2,), (1,))
    out = np.zeros(4, np.float32)
    for x in (far, wide[:4], wide):
        if x.dtype == np.float32:
            launch_one(x, out, 1)
        else:
            launch_one(x, out.view(np.int8), 1)

    assert [dict(specialization[0])["x"].wide for _, specialization in seen] == [True, False, True]
    assert seen[1][0] != seen[2][0]
