"""Fragments of wgmma against the formulas of the PTX ISA, and the dots that it refuses."""

import pytest

from blocknumba.gpu_layout.dots.wgmma import (
    SharedOperand, accumulator_layout, depth_of, operand_layout, refusal,
)
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import register_count, warp_count
from blocknumba.gpu_layout.layouts.shared import swizzled
from blocknumba.tile_ir.ir.types import (
    TileType, bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2, int32, int8, uint8,
)

ROWS = 64  # of an instruction
SHAPES = [((64, 8), 4), ((64, 256), 4), ((128, 64), 4), ((128, 64), 8), ((256, 32), 8),
          ((64, 128), 8), ((64, 512), 8), ((64, 512), 4), ((128, 128), 16)]


def _holders(layout):
    """(register, lane, warp, row, column) for everything that a layout holds."""
    for register in range(register_count(layout)):
        for lane in range(32):
            for warp in range(warp_count(layout)):
                at = layout(register=register, lane=lane, warp=warp)
                yield register, lane, warp, at["dim0"], at["dim1"]


@pytest.mark.parametrize("shape, num_warps", SHAPES, ids=str)
def test_accumulators_are_where_the_instructions_have_them(shape, num_warps):
    """Source: PTX ISA, "wgmma.mma_async", matrix fragment D."""
    layout = accumulator_layout(shape, num_warps)
    groups = num_warps // 4
    own_rows = max(ROWS, shape[0] // groups)  # of a warpgroup
    own_columns = shape[1] * shape[0] // own_rows // groups
    columns = min(256, own_columns)  # of an instruction

    for register, lane, warp, row, column in _holders(layout):
        instruction, inner = divmod(register, columns // 2)
        group = warp // 4
        down, right = divmod(instruction, own_columns // columns)
        first_row = group * own_rows % shape[0] + down * ROWS
        first_column = group * own_rows // shape[0] * own_columns + right * columns
        assert row == first_row + warp % 4 * 16 + lane // 4 + 8 * (inner // 2 % 2)
        assert column == first_column + inner // 4 * 8 + lane % 4 * 2 + inner % 2


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, int8, float8_e5m2], ids=str)
@pytest.mark.parametrize("rows, num_warps", [(64, 4), (128, 4), (128, 8), (256, 8), (64, 8)])
def test_operands_are_where_the_instructions_have_them(rows, num_warps, dtype):
    """Source: PTX ISA, "wgmma.mma_async", matrix fragment A."""
    depth, per_word = depth_of(dtype), 32 // dtype.bits
    layout = operand_layout((rows, 2 * depth), dtype, num_warps)
    own_rows = max(ROWS, rows // (num_warps // 4))

    for register, lane, warp, row, column in _holders(layout):
        instruction, inner = divmod(register, 4 * per_word)
        word, position = divmod(inner, per_word)
        down, step = divmod(instruction, 2)
        first_row = warp // 4 * own_rows % rows + down * ROWS
        assert row == first_row + warp % 4 * 16 + lane // 4 + 8 * (word % 2)
        assert column == (step * depth + word // 2 * 4 * per_word + lane % 4 * per_word + position)


@pytest.mark.parametrize("shape, num_warps", SHAPES, ids=str)
def test_every_accumulator_is_held_once(shape, num_warps):
    layout = accumulator_layout(shape, num_warps)

    assert layout.is_injective and layout.is_surjective


@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("rows, num_warps", [(64, 4), (128, 4), (256, 8)])
def test_16_bit_results_are_operands_of_the_next_product_as_they_are(rows, num_warps, depth):
    assert accumulator_layout((rows, depth), num_warps) == operand_layout(
        (rows, depth), float16, num_warps)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("minor_axis", [0, 1])
@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_descriptors_count_as_the_hardware_does(swizzle, minor_axis, axis):
    """Offsets before chunks are permuted.  Source: PTX ISA, "Strides"; CUTLASS, mma_sm90_desc."""
    shape, width = (128, 128), swizzle // 2
    operand = SharedOperand.of(
        TileType(float16, shape, swizzled(shape, minor_axis, 16, swizzle)), axis)

    assert operand.is_transposed == (minor_axis == axis)
    assert operand.stride_bytes == 8 * swizzle
    for row in (0, 1, 8, 64, 127):
        for depth in (0, 16, 48, 112):
            minor, major = (row, depth) if operand.is_transposed else (depth, row)
            panel, position = divmod(minor, width)
            assert operand.offset_bytes(row, depth) == (
                panel * 128 * swizzle + major * swizzle + 2 * position)
    if operand.is_transposed:
        assert operand.leading_bytes == 128 * swizzle


def _tiles(m, n, k, a=float16, b=None, acc=float32):
    return TileType(a, (m, k)), TileType(b or a, (k, n)), TileType(acc, (m, n))


@pytest.mark.parametrize("tiles, num_warps", [
    (_tiles(64, 8, 16), 4), (_tiles(128, 256, 64, bfloat16), 8),
    (_tiles(256, 128, 64), 16),
    (_tiles(64, 256, 64, float16, acc=float16), 4), (_tiles(64, 16, 32, int8, uint8, int32), 4),
    (_tiles(64, 16, 32, float8_e4m3fn, float8_e5m2), 4)], ids=str)
def test_what_the_tensor_cores_do_is_not_refused(tiles, num_warps):
    assert refusal(*tiles, "ieee", num_warps) == ""


def test_tf32_must_be_asked_for():
    tiles = _tiles(64, 16, 8, float32)

    assert refusal(*tiles, "tf32", 4) == ""
    assert refusal(*tiles, "ieee", 4) == (
        "wgmma rounds float32 to tf32, and the precision is ieee")


@pytest.mark.parametrize("tiles, num_warps, reason", [
    (_tiles(64, 8, 16, float64, acc=float64), 4,
     "wgmma does not multiply float64 by float64 in float64"),
    (_tiles(64, 8, 16, float16, bfloat16), 4,
     "wgmma does not multiply float16 by bfloat16 in float32"),
    (_tiles(64, 8, 16, bfloat16, acc=float16), 4,
     "wgmma does not multiply bfloat16 by bfloat16 in float16"),
    (_tiles(64, 8, 16), 2, "wgmma needs a multiple of 4 warps, and there are 2"),
    (_tiles(32, 8, 16), 4,
     "wgmma multiplies at least (64, 16) by (16, 8), given (32, 16) by (16, 8)"),
    (_tiles(64, 8, 16, int8, acc=int32), 4,
     "wgmma multiplies at least (64, 32) by (32, 8), given (64, 16) by (16, 8)"),
    (_tiles(64, 8, 16), 8, "8 warps are too many for a result of (64, 8)"),
    (_tiles(256, 256, 16), 8, "8 warps have too few registers for a result of (256, 256)"),
    # 128 accumulator registers a thread, of 128 that a thread of 16 warps can have at all
    (_tiles(256, 256, 16), 16, "16 warps have too few registers for a result of (256, 256)")],
    ids=str)
def test_what_the_tensor_cores_cannot_do_is_refused_with_a_reason(tiles, num_warps, reason):
    assert refusal(*tiles, "ieee", num_warps) == reason


def test_a_batch_is_refused():
    tiles = [TileType(float16, (2, 64, 64)) for _ in range(3)]

    assert refusal(*tiles, "ieee", 4) == "its operands are batched"


@pytest.mark.parametrize("dtype, minor_axis, swizzle, accepted", [
    (float16, 0, 128, True), (float16, 1, 128, True), (float16, 1, 32, True),
    (float16, 1, 0, False), (int8, 0, 64, False), (int8, 1, 128, True)], ids=str)
def test_a_buffer_must_lie_as_the_tensor_cores_read(dtype, minor_axis, swizzle, accepted):
    shape = (64, 128)
    acc = int32 if dtype == int8 else float32
    a = TileType(dtype, shape, swizzled(shape, minor_axis, dtype.bits, swizzle))

    found = refusal(a, TileType(dtype, (128, 64)), TileType(acc, (64, 64)), "ieee", 4)

    assert (found == "") == accepted


def test_a_buffer_in_plain_order_is_refused():
    plain = LinearLayout.identity("offset", "dim1", 6) * LinearLayout.identity("offset", "dim0", 6)
    a = TileType(float16, (64, 64), plain)

    assert "is not in rows of 32 bytes or more" in refusal(
        a, TileType(float16, (64, 64)), TileType(float32, (64, 64)), "ieee", 4)
