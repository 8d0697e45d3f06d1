"""Fragments of mma.sync against the formulas of the PTX ISA, element by element."""

import itertools
import math

import numpy as np
import pytest
from emulated_threads import distribute

from blocknumba.gpu_layout.dots.mma import (
    Instruction, accumulator_fragment, instruction_for, mma_plan, operand_fragment, warp_grid,
)
from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.registers import blocked
from blocknumba.gpu_layout.layouts.shared import access, ldmatrix_access, swizzled, widest_swizzle
from blocknumba.tile_ir.ir.types import (
    bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2, int32, int8, uint8,
)

AMPERE, ADA = frozenset(("mma",)), frozenset(("mma", "fp8_mma"))
HOPPER = ADA | {"float64_mma"}
LANES = range(32)

# The formulas of the PTX ISA for element i of lane 4 * g + t: (row, column) of the first operand,
# (row, column) of the second one.  Source: PTX ISA 9.0, "Matrix Fragments for mma.<shape>".
OPERANDS = {
    "m16n8k16.f32.f16.f16": (
        lambda i, g, t: (g + 8 * (i in (2, 3, 6, 7)), 2 * t + i % 2 + 8 * (i >= 4)),
        lambda i, g, t: (2 * t + i % 2 + 8 * (i >= 2), g)),
    "m16n8k8.f32.bf16.bf16": (
        lambda i, g, t: (g + 8 * (i >= 2), 2 * t + i % 2),
        lambda i, g, t: (2 * t + i, g)),
    "m16n8k8.f32.tf32.tf32": (
        lambda i, g, t: (g + 8 * (i in (1, 3)), t + 4 * (i >= 2)),
        lambda i, g, t: (t + 4 * i, g)),
    "m16n8k4.f32.tf32.tf32": (
        lambda i, g, t: (g + 8 * i, t),
        lambda i, g, t: (t, g)),
    "m16n8k32.s32.s8.u8": (
        lambda i, g, t: (g + 8 * (4 <= i < 8 or i >= 12), 4 * t + i % 4 + 16 * (i >= 8)),
        lambda i, g, t: (4 * t + i % 4 + 16 * (i >= 4), g)),
    "m16n8k16.f32.e4m3.e5m2": (
        lambda i, g, t: (g + 8 * (i >= 4), 4 * t + i % 4),
        lambda i, g, t: (4 * t + i, g)),
    "m8n8k4.f64.f64.f64": (
        lambda i, g, t: (g, t),
        lambda i, g, t: (t, g)),
    "m16n8k4.f64.f64.f64": (
        lambda i, g, t: (g + 8 * i, t),
        lambda i, g, t: (t, g)),
    "m16n8k8.f64.f64.f64": (
        lambda i, g, t: (g + 8 * (i in (1, 3)), t + 4 * (i >= 2)),
        lambda i, g, t: (t + 4 * i, g)),
    "m16n8k16.f64.f64.f64": (
        lambda i, g, t: (g, 2 * i + t) if i % 2 == 0 else (g + 8, 2 * i - 2 + t),
        lambda i, g, t: (t + 4 * i, g)),
}


def accumulator_index(i, g, t):
    """Of every shape: row and column of element i of the accumulator."""
    return g + 8 * (i >= 2), 2 * t + i % 2


def elements(fragment):
    """Per lane and register the indices along the two axes."""
    for lane in LANES:
        for register in range(1 << len(fragment.register)):
            index = [0, 0]
            for number, bits in ((register, fragment.register), (lane, fragment.lane)):
                for position, (axis, bit) in enumerate(bits):
                    index[axis] |= (number >> position & 1) << bit
            yield lane, register, tuple(index)


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_are_where_the_manual_says(name):
    instruction, (of_a, of_b) = Instruction.parse(name), OPERANDS[name]
    bits = instruction.operand_bits

    a = list(elements(operand_fragment(instruction.rows, instruction.depth, bits)))
    b = list(elements(operand_fragment(8, instruction.depth, bits)))

    assert len(a) == instruction.rows * instruction.depth
    assert len(b) == 8 * instruction.depth
    for lane, register, (row, along) in a:
        assert (row, along) == of_a(register, lane >> 2, lane % 4)
    for lane, register, (column, along) in b:
        assert (along, column) == of_b(register, lane >> 2, lane % 4)


@pytest.mark.parametrize("rows", [8, 16])
def test_accumulators_are_where_the_manual_says(rows):
    found = list(elements(accumulator_fragment(rows)))

    assert len(found) == rows * 8
    assert all(position == accumulator_index(i, lane >> 2, lane % 4) for lane, i, position in found)


@pytest.mark.parametrize("a, b, sums, depth, features, name", [
    (float16, float16, float16, 64, AMPERE, "m16n8k16.f16.f16.f16"),
    (bfloat16, bfloat16, float32, 8, AMPERE, "m16n8k8.f32.bf16.bf16"),
    (float16, float16, float32, 1, AMPERE, "m16n8k8.f32.f16.f16"),
    (float32, float32, float32, 64, HOPPER, "m16n8k8.f32.tf32.tf32"),
    (float32, float32, float32, 4, AMPERE, "m16n8k4.f32.tf32.tf32"),
    (int8, uint8, int32, 32, AMPERE, "m16n8k32.s32.s8.u8"),
    (uint8, int8, int32, 16, AMPERE, "m16n8k16.s32.u8.s8"),
    (float8_e5m2, float8_e4m3fn, float32, 128, ADA, "m16n8k32.f32.e5m2.e4m3"),
    (float64, float64, float64, 32, ADA, "m8n8k4.f64.f64.f64"),
    (float64, float64, float64, 32, HOPPER, "m16n8k16.f64.f64.f64"),
    (float64, float64, float64, 4, HOPPER, "m16n8k4.f64.f64.f64"),
    (float64, float64, float64, 2, HOPPER, "m8n8k4.f64.f64.f64"),
])
def test_the_deepest_instruction_that_a_depth_fills_is_taken(a, b, sums, depth, features, name):
    assert str(instruction_for(a, b, sums, depth, features)) == name


def test_8_bit_floats_have_no_instruction_before_ada():
    assert instruction_for(float8_e5m2, float8_e5m2, float32, 32, AMPERE) is None


# tiles ------------------------------------------------------------------------------------------
TILES = [  # instruction, shape of the accumulator, depth, warps, num_warps, swapped, orders
    ("m16n8k16.f32.f16.f16", (64, 32), 32, (1, 2, 2), 4, False),
    ("m16n8k16.f32.f16.f16", (2, 32, 16), 16, (2, 1, 2), 4, False),
    ("m16n8k16.f32.f16.f16", (4, 2, 1), 16, (2, 1, 1), 8, False),
    ("m16n8k8.f32.f16.f16", (1, 64), 2, (1, 1, 4), 4, True),
    ("m16n8k8.f32.f16.f16", (8, 8), 1, (1, 1, 1), 1, False),
    ("m16n8k32.s32.s8.u8", (16, 8), 64, (1, 1, 1), 2, False),
    ("m16n8k16.s32.s8.u8", (4, 4), 4, (1, 1, 1), 1, False),
    ("m16n8k16.s32.s8.u8", (8, 32), 8, (1, 1, 2), 2, True),
    ("m8n8k4.f64.f64.f64", (16, 16), 2, (1, 2, 1), 2, False),
    ("m16n8k16.f64.f64.f64", (2, 32), 16, (1, 1, 2), 2, True),
    ("m16n8k8.f32.tf32.tf32", (32, 32), 16, (1, 2, 1), 2, False,
     ((1, 2, 0, 3, 4), (2, 3, 4, 0, 1), (1, 2, 0, 3))),
    ("m16n8k4.f32.tf32.tf32", (2, 8, 64), 8, (2, 1, 1), 2, True,
     ((2, 0, 1), (1, 2, 3, 0, 4, 5), (1, 2, 0))),
]


class Warp:
    """One warp that multiplies fragments as the manual says, in NumPy."""

    def __init__(self, instruction, warp):
        self._instruction, self._warp = instruction, warp

    def matrix(self, tiled, tile, position, formula, size):
        """The small matrix that lanes give the instruction as a fragment of a tile."""
        found = np.zeros(size, tile.dtype)
        registers = distribute(tile, tiled.layout)[self._warp]
        for lane in LANES:
            is_zero = lane & tiled.zero_lane
            for i, register in enumerate(tiled.registers(*position)):
                value = 0 if register is None or is_zero else registers[lane, register]
                found[formula(i, lane >> 2, lane % 4)] = value
        return found

    def product(self, first, second, position, steps):
        """The sum over steps of the products of fragments of two (FragmentedTile, tile)s."""
        (batch, i, j), (of_a, of_b) = position, formulas_of(self._instruction)
        rows, depth = self._instruction.rows, self._instruction.depth
        return sum(
            self.matrix(*first, (batch, i, step), of_a, (rows, depth))
            @ self.matrix(*second, (batch, j, step), of_b, (depth, 8)) for step in range(steps))


def formulas_of(instruction):
    """Those of an instruction of the same shape with elements of the same size."""
    def shape(other):
        return other.rows, other.depth, other.operand_bits
    return next(formulas for name, formulas in OPERANDS.items()
                if shape(Instruction.parse(name)) == shape(instruction))


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_warps_multiply_tiles_of_any_size(tile):
    name, shape, depth, _, num_warps, swapped, *_ = tile
    instruction = Instruction.parse(name)
    plan = mma_plan(instruction, *tile[1:])
    generator = np.random.default_rng(0)
    a = generator.integers(1, 9, (*shape[:-1], depth))
    b = generator.integers(1, 9, (*shape[:-2], depth, shape[-1]))
    operands = [(plan.a, a), (plan.b, b)]
    first, second = operands[::-1] if swapped else operands

    for number in range(num_warps):
        warp = Warp(instruction, number)
        held = distribute(a @ b, plan.layout)[number]
        for position in itertools.product(*map(range, plan.accumulator.counts)):
            product = warp.product(first, second, position, plan.a.counts[2])
            for lane in LANES:
                for i, register in enumerate(plan.accumulator.registers(*position)):
                    found = product[accumulator_index(i, lane >> 2, lane % 4)]
                    assert found == held[lane, register]


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_element_of_every_tile_has_a_place_and_no_copy_in_a_thread(tile):
    plan = mma_plan(Instruction.parse(tile[0]), *tile[1:])

    for tiled in (plan.a, plan.b, plan.accumulator):
        assert tiled.layout.is_surjective
        assert gf2.independent(tiled.layout["register"]) == tiled.layout["register"]


def test_warps_along_the_other_axis_hold_copies_of_an_operand():
    plan = mma_plan(Instruction.parse("m16n8k16.f32.f16.f16"), (64, 32), 16, (1, 2, 2), 4, False)

    assert plan.a.layout["warp"] == (0, 32 * 16)
    assert plan.b.layout["warp"] == (16, 0)
    assert plan.layout["warp"] == (16, 32 * 32)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("extents", [(1, 128, 128), (1, 256, 64), (1, 16, 256), (4, 32, 32),
                                     (1, 1, 1), (1, 64, 8), (2, 1024, 16)])
def test_warps_are_shared_so_that_they_read_least(extents, num_warps):
    batches, rows, columns = warp_grid(num_warps, extents, (1, 16, 8), along_rows=False)

    def reads(m, n):
        return extents[1] // m + extents[2] // n

    assert batches == min(num_warps, extents[0])
    most = [max(1, extents[1] // 16), max(1, extents[2] // 8)]
    busy = min(num_warps // batches, most[0] * most[1])
    assert rows * columns == busy
    assert rows <= most[0] and columns <= most[1]
    sizes = [1 << bit for bit in range(6)]
    assert reads(rows, columns) == min(
        reads(m, n) for m in sizes for n in sizes
        if m <= most[0] and n <= most[1] and m * n == busy)


def test_warps_lie_along_rows_where_a_warp_should_have_whole_rows():
    assert warp_grid(4, (1, 128, 64), (1, 16, 8), along_rows=True) == (1, 4, 1)
    assert warp_grid(8, (1, 64, 64), (1, 16, 8), along_rows=True) == (1, 4, 2)


# ldmatrix ---------------------------------------------------------------------------------------
def read_by_matrices(plan, memory, num_warps):
    """The words that every lane receives from ldmatrix.  Source: PTX ISA, "ldmatrix"."""
    chunk = 16 * 8 // plan.element_bits
    per_word = 32 // plan.element_bits
    count = 1 << plan.addresses.bits("register")
    found = np.zeros((num_warps, 32, count, plan.matrices, per_word), memory.dtype)
    for warp, number, matrix in np.ndindex(num_warps, count, plan.matrices):
        starts = [plan.addresses(register=number, lane=8 * matrix + row, warp=warp)["offset"]
                  for row in range(8)]
        assert all(start % chunk == 0 for start in starts)
        rows = np.stack([memory[start:start + chunk] for start in starts])
        for lane in LANES:
            row, position = divmod(lane, 4)
            if plan.transposed:
                words = rows[2 * position:2 * position + 2, row]
            else:
                words = rows[row, per_word * position:per_word * (position + 1)]
            found[warp, lane, number, matrix] = words
    return found.reshape(num_warps, 32, -1)


MATRICES = [
    (name, size, minor)
    for name, size in (("m16n8k16.f32.f16.f16", (64, 32)), ("m16n8k16.f32.f16.f16", (16, 64)),
                       ("m16n8k32.s32.s8.s8", (32, 64)), ("m16n8k8.f32.tf32.tf32", (32, 32)))
    for minor in (0, 1) if minor == 1 or "f16" in name
]


@pytest.mark.parametrize("case", MATRICES, ids=str)
@pytest.mark.parametrize("is_first", [True, False], ids=["a", "b"])
def test_ldmatrix_reads_fragments_from_swizzled_memory_without_conflicts(case, is_first):
    name, (rows, depth), minor = case
    instruction = Instruction.parse(name)
    bits = instruction.operand_bits
    plan = mma_plan(instruction, (rows, rows), depth, (1, 2, 1), 2, False)
    shape, layout = (rows, depth), plan.a.layout
    if not is_first:
        shape, layout, minor = (depth, rows), plan.b.layout, 1 - minor
    shared = swizzled(shape, minor, bits, widest_swizzle(shape[minor], bits))
    tile = np.arange(math.prod(shape)).reshape(shape)
    memory = np.array([tile[position["dim0"], position["dim1"]] for position in (
        shared(offset=offset) for offset in range(tile.size))])

    found = ldmatrix_access(layout, shared, bits)

    assert found.degree == 1
    np.testing.assert_array_equal(read_by_matrices(found, memory, 2), distribute(tile, layout))


def test_ldmatrix_reads_four_matrices_at_once_where_there_are_as_many():
    plan = mma_plan(Instruction.parse("m16n8k16.f32.f16.f16"), (16, 8), 16, (1, 1, 1), 1, False)

    a = ldmatrix_access(plan.a.layout, swizzled((16, 16), 1, 16, 32), 16)
    b = ldmatrix_access(plan.b.layout, swizzled((16, 8), 1, 16, 0), 16)

    assert (a.matrices, a.transposed) == (4, False)
    assert (b.matrices, b.transposed) == (2, True)


def test_ldmatrix_cannot_transpose_what_is_not_16_bits():
    for name in ("m16n8k32.s32.s8.s8", "m16n8k8.f32.tf32.tf32", "m8n8k4.f64.f64.f64"):
        instruction = Instruction.parse(name)
        plan = mma_plan(instruction, (64, 64), 64, (1, 1, 1), 1, False)

        shared = swizzled((64, 64), 1, instruction.operand_bits, 64)

        assert ldmatrix_access(plan.b.layout, shared, instruction.operand_bits) is None


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (16, 128)], ids=str)
@pytest.mark.parametrize("minor", [0, 1])
def test_coalesced_tiles_are_written_16_bytes_at_a_time_without_conflicts(shape, minor, bits):
    writer = blocked(shape, (minor, 1 - minor), 128 // bits, 4)
    shared = swizzled(shape, minor, bits, widest_swizzle(shape[minor], bits))

    written = access(writer, shared, bits)

    assert written.vector * bits == 128
    assert written.degree == 1
