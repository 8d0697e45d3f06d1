"""Block functions whose products come through TMA, by tensor maps that they make themselves."""

import re

import ml_dtypes
import numpy as np
import pytest
from numba_callers import EMULATED, GPUS, Machine, fields

import blocknumba as bn
from blocknumba.emulator import AccessError, GlobalMemory, Module

cuda = pytest.importorskip("numba.cuda")
from numba import float32  # noqa: E402

FRESH = np.random.default_rng()
HOPPER = Machine(EMULATED)


HOPPERS = (pytest.param(HOPPER, id="ir"),
           pytest.param(Machine(EMULATED, link="ltoir"), id="ltoir"))


@pytest.fixture(params=HOPPERS)
def emulated(request) -> Machine:
    """An emulated Hopper."""
    return request.param


@pytest.fixture(params=[*HOPPERS, *(
    pytest.param(gpu, marks=pytest.mark.gpu(emulated="emulated"), id=f"gpu-{gpu.link}")
    for gpu in GPUS)])
def machine(request) -> Machine:
    """An emulated Hopper, and the GPU where there is one."""
    return request.param


@bn.jit
def product(a, b, c, ROWS: bn.constexpr, COLUMNS: bn.constexpr, DEPTH: bn.constexpr):
    rows, columns = bn.block(0, ROWS), bn.block(1, COLUMNS)
    total = bn.zeros((ROWS, COLUMNS), bn.float32)
    for depth in bn.spans(a.shape[1], DEPTH):
        total += a[rows, depth] @ b[depth, columns]
    c[rows, columns] = total


@bn.jit
def row_sums(x, sums, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    rows = bn.block(0, ROWS)
    sums[rows] = bn.sum(x[rows, bn.span(0, COLUMNS)], axis=1)


def multiplying(rows=64, columns=64, depth=64, num_warps=4, kib=None, **options):
    """A block function."""
    return bn.block_function(
        product, {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}, num_warps=num_warps,
        shared_bytes=None if kib is None else kib * 1024, **options)


def caller_of(multiply):
    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)
    return blocks


def matrices(m, n, k, dtype=np.float16, out=np.float32):
    """a and b of small integers, whose product is exact, and c of numbers that are not."""
    a, b = (FRESH.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    return a, b, np.full((m, n), 77, out)


def run(machine, multiply, a, b, c, grid, kib=0):
    return machine.run(caller_of(multiply), grid, multiply.threads, a, b, c,
                       shared_bytes=kib * 1024)


def fetches(report) -> int:
    """Boxes that warps fetched."""
    return sum(count for opcode, count in report.by_opcode.items()
               if opcode.startswith("cp.async.bulk.tensor"))


@pytest.mark.parametrize("k, stages", [(8, 4), (64, 1), (328, 3)])
def test_any_number_of_iterations_through_rings_of_any_size(machine, k, stages):
    a, b, c = matrices(100, 136, k)
    multiply = multiplying(kib=66, num_stages=stages, link=machine.link)

    report = run(machine, multiply, a, b, c, (2, 3), 66)

    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert report is None or fetches(report) == 6 * 2 * -(-k // 64)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
def test_two_warpgroups_and_other_elements(dtype):
    a, b, c = matrices(200, 80, 144, dtype)

    report = run(HOPPER, multiplying(128, 64, 32, num_warps=8, kib=66), a, b, c, (2, 2), 66)

    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert bool(fetches(report)) is (dtype != np.float32)  # whose products are exact: by threads


def test_more_blocks_than_slots_for_maps_take_turns_and_give_them_back():
    a, b, c = matrices(64 * 40, 16, 16)
    multiply = multiplying(columns=16, depth=16)
    module = Module.parse(HOPPER.ptx(caller_of(multiply), (a, b, c)))

    module.launch(module.kernels[0], (40, 1), multiply.threads,
                  [each for array in (a, b, c) for each in fields(array)], resident_blocks=40)

    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    slots, = (contents for variable, contents in module.globals.items()
              if variable.name.endswith("_slots"))
    assert not slots.any()


def test_calls_in_a_loop_and_of_two_functions_share_nothing(machine):
    multiply = multiplying(kib=50, link=machine.link)
    add = bn.block_function(row_sums, {"ROWS": 64, "COLUMNS": 128}, num_warps=4, link=machine.link)

    def blocks(a, b, c, sums):
        tile = cuda.blockIdx.x
        while tile < (c.shape[0] + 63) // 64:
            for column in range((c.shape[1] + 63) // 64):
                multiply(tile, column, a, b, c)
            add(tile, c, sums)
            tile += cuda.gridDim.x
    a, b, c = matrices(300, 128, 80)
    sums = np.full(300, 77, np.float32)

    machine.run(blocks, 2, multiply.threads, a, b, c, sums, shared_bytes=50 * 1024)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c, exact)
    np.testing.assert_array_equal(sums, exact.sum(1))


def test_what_the_threads_of_the_caller_wrote_before_is_fetched(machine):
    multiply = multiplying(kib=50, link=machine.link)

    def blocks(source, a, b, c):
        for i in range(cuda.threadIdx.x, a.size, cuda.blockDim.x):
            a[i // a.shape[1], i % a.shape[1]] = source[i // a.shape[1], i % a.shape[1]]
        multiply(0, 0, a, b, c)
        for i in range(cuda.threadIdx.x, c.size, cuda.blockDim.x):
            c[i // c.shape[1], i % c.shape[1]] += 1
    source, b, c = matrices(64, 64, 64)
    expected = source.astype(np.float64) @ b.astype(np.float64) + 1

    machine.run(blocks, 1, multiply.threads, source, np.zeros_like(source), b, c,
                shared_bytes=50 * 1024)

    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("arrays", ["any", "global"])
@pytest.mark.parametrize("shape", ["overlapping", "empty", "gaps"])
def test_what_no_map_describes_is_copied_by_threads(shape, arrays):
    if shape == "gaps" and arrays == "global":
        pytest.skip("such arrays are not promised")
    a, b, c = matrices(64, 64, 0 if shape == "empty" else 64, out=np.float16)
    if shape == "overlapping":
        a = c  # read, then written
        a[...] = FRESH.integers(-2, 3, a.shape)
    if shape == "gaps":
        a = np.repeat(a, 2, 1)[:, ::2]
    expected = a.astype(np.float64) @ b.astype(np.float64)

    report = run(HOPPER, multiplying(kib=50, arrays=arrays), a, b, c, (1, 1), 50)

    np.testing.assert_array_equal(c, expected.astype(np.float16))
    assert fetches(report) == 0


def test_rings_leave_static_shared_memory_to_the_caller():
    multiply = multiplying(depth=32)

    def doubled(a, b, c):
        own = cuda.shared.array((64, 64), float32)
        for i in range(cuda.threadIdx.x, c.size, cuda.blockDim.x):
            own[i // 64, i % 64] = c[i // 64, i % 64]
        multiply(0, 0, a, b, c)
        for i in range(cuda.threadIdx.x, c.size, cuda.blockDim.x):
            c[i // 64, i % 64] += own[i // 64, i % 64]
    a, b, c = matrices(64, 64, 200)

    report = HOPPER.run(doubled, 1, multiply.threads, a, b, c)

    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64) + 77)
    assert fetches(report) > 0


def test_neighbours_in_one_allocation_are_apart():
    whole = np.zeros((3, 64, 64), np.float16)
    a, b, c = whole
    a[...], b[...] = FRESH.integers(-2, 3, (2, 64, 64))
    expected = a.astype(np.float64) @ b.astype(np.float64)

    report = run(HOPPER, multiplying(kib=50), a, b, c, (1, 1), 50)

    np.testing.assert_array_equal(c, expected.astype(np.float16))
    assert fetches(report) == 2


def test_maps_are_made_once_for_blocks_that_follow_each_other_and_anew_for_other_arrays():
    multiply = multiplying(columns=16, depth=16)
    parts = [matrices(64 * 3, 16, 16) for _ in range(2)]
    module = Module.parse(HOPPER.ptx(caller_of(multiply), parts[0]))
    memory, made = GlobalMemory(), []

    for blocks, (a, b, c) in ((1, parts[0]), (3, parts[1]), (3, parts[1])):
        c[...] = 77
        report = module.launch(module.kernels[0], (blocks, 1), multiply.threads, [
            each for array in (a, b, c) for each in fields(array)], memory=memory,
            resident_blocks=1)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(c[:64 * blocks], exact[:64 * blocks])
        made.append(sum(count for opcode, count in report.by_opcode.items()
                        if "cp_fenceproxy" in opcode))

    assert made[0] == made[1] > 0 and made[2] == 0


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
def test_targets_that_cannot_make_maps_do_without(capability):
    text = Machine(EMULATED, capability).ptx(caller_of(multiplying()), matrices(64, 64, 64))

    assert "tensormap" not in text


@pytest.mark.parametrize("left_out", [
    r"fence\.proxy\.tensormap[^;]*;", r"@p tensormap\.replace\.tile\.rank[^;]*;",
    r"@p tensormap\.replace\.tile\.global_dim[^;]*1, [^;]*;"])
def test_the_emulator_refuses_maps_without_a_fence_or_a_field(left_out):
    a, b, c = matrices(64, 64, 64)
    multiply = multiplying()
    module = Module.parse(re.sub(left_out, "", HOPPER.ptx(caller_of(multiply), (a, b, c))))

    with pytest.raises(AccessError, match="no tensor map at"):
        module.launch(module.kernels[0], (1, 1), multiply.threads,
                      [each for array in (a, b, c) for each in fields(array)])
