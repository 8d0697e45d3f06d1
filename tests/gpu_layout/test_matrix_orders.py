"""Orders of rows, columns and depth, and how operands are read in them."""

from functools import partial

import pytest

from blocknumba.gpu_layout.dots.map_dots import Source, best_orders, operands_cost
from blocknumba.gpu_layout.dots.mma import NATURAL, Instruction, mma_plan
from blocknumba.gpu_layout.layouts.movement import move_cost
from blocknumba.gpu_layout.layouts.shared import access, ldmatrix_access, swizzled, widest_swizzle

NAMES = {"tf32": "m16n8k8.f32.tf32.tf32", "f64": "m16n8k16.f64.f64.f64",
         "f64 of depth 8": "m16n8k8.f64.f64.f64",
         "f64 of 8 rows": "m8n8k4.f64.f64.f64", "f16": "m16n8k16.f32.f16.f16",
         "s8": "m16n8k32.s32.s8.s8"}
BOTH_WAYS = [(along_a, along_b) for along_a in (True, False) for along_b in (True, False)]


def plan_of(name, extents=(64, 64, 32), warps=(1, 2, 2)):
    rows, columns, depth = extents
    return partial(mma_plan, Instruction.parse(NAMES[name]), (rows, columns), depth, warps, 4,
                   False)


def source(name, position, along_depth, extents=(64, 64, 32), fixed=False):
    """Operand a (0) or b (1), stored along the depth or across it."""
    rows, columns, depth = extents
    shape = ((rows, depth), (depth, columns))[position]
    minor = 1 - position if along_depth else position
    bits = Instruction.parse(NAMES[name]).operand_bits
    shared = swizzled(shape, minor, bits, widest_swizzle(shape[minor], bits))
    return Source(shared, along_depth, fixed)


def orders_of(name, along, **options):
    bits = Instruction.parse(NAMES[name]).operand_bits
    sources = [source(name, i, is_along, **options) for i, is_along in enumerate(along)]
    return best_orders(plan_of(name), *sources, bits), sources


@pytest.mark.parametrize("along", BOTH_WAYS, ids=str)
def test_16_bit_operands_are_read_by_ldmatrix_in_the_natural_order(along):
    orders, _ = orders_of("f16", along)

    assert orders == NATURAL


@pytest.mark.parametrize("along", BOTH_WAYS, ids=str)
@pytest.mark.parametrize("name", ["tf32", "f64", "f64 of depth 8", "f64 of 8 rows"])
def test_wider_operands_are_read_by_wide_accesses_without_conflicts(name, along):
    orders, sources = orders_of(name, along)

    plan, bits = plan_of(name)(orders), Instruction.parse(NAMES[name]).operand_bits
    for tile, operand in zip((plan.a, plan.b), sources):
        by_ldmatrix = ldmatrix_access(tile.layout, operand.layout, bits)
        if by_ldmatrix is not None:
            assert by_ldmatrix.degree == 1
            continue
        read = access(tile.layout, operand.layout, bits)
        assert read.degree == 1
        assert read.vector * bits >= 64


# of rows along the depth and columns across it the other orientation is better: map_dots
@pytest.mark.parametrize("along", [(False, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("name", ["f64", "f64 of depth 8"])
def test_doubles_that_are_read_together_go_into_consecutive_registers_of_an_instruction(name,
                                                                                      along):
    orders, sources = orders_of(name, along)

    plan = plan_of(name)(orders)
    for tile, operand in zip((plan.a, plan.b), sources):
        for group in access(tile.layout, operand.layout, 64).groups:
            slots = [register % tile.size for register in group]
            assert slots == list(range(slots[0], slots[0] + len(group)))


def test_rows_across_the_depth_and_columns_along_it_are_read_16_bytes_at_a_time():
    orders, sources = orders_of("f64", (False, True))

    plan = plan_of("f64")(orders)
    vectors = [access(tile.layout, operand.layout, 64).vector
               for tile, operand in zip((plan.a, plan.b), sources)]
    assert vectors == [2, 2]


@pytest.mark.parametrize("along", BOTH_WAYS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_orders_are_never_worse_than_the_natural_ones(name, along):
    bits, plan = Instruction.parse(NAMES[name]).operand_bits, plan_of(name)
    orders, sources = orders_of(name, along)

    assert operands_cost(plan(orders), *sources, bits) <= operands_cost(plan(NATURAL), *sources,
                                                                        bits)


def test_rows_that_are_fixed_keep_their_order():
    (rows, columns, _), _ = orders_of("tf32", (False, False), fixed=True)

    assert rows == columns == ()


@pytest.mark.parametrize("name", ["f16", "tf32", "f64"])
def test_sums_of_one_product_are_the_operand_of_the_next_without_leaving_their_thread(name):
    bits = Instruction.parse(NAMES[name]).operand_bits
    first = plan_of(name, (64, 32, 16), (1, 4, 1))(NATURAL)
    second = plan_of(name, (64, 64, 32), (1, 4, 1))

    orders = best_orders(second, Source(first.layout, fixed=True), source(name, 1, False), bits)

    assert move_cost(first.layout, second(orders).a.layout, bits) == 0


@pytest.mark.parametrize("extents", [(1, 1, 1), (2, 4, 2), (8, 8, 4), (4, 64, 1)], ids=str)
def test_tiles_too_small_for_a_choice_have_natural_orders(extents):
    plan = plan_of("tf32", extents, (1, 1, 1))
    sources = [source("tf32", position, True, extents) for position in (0, 1)]

    assert plan(best_orders(plan, *sources, 32)).layout.is_surjective
