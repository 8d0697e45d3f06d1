"""The nearest key of every query: a kernel of numba-cuda that calls a product and a sum of a block.

Tensor cores multiply tiles into shared memory, threads of ordinary CUDA code search them.
"""

import numpy as np
from numba import cuda, float32, int32
from numba.cuda.typing.typeof import typeof

import blocknumba as bn
from array_libraries import ArrayLibrary, run
from blocknumba.emulator import Module

TILE, DEPTH = 64, 32


@bn.jit
def score(queries, keys, scores, TILE: bn.constexpr, DEPTH: bn.constexpr):
    """scores = queries[i] @ keys[j].T of two tiles; i, j are program ids."""
    i, j = bn.block(0, TILE), bn.block(1, TILE)
    total = bn.zeros((TILE, TILE), bn.float32)
    for depth in bn.spans(queries.shape[1], DEPTH):
        total += queries[i, depth] @ bn.trans(keys[j, depth])
    at = bn.arange(TILE)
    scores[at[:, None], at] = total


@bn.jit
def add_up(values, sums, N: bn.constexpr):
    """sums[i] = values.sum(); i is the program id."""
    sums[bn.program_id(0)] = bn.sum(values[bn.span(0, N)], axis=0)


score_tiles = bn.block_function(score, {"TILE": TILE, "DEPTH": DEPTH}, num_warps=4)
sum_of_tile = bn.block_function(add_up, {"N": TILE}, num_warps=4)


@cuda.jit
def nearest(queries, keys, found, sums):
    """found[i]: the key of greatest product with query i; sums[b]: those products, of a block."""
    scores = cuda.shared.array((TILE, TILE), float32)
    greatest = cuda.shared.array(TILE, float32)
    block, thread = cuda.blockIdx.x, cuda.threadIdx.x
    query, best = block * TILE + thread, int32(0)
    if thread < TILE:
        greatest[thread] = -np.inf if query < queries.shape[0] else 0
    for tile in range((keys.shape[0] + TILE - 1) // TILE):
        score_tiles(block, tile, queries, keys, scores)
        if query < queries.shape[0] and thread < TILE:
            for column in range(min(TILE, keys.shape[0] - tile * TILE)):
                if scores[thread, column] > greatest[thread]:
                    greatest[thread] = scores[thread, column]
                    best = tile * TILE + column
    if query < queries.shape[0] and thread < TILE:
        found[query] = best
    sum_of_tile(block, greatest, sums)


def launch(queries, keys, found, sums) -> None:
    """Run the kernel on arrays of any library: on the GPU, NumPy's without one in the emulator."""
    blocks = bn.cdiv(len(queries), TILE)
    if cuda.is_available():
        nearest[blocks, score_tiles.threads](queries, keys, found, sums)
        return
    arrays = queries, keys, found, sums
    ptx, _ = cuda.compile_ptx(nearest.py_func, tuple(map(typeof, arrays)), cc=(9, 0, "a"))
    module = Module.parse(ptx)
    module.launch(module.kernels[0], blocks, score_tiles.threads, [
        part for a in arrays for part in (0, 0, a.size, a.itemsize, a, *a.shape, *a.strides)])


def check(library: ArrayLibrary) -> None:
    """The keys are those that NumPy finds; whole numbers, so that the order cannot matter."""
    random = np.random.default_rng(0)
    queries = random.integers(-8, 9, (100, 72)).astype(np.float16)
    keys = random.integers(-8, 9, (150, 72)).astype(np.float16)
    given = [library.array(array) for array in (
        queries, keys, np.full(100, -1, np.int32), np.full(2, np.nan, np.float32))]
    launch(*given)
    products = queries.astype(np.float32) @ keys.astype(np.float32).T
    np.testing.assert_array_equal(library.numpy(given[2]), products.argmax(axis=1))
    greatest = products.max(axis=1)
    sums = [greatest[:TILE].sum(), greatest[TILE:].sum()]
    np.testing.assert_array_equal(library.numpy(given[3]), sums)


if __name__ == "__main__":
    run(check)
