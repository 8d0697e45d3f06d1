"""The tiles that examples choose: those that were the fastest when they were measured."""

import attention
import matmul
import ml_dtypes
import numpy as np
import pytest
from matmul import Tile

from blocknumba.dispatch.launch.device import CPU, Device
from blocknumba.nvvm_lower.target import Target

H100 = Device("H100", Target.parse("sm_90a"), 132)
A100 = Device("A100", Target.parse("sm_80"), 108)
L40S = Device("L40S", Target.parse("sm_89"), 142)
FLOAT8 = ml_dtypes.float8_e4m3fn


@pytest.mark.parametrize("M, N, K, dtype, precision, tile", [
    (4096, 4096, 4096, np.float16, "ieee", Tile(128, 256, 64, 8)),
    (8192, 8192, 8192, np.float16, "ieee", Tile(128, 256, 64, 8)),
    (8192, 8192, 1024, np.float16, "ieee", Tile(128, 256, 64, 8)),
    (2048, 2048, 2048, np.float16, "ieee", Tile(128, 128, 64, 8)),
    (1024, 1024, 1024, np.float16, "ieee", Tile(64, 128, 64, 4)),
    (8192, 16, 8192, np.float16, "ieee", Tile(64, 16, 128, 4)),
    (8192, 8192, 8192, FLOAT8, "ieee", Tile(128, 256, 128, 8)),
    (8192, 8192, 8192, np.int8, "ieee", Tile(128, 256, 128, 8)),
    (4096, 4096, 4096, np.float32, "tf32", Tile(128, 256, 32, 8)),
    (4096, 4096, 4096, np.float32, "ieee", Tile(128, 128, 32, 8)),
    (4096, 4096, 4096, np.float64, "ieee", Tile(128, 64, 16, 8)),
])
def test_of_an_h100_the_tile_that_was_the_fastest_is_chosen(M, N, K, dtype, precision, tile):
    assert matmul.tile_for(M, N, K, np.dtype(dtype), H100, precision) == tile


@pytest.mark.parametrize("device, depth", [(A100, 64), (L40S, 32)], ids=["A100", "L40S"])
def test_of_mma_the_tile_that_was_the_fastest_is_chosen(device, depth):
    tile = matmul.tile_for(4096, 4096, 4096, np.dtype(np.float16), device)

    assert tile == Tile(256, 128, depth, 8)


@pytest.mark.parametrize("device", [H100, A100, CPU], ids=lambda device: device.name)
def test_tiles_of_small_products_are_not_larger_than_they_must_be(device):
    tile = matmul.tile_for(20, 30, 1000, np.dtype(np.float16), device)

    assert tile.BM <= 64
    assert tile.BN == 32


@pytest.mark.parametrize("D, dtype, device, rows", [
    (128, np.float16, H100, 128), (64, np.float16, H100, 64), (64, np.float32, H100, 64),
    (256, np.float16, H100, 64), (128, np.float16, A100, 64), (128, np.float16, CPU, 64)])
def test_attention_takes_large_blocks_where_they_are_faster(D, dtype, device, rows):
    assert attention.blocks_for(D, np.dtype(dtype), device, causal=False)["BM"] == rows
