"""Matrix products partitioned over the blocks of a cluster: in the emulator, and machine code."""

import re

import ml_dtypes
import numpy as np
import pytest
from cluster_kernels import (
    attention_blocks,
    column_blocks,
    launch,
    persistent_blocks,
    row_blocks,
    separate_blocks,
    uneven_blocks,
)

GENERATOR_SEED = 0


def matrices(m, n, k, dtype=np.float16, b_turned=False):
    """a, b and room for their product."""
    generator = np.random.default_rng(GENERATOR_SEED)
    a = generator.standard_normal((m, k)).astype(dtype)
    b = generator.standard_normal((n, k)).astype(dtype).T
    return a, b if b_turned else np.ascontiguousarray(b), np.full((m, n), np.nan, np.float32)


def product(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def copies_in(compiled):
    """How many copies to shared memory there are in the machine code: to all blocks, to one."""
    found = re.findall(r"UTMALDG\.\w+(\.MULTICAST)?", compiled.asm["sass"])
    return sum(map(bool, found)), found.count("")


def check_code(compiled, blocks):
    """What holds of every kernel with wgmma."""
    assert compiled.machine.cluster == blocks
    assert compiled.stats.spills == 0 and compiled.stats.warnings == ()
    assert "HGMMA" in compiled.asm["sass"]


@pytest.mark.parametrize(("kernel", "blocks", "tile", "num_warps", "shape", "grid"), [
    (row_blocks, 2, (64, 128, 64), 4, (250, 200, 200), (2, 2)),  # a panel by each block
    (row_blocks, 2, (64, 32, 64), 4, (250, 56, 200), (2, 2)),  # half the rows by each
    (row_blocks, 4, (64, 128, 64), 4, (500, 200, 136), (2, 2)),
    (row_blocks, 8, (64, 64, 64), 4, (1000, 104, 72), (2, 2)),
    (row_blocks, 2, (128, 256, 64), 8, (300, 296, 136), (2, 2)),
    (column_blocks, 2, (64, 64, 64), 4, (120, 248, 200), (2, 2)),
    (column_blocks, 4, (128, 64, 64), 8, (250, 504, 136), (2, 2)),
    (persistent_blocks, 2, (64, 64, 64), 4, (500, 200, 136), 2),
    (persistent_blocks, 4, (64, 128, 64), 4, (800, 200, 136), 2),
])
@pytest.mark.parametrize("b_turned", [False, True])
def test_products_are_those_of_numpy(kernel, blocks, tile, num_warps, shape, grid, b_turned):
    a, b, c = matrices(*shape, b_turned=b_turned)
    constants = dict(zip(("BM", "BN", "BK"), tile), BLOCKS=blocks, num_warps=num_warps)

    compiled = launch(kernel, grid, (a, b, c), constants)

    np.testing.assert_allclose(c, product(a, b), atol=1e-4)
    check_code(compiled, blocks)
    to_all, to_one = copies_in(compiled)
    assert to_all and to_one


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("num_stages", [1, 2, None])
@pytest.mark.parametrize("kernel", [row_blocks, persistent_blocks])
def test_no_order_of_warps_is_a_race_or_a_deadlock(kernel, num_stages, seed):
    a, b, c = matrices(250, 104, 264)
    grid = (2, 2) if kernel is row_blocks else (2,)

    launch(kernel, grid, (a, b, c), {"BLOCKS": 2, "BM": 64, "BN": 64, "BK": 64, "num_warps": 4,
                                     "num_stages": num_stages}, seed=seed)

    np.testing.assert_allclose(c, product(a, b), atol=1e-4)


def test_blocks_that_need_nothing_in_common_are_on_their_own():
    a, b, c = matrices(256, 256, 136)

    compiled = launch(separate_blocks, 2, (a, b, c),
                      {"BLOCKS": 2, "BM": 64, "BN": 64, "BK": 64, "num_warps": 4})

    diagonal = np.kron(np.eye(4, dtype=bool), np.ones((64, 64), bool))
    np.testing.assert_allclose(c[diagonal], product(a, b)[diagonal], atol=1e-4)
    check_code(compiled, 2)
    assert copies_in(compiled)[0] == 0
    assert "UCGABAR" not in compiled.asm["sass"]


def test_blocks_that_diverge_are_on_their_own():
    a, b, c = matrices(256, 64, 256)

    compiled = launch(uneven_blocks, (2, 1), (a, b, c),
                      {"BLOCKS": 2, "BM": 64, "BN": 64, "BK": 64, "num_warps": 4})

    for block in range(4):
        rows, columns = slice(64 * block, 64 * (block + 1)), slice(256 - block % 2 * 64)
        np.testing.assert_allclose(c[rows], product(a[rows, columns], b[columns]), atol=1e-4)
    assert copies_in(compiled)[0] == 0


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(("blocks", "rows", "num_warps", "producers"), [
    (2, 64, 4, 0),  # the warps that compute fetch
    (4, 64, 4, 0),
    (2, 128, 8, 1),
])
@pytest.mark.parametrize("num_stages", [None, 1])
def test_chained_products_are_those_of_numpy(blocks, rows, num_warps, producers, num_stages, seed):
    generator = np.random.default_rng(GENERATOR_SEED)
    length = 2 * blocks * rows - 10
    q, k, v = (generator.standard_normal((extent, 64)).astype(np.float16) / 8
               for extent in (length, 300, 300))
    out = np.full((length, 64), np.nan, np.float16)

    compiled = launch(attention_blocks, 2, (q, k, v, out), {
        "BLOCKS": blocks, "BM": rows, "BN": 64, "D": 64, "num_warps": num_warps,
        "num_stages": num_stages}, seed=seed)

    exact = np.maximum(product(q, k.T), 0) @ v.astype(np.float64)
    np.testing.assert_allclose(out, exact, rtol=4e-3, atol=4e-3)
    check_code(compiled, blocks)
    assert compiled.stats.producers == producers
    assert {access.array: access.blocks for access in compiled.stats.accesses} == {
        "q": 1, "k": blocks, "v": blocks, "out": 1}


@pytest.mark.parametrize(("dtype", "depth"), [(np.float32, 32), ("float8_e4m3fn", 128)])
def test_other_dtypes_are_fetched_together_too(dtype, depth):
    dtype = np.dtype(getattr(ml_dtypes, dtype) if isinstance(dtype, str) else dtype)
    generator = np.random.default_rng(GENERATOR_SEED)
    a, b = (generator.integers(-4, 5, (extent, 272)).astype(dtype) for extent in (250, 128))
    b, c = b.T, np.full((250, 128), np.nan, np.float32)

    compiled = launch(row_blocks, (2, 1), (a, b, c),
                      {"BLOCKS": 2, "BM": 64, "BN": 128, "BK": depth, "num_warps": 4})

    np.testing.assert_array_equal(c, product(a, b))
    assert copies_in(compiled)[0]


@pytest.mark.parametrize(("target", "together"), [
    ("sm_90", False), ("sm_100a", True), ("sm_120", False)])
def test_targets_without_wgmma_fetch_together_if_they_can(target, together):
    a, b, c = matrices(250, 128, 136)

    compiled = launch(row_blocks, (2, 1), (a, b, c), {
        "BLOCKS": 2, "BM": 64, "BN": 128, "BK": 32, "num_warps": 4}, target)

    np.testing.assert_allclose(c, product(a, b), atol=1e-4)
    assert compiled.machine.cluster == 2
    assert [ring.blocks for ring in compiled.stats.rings] == [1, 1 + together]
    assert compiled.stats.warnings == ()


def test_stats_say_which_tiles_blocks_fetch_together():
    a, b, c = matrices(256, 128, 64)

    stats = launch(row_blocks, (2, 1), (a, b, c),
                   {"BLOCKS": 2, "BM": 64, "BN": 128, "BK": 64, "num_warps": 4}).stats

    text = str(stats)
    assert "b 64x128xfloat16: TMA, a portion by each of 2 blocks" in text
    assert re.search(r"b 64x128xfloat16: 6 copies, 98304 bytes, filled by 2 blocks together", text)
    assert [ring.blocks for ring in stats.rings] == [1, 2]


def test_stats_say_why_blocks_do_not_fetch_a_tile_together():
    a, b, c = matrices(512, 64, 64)

    stats = launch(row_blocks, (1, 1), (a, b, c),
                   {"BLOCKS": 8, "BM": 64, "BN": 64, "BK": 32, "num_warps": 4}).stats

    (of_b,) = [access for access in stats.accesses if access.array == "b"]
    assert of_b.blocks == 1
    assert str(of_b).endswith("TMA; by each block for itself: 8 shards of the tile would have "
                              "fewer than 8 rows each")
