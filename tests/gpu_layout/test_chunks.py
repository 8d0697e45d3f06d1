"""Chunks of tiles: every thread holds elements of every chunk, and all chunks are the tile."""

import numpy as np
import pytest
from emulated_threads import distribute

from blocknumba.gpu_layout.dots.mma import Instruction, mma_plan
from blocknumba.gpu_layout.layouts.registers import blocked, from_columns, transpose
from blocknumba.gpu_layout.layouts.shared import chunk_bits, chunk_layout, registers_of_chunk
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.gpu_layout.placement.stage_conversions import CONVERSION_CHUNK_BYTES
from blocknumba.tile_ir.text.parser import parse

MMA = Instruction.parse("m16n8k16.f32.f16.f16")
ACCUMULATOR = mma_plan(MMA, (128, 256), 32, (1, 2, 4), 8, False)
ROWS = blocked((128, 256), (1, 0), 4, 8)


def test_an_accumulator_is_cut_at_bits_that_only_registers_have():
    bits = chunk_bits(ACCUMULATOR.layout, ROWS, 3)

    for layout in (ACCUMULATOR.layout, ROWS):
        for bit in bits:
            assert [c for c in layout.columns if c >> bit & 1] == [1 << bit]
            assert 1 << bit in layout["register"]
    assert bits == (11, 12, 13)  # rows 8, 16 and 32: a warp has 64


@pytest.mark.parametrize("layout", [ACCUMULATOR.layout, ROWS], ids=["accumulator", "rows"])
def test_chunks_hold_what_the_whole_tile_held(layout):
    bits = chunk_bits(ACCUMULATOR.layout, ROWS, 2)
    tile = np.arange(128 * 256)
    held = distribute(tile, layout)

    for index in range(1 << len(bits)):
        is_in = np.ones(tile.size, bool)
        for position, bit in enumerate(bits):
            is_in &= (tile >> bit & 1) == (index >> position & 1)
        chunk = distribute(tile[is_in], chunk_layout(layout, bits))
        registers = registers_of_chunk(layout, bits, index)
        np.testing.assert_array_equal(chunk, held[:, :, list(registers)])


def test_a_transposition_of_all_threads_has_no_bit_to_cut_at():
    layout = blocked((64, 64), (1, 0), 4, 4)

    assert chunk_bits(layout, transpose(layout, (1, 0)), 2) == ()


def test_bits_that_threads_or_sums_of_bits_reach_are_not_cut_at():
    def other(*registers, lane=1):
        return from_columns((16,), registers, (lane, 0, 0, 0, 0), ())

    plain = other(2, 4, 8)

    assert chunk_bits(plain, plain, 3) == (1, 2, 3)
    assert chunk_bits(plain, plain, 1) == (3,)
    assert chunk_bits(plain, other(2, 4, 8, lane=9), 3) == (1, 2)
    assert chunk_bits(plain, other(2, 6, 8), 3) == (3,)


def test_elements_side_by_side_stay_in_one_chunk():
    words = from_columns((16,), (1, 4, 8), (2, 0, 0, 0, 0), ())

    assert chunk_bits(words, words, 3) == (2, 3)


def test_a_large_conversion_takes_a_small_buffer():
    fn = parse("""kernel k(
  %x: ptr<float16> = pointer(x) {divisibility=16}
  %z: ptr<float32> = pointer(z) {divisibility=16}
) {
  %i = arange {start=0, size=4096} : tile<4096xint32>
  %xs = splat %x : tile<4096xptr<float16>>
  %xp = offset %xs, %i : tile<4096xptr<float16>>
  %flat = load %xp : tile<4096xfloat16>
  %a = reshape %flat : tile<128x32xfloat16>
  %b = reshape %flat : tile<32x128xfloat16>
  %zero = constant {value=0.0} : float32
  %acc = splat %zero : tile<128x128xfloat32>
  %d = dot %a, %b, %acc : tile<128x128xfloat32>
  %j = arange {start=0, size=16384} : tile<16384xint32>
  %sums = reshape %d : tile<16384xfloat32>
  %zs = splat %z : tile<16384xptr<float32>>
  %zp = offset %zs, %j : tile<16384xptr<float32>>
  store %zp, %sums
  return
}
""")

    laid_out = lay_out(fn, LayoutOptions(num_warps=8), verify=True)

    assert laid_out.attrs["shared_bytes"] <= 2 * CONVERSION_CHUNK_BYTES
