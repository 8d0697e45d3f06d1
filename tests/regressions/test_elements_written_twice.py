"""Elements that one tile writes several times, from what it read of them before."""

import numpy as np
import pytest

import blocknumba as bn
import emulated_gpu


@bn.jit
def at_indices_of_an_array(h, places):
    i = places[bn.span(0, 64)]
    h[i] = h[i] * 2 + 1


@bn.jit
def in_place(h, places):
    h[places[bn.span(0, 64)]] += 1


@bn.jit
def at_clamped_indices(h, places):
    i = bn.minimum(bn.arange(0, 64) * 3, 20)
    h[i] = h[i] * 2 + 1


@bn.jit
def at_quotients(h, places):
    i = bn.arange(0, 64) // 3
    h[i] = h[i] * 2 + 1


@bn.jit
def at_rows_that_overlap(h, places):
    i = bn.arange(0, 8)[:, None] * 2 + bn.arange(0, 8)
    h[i] = h[i] * 2 + 1


@bn.jit
def at_rows_of_a_step(h, places):
    i = bn.arange(0, 8)[:, None] * (places[0] % 3) + bn.arange(0, 8)
    h[i] = h[i] * 2 + 1


@bn.jit
def at_pointers_of_a_step(h, places):
    i = bn.arange(0, 8)[:, None] * (places[0] % 3) + bn.arange(0, 8)
    bn.store(h + i, bn.load(h + i) * 2 + 1)


@bn.jit
def at_repeated_indices(h, places):
    i = bn.broadcast_to(bn.arange(0, 8)[:, None], (8, 8))
    h[i] = h[i] * 2 + 1


@bn.jit
def with_another_store(h, places):
    i = places[bn.span(0, 64)]
    before = h[i]
    h[i] = before * 2 + 1
    places[bn.span(0, 64)] = before.to(bn.int32)


KERNELS = (at_indices_of_an_array, in_place, at_clamped_indices, at_quotients,
           at_rows_that_overlap, at_rows_of_a_step, at_pointers_of_a_step, at_repeated_indices,
           with_another_store)


GPU = {"num_warps": 2, "num_stages": 1}


def written(kernel, **options):
    random = np.random.default_rng(64)
    h, places = random.integers(0, 9, 64).astype(float), random.integers(0, 30, 64, np.int32)
    kernel[1](h, places, **options)
    return np.concatenate((h, places))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.signature.kernel)
def test_all_elements_are_read_before_one_is_written(kernel):
    assert (written(kernel) == written(kernel, interpret=True)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.signature.kernel)
def test_threads_of_a_gpu_wait_for_each_others_reads(kernel):
    random = np.random.default_rng(64)
    h, places = random.integers(0, 9, 64).astype(float), random.integers(0, 30, 64, np.int32)

    code = emulated_gpu.launch(kernel, 1, (h, places), GPU)

    lines = [line.strip() for line in code.asm["gpu"].splitlines()]
    assert "barrier" in lines
    assert (np.concatenate((h, places)) == written(kernel, interpret=True)).all()


@bn.jit
def at_its_own_place(x, rows, BLOCK: bn.constexpr):
    r, c = bn.block(0, BLOCK), bn.span(0, BLOCK)
    x[r, c] = x[r, c] * 2 + 1
    rows[r] += 1


def test_threads_whose_elements_are_their_own_wait_for_none():
    x, rows = np.ones((64, 9), np.float32), np.zeros(64)

    code = emulated_gpu.launch(at_its_own_place, 1, (x, rows, 64), GPU)

    assert "barrier" not in code.asm["gpu"]
    assert (x == 3).all() and (rows == 1).all()


def test_a_sum_in_place_counts_an_index_once_as_in_numpy():
    h, places = np.zeros(8), np.repeat(np.arange(8, dtype=np.int32), 8)

    in_place[1](h, places)

    assert h.tolist() == [1] * 8


@bn.jit
def at_elements_of_a_step(h, step):
    i = bn.arange(0, 64) * step
    h[i] = h[i] * 2 + 1


@bn.jit
def at_pairs_in_rows_of_a_step(h, step):
    i = bn.arange(0, 8)[:, None] * step + bn.arange(0, 16) * 2
    even, odd = h[i], h[i + 1]
    h[i] = even + odd * 2
    h[i + 1] = even - odd


OF_A_STEP = (at_elements_of_a_step, at_pairs_in_rows_of_a_step)


@pytest.mark.parametrize("step", (0, 2, 5))
@pytest.mark.parametrize("kernel", OF_A_STEP, ids=lambda kernel: kernel.signature.kernel)
def test_rows_whose_step_is_an_argument_may_overlap(kernel, step):
    natively, interpreted, emulated = np.random.default_rng(step).random((1, 512)).repeat(3, 0)

    kernel[1](natively, step)
    kernel[1](interpreted, step, interpret=True)
    emulated_gpu.launch(kernel, 1, (emulated, step), GPU)

    assert (natively == interpreted).all() and (emulated == interpreted).all()


@bn.jit
def at_sums_of_indices(x):
    r, c = bn.arange(0, 4)[:, None, None] + bn.arange(0, 4)[:, None], bn.arange(0, 8)
    x[r, c] = x[r, c] * 2 + 1


@bn.jit
def at_the_diagonal(x):
    i = bn.arange(0, 64)
    x[i, i] = x[i, i] * 2 + 1


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("kernel", (at_sums_of_indices, at_the_diagonal),
                         ids=lambda kernel: kernel.signature.kernel)
def test_rows_of_an_array_that_are_named_twice_are_read_first(kernel, order):
    natively, interpreted, emulated = (
        np.random.default_rng(8).random((64, 64)).copy(order) for _ in range(3))

    kernel[1](natively)
    kernel[1](interpreted, interpret=True)
    code = emulated_gpu.launch(kernel, 1, (emulated,), GPU)

    assert (natively == interpreted).all() and (emulated == interpreted).all()
    assert ("barrier" in code.asm["gpu"]) == (kernel is at_sums_of_indices)
