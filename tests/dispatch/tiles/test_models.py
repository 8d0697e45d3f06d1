"""The work of candidates, scaled, is that of their own tile IR; the models rank as is known."""

from __future__ import annotations

import math

import attention
import matmul as example
import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.dispatch.compile.pipeline import tile_function
from blocknumba.dispatch.launch.call import read_arguments, resolve_grid
from blocknumba.dispatch.launch.specialize import arguments_of
from blocknumba.dispatch.tiles import cpu_model, gpu_model
from blocknumba.dispatch.tiles.choice import (
    MAX_EXTENTS, bucket, candidates, coarse_candidates, ranked,
)
from blocknumba.dispatch.tiles.chooser import _numbers
from blocknumba.dispatch.tiles.scaling import probes, scaled
from blocknumba.gpu_layout.cost_model import default_num_warps
from blocknumba.gpu_layout.product_warps import warps_of_products
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.analysis.work import Work, work_of
from blocknumba.tile_ir.passes.pipeline import optimise

HOPPER = Target.parse("sm_90a")
H100 = gpu_model.Machine(HOPPER, 132)
SUMS = {np.int8: bn.int32, np.float64: bn.float64}


@bn.jit
def matmul(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


@bn.jit
def triangle(x, out, ROWS: bn.constexpr, BLOCK: bn.constexpr):
    rows = bn.block(0, ROWS)
    sums = bn.zeros((ROWS, BLOCK))
    for columns in bn.spans(rows.stop, BLOCK):
        sums += bn.exp(x[rows, columns])
    out[rows] = bn.sum(sums, axis=1)


@bn.jit
def transpose(x, out, BM: bn.constexpr, BN: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    out[n, m] = x[m, n].T


class Problem:
    """A kernel with arguments and a grid, typed for an H100."""

    def __init__(self, kernel, grid, names, *arguments, **constants):
        self.kernel, self.grid, self.names, self.arguments = kernel, grid, names, arguments
        self.constants = constants

    def work(self, extents) -> tuple[Work, int]:
        """Of a program, from its own tile IR; and the number of programs."""
        fn, read, grid = self.typed(extents)
        return work_of(fn, _numbers(read), grid), math.prod(grid)

    def typed(self, extents):
        """The tile IR, the arguments, and the grid."""
        kernel, signature = self.kernel, self.kernel.signature
        bound, _ = signature.bind(
            self.arguments, self.constants | dict(zip(self.names, map(int, extents))))
        read = read_arguments(signature, bound)
        specialization, _ = kernel.specialize(arguments_of(signature, read.infos), read.constants,
                                              kernel.options, HOPPER, True)
        fn = tile_function(kernel.python_function, specialization, read.constants, {})
        return fn, read, resolve_grid(self.grid, signature, bound, kernel.options)

    def best(self) -> dict[str, int]:
        """What the model of a GPU takes."""
        found = candidates(len(self.names))
        work = scaled([self.work(extents)[0] for extents in probes(len(self.names))], found)
        programs = np.array([math.prod(resolve_grid(
            self.grid, self.kernel.signature,
            dict(zip(self.names, map(int, row))), self.kernel.options)) for row in found], float)
        sizes = {name: array.nbytes for name, array in zip(
            self.kernel.signature.names, self.arguments)}
        return ranked(self.names, found,
                      gpu_model.cycles(work, programs, H100, sizes)).constants()


def product(M: int, N: int, K: int) -> Problem:
    arrays = (np.empty(shape, np.float16) for shape in ((M, K), (K, N), (M, N)))
    return Problem(matmul, lambda a: (bn.cdiv(M, a["BM"]), bn.cdiv(N, a["BN"])),
                   ("BM", "BN", "BK"), *arrays)


def in_turns(M: int, N: int, K: int) -> Problem:
    """A product whose programs take tiles in turn."""
    x, w, out = (np.empty(shape, np.float16) for shape in ((M, K), (N, K), (M, N)))
    return Problem(example.matmul, lambda a: min(132, bn.cdiv(M, a["BM"]) * bn.cdiv(N, a["BN"])),
                   ("BM", "BN", "BK"), x, w.T, out)


def turned_in_turns(M: int, N: int, K: int) -> Problem:
    """The transpose of a product of few rows, whose programs take tiles in turn."""
    x, w, out = (np.empty(shape, np.float16) for shape in ((M, K), (N, K), (M, N)))
    return Problem(example.matmul_small_m,
                   lambda a: min(132, bn.cdiv(N, a["BM"]) * bn.cdiv(M, a["BN"])),
                   ("BM", "BN", "BK"), x, w.T, out)


def rows(size: int) -> Problem:
    return Problem(triangle, lambda a: bn.cdiv(size, a["ROWS"]), ("ROWS", "BLOCK"),
                   np.empty((size, size), np.float32), np.empty(size, np.float32))


@pytest.mark.parametrize("problem, extents", [
    (product(1000, 1500, 777), (64, 128, 32)), (product(1000, 1500, 777), (16, 16, 512)),
    (product(5, 4096, 100), (128, 256, 64)), (in_turns(64, 8192, 8192), (128, 32, 128)),
    (in_turns(48, 8192, 8192), (32, 64, 128)), (turned_in_turns(32, 8192, 8192), (64, 16, 256)),
    (in_turns(16, 8192, 8192), (32, 16, 128)), (in_turns(4096, 4096, 4096), (128, 256, 64))])
def test_scaled_work_is_that_of_its_own_tile_ir(problem, extents):
    work = scaled([problem.work(probe)[0] for probe in probes(3)], np.array([extents]))
    own, _ = problem.work(extents)
    for one, other in zip(work.tasks, own.tasks, strict=True):
        assert (one.kind, one.array, one.loop) == (other.kind, other.array, other.loop)
        np.testing.assert_allclose([*one.shape], np.reshape(other.shape, (-1, 1)))
        np.testing.assert_allclose(work.times(one), own.times(other))
        if one.kind in ("load", "store"):
            np.testing.assert_allclose(one.inside, other.inside)


def attention_problem(length: int, depth: int) -> Problem:
    arrays = (np.empty((1, 2, length, depth), np.float16) for _ in range(4))
    return Problem(attention.attention, lambda a: (bn.cdiv(length, a["BM"]), 2, 1), ("BM", "BN"),
                   *arrays, 1.0, D=depth, CAUSAL=False)


@pytest.mark.parametrize("problem, chosen", [
    (product(1000, 1500, 777), {(64, 128, 32): 4, (128, 128, 32): 4, (128, 256, 64): 8,
                                (256, 256, 32): 16, (16, 16, 64): 1}),
    (attention_problem(1024, 128), {(128, 64): 4, (128, 128): 8, (64, 128): 4})],
    ids=["product", "attention"])
def test_the_model_and_the_compiler_take_as_many_warps(problem, chosen):
    first = [problem.work(probe)[0] for probe in probes(len(problem.names))]
    work = scaled(first, np.array(list(chosen)))

    assert [*warps_of_products(work.products, HOPPER.capabilities)] == [*chosen.values()]
    for extents, warps in chosen.items():
        fn, *_ = problem.typed(extents)
        assert default_num_warps(optimise(fn), HOPPER.capabilities) == warps


def test_loops_are_counted_for_programs_all_over_the_grid():
    work, _ = rows(4096).work((16, 64))
    (loop,) = work.loops
    assert 28 <= loop.trips <= 36  # of the first program 1, of the last 64


@bn.jit
def persistent(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    for m, n in bn.persistent(out.shape, (BM, BN)):
        sums = bn.zeros((BM, BN))
        for k in bn.spans(x.shape[1], BK):
            sums += x[m, k] @ w[k, n]
        out[m, n] = sums


@pytest.mark.parametrize("extents", [(256, 32, 128), (64, 128, 64), (16, 512, 1024)])
def test_tiles_beyond_the_array_are_counted_whole(extents):
    problem = Problem(persistent, 132, ("BM", "BN", "BK"), *product(60, 16384, 500).arguments)
    work = scaled([problem.work(probe)[0] for probe in probes(3)], np.array([extents]))
    own, _ = problem.work(extents)
    for one, other in zip(work.of("dot", "store"), own.of("dot", "store"), strict=True):
        np.testing.assert_allclose(work.times(one), own.times(other), rtol=0.3)


def test_work_of_a_product():
    work, programs = product(4096, 2048, 1024).work((128, 256, 64))
    (load_x, load_w), (dot,), (store,) = work.of("load"), work.of("dot"), work.of("store")
    assert programs == 32 * 8
    assert (load_x.shape, load_x.array, load_x.unit) == ((128, 64), "x", 1)
    assert (load_w.shape, load_w.array) == ((64, 256), "w")
    assert dot.shape == (1, 128, 256, 64) and work.times(dot) == 16
    assert store.shape == (128, 256) and work.times(store) == 1


@pytest.mark.parametrize("shape, least", [
    ((4096, 4096, 4096), 128 * 256), ((512, 8192, 1024), 128 * 256), ((1024, 1024, 1024), 64 * 64)])
def test_large_products_get_large_tiles(shape, least):
    best = product(*shape).best()
    assert best["BM"] * best["BN"] >= least
    assert (best["BM"] + best["BN"]) * best["BK"] * 2 * 2 <= HOPPER.shared_bytes_per_block


# measured on an H200 (perf/NOTES.md)
@pytest.mark.parametrize("dtype, precision, size, fastest", [
    (np.float16, "ieee", 4096, {(128, 256, 64)}), (np.float16, "ieee", 8192, {(128, 256, 64)}),
    (np.float16, "ieee", 1024, {(64, 128, 64), (64, 128, 128), (128, 64, 64), (128, 64, 128)}),
    (np.int8, "ieee", 8192, {(128, 256, 128)}),
    (ml_dtypes.float8_e4m3fn, "ieee", 8192, {(128, 256, 128)}),
    (np.float32, "tf32", 4096, {(128, 256, 32)}),
    (np.float32, "tf32x3", 2048, {(128, 128, 16), (128, 128, 32), (128, 128, 64)}),
    (np.float32, "ieee", 4096, {(128, 128, 32), (128, 128, 64)}),
    (np.float64, "ieee", 2048, {(64, 128, 32), (128, 64, 32), (128, 64, 16)})])
def test_the_tiles_that_were_the_fastest_are_chosen(dtype, precision, size, fastest):
    kernel, more = example.matmul, {"SUM": SUMS.get(dtype, bn.float32)}
    if precision != "ieee":
        kernel, more = example.matmul_float32, {"PRECISION": precision}
    arrays = (np.empty((size, size), dtype) for _ in range(3))
    problem = Problem(
        kernel, lambda a: min(132, bn.cdiv(size, a["BM"]) * bn.cdiv(size, a["BN"])),
        ("BM", "BN", "BK"), *arrays, **more)

    assert tuple(problem.best().values()) in fastest


@pytest.mark.parametrize("problem", [
    product(16, 8192, 8192), in_turns(64, 8192, 8192), in_turns(48, 8192, 8192),
    in_turns(64, 4096, 4096)])
def test_products_of_few_rows_get_few_rows(problem):
    assert problem.best()["BM"] <= 64


@pytest.mark.parametrize("M", [17, 32])
def test_one_tile_takes_all_of_few_rows(M):
    assert turned_in_turns(M, 8192, 8192).best()["BN"] == 32


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(0, 5, 6), (5, 0, 6), (5, 6, 0)])
def test_empty_arrays_have_tiles_too(shape):
    assert product(*shape).best()


def test_transposed_tiles_have_long_runs_both_ways():
    x = np.empty((4096, 4096), np.float16)
    best = Problem(transpose, lambda a: (bn.cdiv(4096, a["BM"]), bn.cdiv(4096, a["BN"])),
                   ("BM", "BN"), x, x.copy()).best()
    assert min(best.values()) >= 32 and math.prod(best.values()) <= 32768


def test_the_cpu_has_a_model_of_its_own():
    problem = product(512, 512, 512)
    found = candidates(3)
    work = scaled([problem.work(extents)[0] for extents in probes(3)], found)
    times = cpu_model.nanoseconds(work, np.ones(len(found)), {})
    assert np.isfinite(times).any() and (times > 0).all()


@pytest.mark.parametrize("count", range(1, MAX_EXTENTS + 1))
def test_candidates_are_at_most_500_powers_of_two(count):
    found = candidates(count)
    assert 0 < len(found) <= 500 and (found & found - 1 == 0).all()
    assert len(coarse_candidates(count)) <= 32


def test_buckets_are_an_eighth_of_an_octave_apart():
    assert [bucket(n) for n in (0, 1, 7, 8, 9, 1000, 1024, 1025)] == [
        0, 1, 7, 8, 10, 1024, 1024, 1280]
