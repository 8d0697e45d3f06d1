"""Block functions in kernels of numba-cuda: the whole kernel's PTX on the emulator, and the GPU."""

import re
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from numba_callers import EMULATED, GPUS, MACHINES, Machine

import blocknumba as bn
from blocknumba.emulator.errors import KernelAssertionError

cuda = pytest.importorskip("numba.cuda")
from numba import float32  # noqa: E402

FRESH = np.random.default_rng()


@pytest.fixture(params=MACHINES)
def emulated(request) -> Machine:
    """Emulated GPUs; the whole kernel is one PTX."""
    return request.param


@pytest.fixture(params=[*MACHINES, *(
    pytest.param(gpu, marks=pytest.mark.gpu(emulated="emulated"), id=f"gpu-{gpu.link}")
    for gpu in GPUS)])
def machine(request) -> Machine:
    """Those, and the GPU where there is one."""
    return request.param


def poisoned(shape, dtype) -> np.ndarray:
    return np.full(shape, np.nan if np.dtype(dtype).kind != "i" else -77, dtype)


def softmax_of(x) -> np.ndarray:
    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


@bn.jit
def softmax(x, y, BLOCK: bn.constexpr):
    row, columns = bn.program_id(0), bn.arange(BLOCK)
    y[row, columns] = bn.softmax(x[row, columns], 0, where=columns < x.shape[1])


@bn.jit
def product(a, b, c, DEPTH: bn.constexpr):
    rows, columns = bn.block(0, 64), bn.block(1, 64)
    total = bn.zeros((64, 64), bn.float32)
    for start in bn.range(0, a.shape[1], DEPTH):
        depth = bn.span(start, DEPTH)
        total += a[rows, depth] @ b[depth, columns]
    c[rows, columns] = total


@bn.jit
def total_of(x, out, BLOCK: bn.constexpr):
    total = bn.zeros((BLOCK,), x.dtype)
    for start in bn.range(0, x.shape[0], BLOCK):
        total += x[bn.span(start, BLOCK)]
    out[0] = bn.sum(total)


# arrays in global memory ------------------------------------------------------------------------
@pytest.mark.parametrize("columns", [1000, 999, 3])
def test_rows_of_a_matrix_one_call_after_the_other(machine, columns):
    row_softmax = bn.block_function(softmax, {"BLOCK": 1024}, num_warps=4, link=machine.link)

    def rows(x, y):
        row = cuda.blockIdx.x
        while row < x.shape[0]:
            row_softmax(row, x, y)
            row += cuda.gridDim.x

    x = FRESH.standard_normal((5, columns)).astype(np.float32)
    y = poisoned(x.shape, np.float32)

    machine.run(rows, 2, row_softmax.threads, x, y)

    np.testing.assert_allclose(y, softmax_of(x), rtol=2e-6)


@pytest.mark.parametrize("dtype, m, n, k", [
    (np.float16, 128, 128, 128), (np.float16, 100, 90, 70), (np.float16, 65, 72, 33),
    (ml_dtypes.bfloat16, 128, 128, 128), (np.float32, 100, 90, 70)])
def test_products_of_tiles(machine, dtype, m, n, k):
    multiply = bn.block_function(product, {"DEPTH": 32}, num_warps=4, link=machine.link)

    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)

    a, b = FRESH.standard_normal((m, k)).astype(dtype), FRESH.standard_normal((k, n)).astype(dtype)
    c = poisoned((m, n), np.float32)

    machine.run(blocks, (2, 2), multiply.threads, a, b, c)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(c - exact) <= 2e-6 * bound).all()


VIEWS = {"whole": lambda x: x, "unaligned": lambda x: x[:, 1:], "columns": lambda x: x.T,
         "steps": lambda x: x[::2, ::3], "backwards": lambda x: x[::-1, ::-1],
         "repeated": lambda x: np.broadcast_to(x[:1], x.shape)}


@bn.jit
def copy(x, y, R: bn.constexpr, C: bn.constexpr):
    rows, columns = bn.span(0, R), bn.span(0, C)
    y[rows, columns] = x[rows, columns]


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("view", VIEWS)
def test_arrays_of_any_strides_and_alignment(view, dtype):
    copied = bn.block_function(copy, {"R": 64, "C": 64}, num_warps=2)

    def kernel(x, y):
        copied(x, y)

    x = VIEWS[view](FRESH.integers(0, 2 if dtype == np.bool_ else 100, (48, 48)).astype(dtype))
    y = np.zeros(x.shape, dtype)

    Machine(EMULATED).run(kernel, 1, copied.threads, x, y)

    assert (x == y).all()


def test_rows_at_multiples_of_16_bytes_are_read_16_bytes_at_a_time():
    copied = bn.block_function(copy, {"R": 64, "C": 64}, num_warps=4)

    def kernel(x, y):
        copied(x, y)

    def requests(x):
        y = np.zeros((64, 64), np.float16)
        report = Machine(EMULATED).run(kernel, 1, copied.threads, x, y)
        assert (x == y).all()
        return report.total.requests

    memory = np.arange(64 * 80).astype(np.float16)
    whole, view = memory[:4096].reshape(64, 64), memory.reshape(64, 80)[:, 8:72]
    shifted = memory[1:4097].reshape(64, 64)

    assert requests(whole) == requests(view) == 2 * 64 * 64 // 8 // 32
    assert requests(shifted) == 2 * 64 * 64 // 32


def test_operands_of_products_in_global_memory_are_copied_asynchronously():
    multiply = bn.block_function(product, {"DEPTH": 32}, num_warps=4)

    def kernel(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)

    a, c = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32)

    text = Machine(EMULATED).ptx(kernel, (a, a, c))

    assert "cp.async.cg.shared.global" in text and "wgmma" in text


# arrays in shared memory ------------------------------------------------------------------------
def test_arrays_in_shared_memory_are_read_and_written_in_place(machine):
    row_softmax = bn.block_function(softmax, {"BLOCK": 256}, num_warps=2, link=machine.link)

    def kernel(x, y):
        row = cuda.shared.array((1, 256), float32)
        for column in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
            row[0, column] = x[cuda.blockIdx.x, column]
        row_softmax(0, row, row)
        for column in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
            y[cuda.blockIdx.x, column] = row[0, column]

    x = FRESH.standard_normal((3, 256)).astype(np.float32)
    y = poisoned(x.shape, np.float32)

    machine.run(kernel, 3, row_softmax.threads, x, y)

    np.testing.assert_allclose(y, softmax_of(x), rtol=2e-6)


def test_a_product_of_arrays_in_shared_memory(machine):
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, link=machine.link)

    def kernel(a, b, c):
        left = cuda.shared.array((64, 64), np.float16)
        for index in range(cuda.threadIdx.x, 64 * 64, cuda.blockDim.x):
            left[index // 64, index % 64] = a[index // 64, index % 64]
        multiply(0, 0, left, b, c)

    a, b = FRESH.standard_normal((2, 64, 64)).astype(np.float16)
    c = poisoned((64, 64), np.float32)

    machine.run(kernel, 1, multiply.threads, a, b, c)

    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=2e-4)


def test_all_threads_see_what_a_call_wrote_and_a_call_what_all_threads_wrote(machine):
    add_up = bn.block_function(total_of, {"BLOCK": 128}, num_warps=4, link=machine.link)

    def kernel(x, y):
        terms, total = cuda.shared.array(128, np.int32), cuda.shared.array(1, np.int32)
        at = cuda.grid(1)
        for repeat in range(3):
            terms[127 - cuda.threadIdx.x] = x[at] + repeat
            add_up(terms, total)
            y[repeat, at] = total[0]

    x = FRESH.integers(-1000, 1000, 256).astype(np.int32)
    y = poisoned((3, 256), np.int32)

    machine.run(kernel, 2, add_up.threads, x, y)

    sums = x.reshape(2, 128).sum(1)
    assert (y == np.repeat(sums, 128) + 128 * np.arange(3)[:, None]).all()


@bn.jit
def count(x, counts, BLOCK: bn.constexpr):
    at = bn.arange(BLOCK)
    bn.atomic_add(counts.at[x[at]], 1, mask=at < x.shape[0])


def test_atomics_on_global_and_shared_memory(machine):
    histogram = bn.block_function(count, {"BLOCK": 256}, num_warps=1, link=machine.link)

    def kernel(x, counts, shared_counts):
        own = cuda.shared.array(8, np.int32)
        if cuda.threadIdx.x < 8:
            own[cuda.threadIdx.x] = 0
        histogram(x, counts)
        histogram(x, own)
        if cuda.threadIdx.x < 8:
            shared_counts[cuda.blockIdx.x, cuda.threadIdx.x] = own[cuda.threadIdx.x]

    x = FRESH.integers(0, 8, 200).astype(np.int32)
    counts, shared_counts = np.zeros(8, np.int32), poisoned((3, 8), np.int32)

    machine.run(kernel, 3, histogram.threads, x, counts, shared_counts)

    expected = np.bincount(x, minlength=8)
    assert (counts == 3 * expected).all() and (shared_counts == expected).all()


# numbers ------------------------------------------------------------------------------------------
NUMBERS = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64,
           np.float32, np.float64]


@bn.jit
def fill(x, value, BLOCK: bn.constexpr):
    x[bn.span(0, BLOCK)] = value


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.__name__)
def test_numbers_of_every_dtype_arrive(dtype):
    filled = bn.block_function(fill, {"BLOCK": 32}, num_warps=1)

    def kernel(x, values):
        filled(x, values[1])

    info = np.finfo if np.dtype(dtype).kind == "f" else np.iinfo
    value = True if dtype == np.bool_ else info(dtype).max - dtype(5)
    x, values = np.zeros(20, dtype), np.array([0, value], dtype)

    Machine(EMULATED).run(kernel, 1, 32, x, values)

    assert (x == value).all()


def test_a_float16_number_arrives(machine):
    filled = bn.block_function(fill, {"BLOCK": 32}, num_warps=1, link=machine.link)

    def kernel(x, values):
        filled(x, values[1])

    x, values = np.zeros(20, np.float16), np.array([0, -1.75], np.float16)

    machine.run(kernel, 1, 32, x, values)

    assert (x == np.float16(-1.75)).all()


def test_arguments_by_name_and_constants_for_arguments():
    filled = bn.block_function(fill, {"BLOCK": 32, "value": 7}, num_warps=1)
    row_softmax = bn.block_function(softmax, {"BLOCK": 32}, num_warps=1)

    def kernel(x, y, z):
        filled(x=z)
        row_softmax(0, y=y, x=x)

    x = FRESH.standard_normal((1, 20)).astype(np.float32)
    y, z = poisoned((1, 20), np.float32), np.zeros(20, np.int32)

    Machine(EMULATED).run(kernel, 1, 32, x, y, z)

    np.testing.assert_allclose(y, softmax_of(x), rtol=2e-6)
    assert (z == 7).all()


@bn.jit
def multiply_add(x, y, z, BLOCK: bn.constexpr):
    at = bn.arange(BLOCK)
    z[at] = x[at] * y[at] + z[at]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_and_a_sum_are_rounded_twice_as_in_numpy(machine, dtype):
    """The emulator rounds as PTX says; ptxas may contract a mul that does not say .rn."""
    function = bn.block_function(multiply_add, {"BLOCK": 1024}, num_warps=4, link=machine.link)

    def kernel(x, y, z):
        function(x, y, z)

    x, y, z = FRESH.standard_normal((3, 1024)).astype(dtype)
    expected = x * y + z

    machine.run(kernel, 1, function.threads, x, y, z)

    assert (z == expected).all()
    if machine.kind == EMULATED:
        text = machine.ptx(kernel, (x, y, z))
        assert "mul.rn.f" in text and not re.search(r"\b(fma\.rn|mul)\.f(32|64)", text)


@bn.jit
def ids(out):
    out[bn.program_id(2), bn.program_id(1), bn.program_id(0)] = (
        bn.program_id(0) + 10 * bn.program_id(1) + 100 * bn.program_id(2))


def test_program_ids_are_what_the_call_says(machine):
    marked = bn.block_function(ids, num_warps=1, link=machine.link)

    def kernel(out):
        for number in range(24):
            marked(number % 4, number // 4 % 3, number // 12, out)

    out = poisoned((2, 3, 4), np.int32)

    machine.run(kernel, 1, 32, out)

    z, y, x = np.indices(out.shape)
    assert (out == x + 10 * y + 100 * z).all()


def test_a_device_function_may_call_one_too_and_both_share_the_code():
    filled = bn.block_function(fill, {"BLOCK": 32}, num_warps=1)

    @cuda.jit(device=True)
    def twice(x):
        filled(x, 1)
        filled(x[:3], 2)

    def kernel(x, y):
        twice(x)
        filled(y, 3)

    x, y = np.zeros(9, np.int64), np.zeros(9, np.int64)

    device = SimpleNamespace(compute_capability=(9, 0))
    with mock.patch("numba.cuda.dispatcher.get_current_device", lambda: device):
        Machine(EMULATED, (9, 0)).run(kernel, 1, 32, x, y)

    assert x.tolist() == [2] * 3 + [1] * 6 and (y == 3).all()


# debug --------------------------------------------------------------------------------------------
@bn.jit
def gather(x, numbers, y, BLOCK: bn.constexpr):
    at = bn.arange(BLOCK)
    y[at] = x[numbers[at]]


def test_debug_finds_indices_outside_an_array():
    gathered = bn.block_function(gather, {"BLOCK": 32}, num_warps=1, debug=True)

    def kernel(x, numbers, y):
        gathered(x, numbers, y)

    x, y = np.zeros(10, np.float32), np.zeros(32, np.float32)
    numbers = np.full(32, 3)
    Machine(EMULATED).run(kernel, 1, 32, x, numbers, y)
    numbers[5] = 10

    with pytest.raises(KernelAssertionError, match="index out of range of axis 0 of x"):
        Machine(EMULATED).run(kernel, 1, 32, x, numbers, y)


@bn.jit
def show(x):
    bn.device_print("x", x[bn.program_id(0)])


def test_prints_tell_the_program_ids_of_the_call(capfd):
    shown = bn.block_function(show, num_warps=1)

    def kernel(x):
        shown(2, x)

    Machine(EMULATED).run(kernel, 1, 32, np.array([10, 11, 12], np.int32))

    assert capfd.readouterr().out == "pid (2, 0, 0) idx () x: 12\n"


# scalar functions ---------------------------------------------------------------------------------
def collatz(number):
    """How often halving and tripling reach 1."""
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


@bn.jit
def steps_to_one(x, y, BLOCK: bn.constexpr):
    at = bn.span(0, BLOCK)
    y[at] = bn.map(collatz, x[at], mask=bn.arange(BLOCK) < x.shape[0])


def test_scalar_functions_come_along_once(emulated):
    first, second = (bn.block_function(steps_to_one, {"BLOCK": block}, num_warps=1,
                                       link=emulated.link) for block in (64, 32))

    def kernel(x, y, z):
        first(x, y)
        second(y, z)

    x = FRESH.integers(3, 1000, 50)  # which take at least one step
    y, z = np.zeros((2, 50), np.int64)

    emulated.run(kernel, 1, 32, x, y, z)

    assert y.tolist() == [collatz(int(number)) for number in x]
    assert z[:32].tolist() == [collatz(int(number)) for number in y[:32]]


class Side(NamedTuple):
    values: object
    weight: object


@bn.jit
def weighted(sides, shift, out, B: bn.constexpr):
    row, at = bn.program_id(0), bn.span(0, B)
    total = sides[0].values[row, at] * sides[0].weight + sides[1].values[row, at] * sides[1].weight
    out[row, at] = total + shift[0] + shift[1][0]


def test_tuples_and_named_tuples_are_arguments(machine):
    add = bn.block_function(weighted, {"B": 128}, num_warps=4, link=machine.link)

    def rows(x, y, w, out):
        add(cuda.blockIdx.x, (Side(x, 2), Side(y, w)), (1.5, (3,)), out)
    x, y = FRESH.integers(-9, 9, (2, 3, 100)).astype(np.float64)
    out = np.full((3, 100), np.nan)

    machine.run(rows, 3, add.threads, x, y, np.float64(0.5), out)

    np.testing.assert_array_equal(out, 2 * x + 0.5 * y + 4.5)


@bn.jit
def softmax_of_row(x, y, B: bn.constexpr):
    row, columns = bn.program_id(0), bn.arange(B)
    y[row, columns] = bn.softmax(x[row, columns], 0, where=columns < x.shape[1])


def test_rows_of_any_alignment_are_read_by_neighbouring_lanes(emulated):
    softmax = bn.block_function(softmax_of_row, {"B": 1024}, num_warps=4, link=emulated.link)

    def rows(x, y):
        softmax(cuda.blockIdx.x, x, y)
    x, y = FRESH.standard_normal((8, 1001), np.float32), poisoned((8, 1001), np.float32)

    report = emulated.run(rows, 8, softmax.threads, x, y)

    np.testing.assert_allclose(y, softmax_of(x), rtol=1e-5)
    assert report.sectors_per_request < 5  # 4 hold the elements of a warp, where they are aligned
