"""Multicast: which tiles the blocks of a cluster fetch together, and in what shards."""

from dataclasses import replace

import numpy as np
import pytest
from cluster_kernels import (
    attention_blocks,
    column_blocks,
    persistent_blocks,
    row_blocks,
    separate_blocks,
    uneven_blocks,
    with_rank,
)
from ring_check import ring_problems
from tensor_core_kernels import tile_of
from test_specialize_warps import F16, OPTIONS

from blocknumba.gpu_layout.async_copies.ops import tma_load, warp_roles
from blocknumba.gpu_layout.async_copies.schedule import plan_schedule
from blocknumba.gpu_layout.async_copies.specialize_warps import specialize_warps
from blocknumba.gpu_layout.clusters.multicast import (
    control_flow_diverges, rank_dependent, shard_of,
)
from blocknumba.gpu_layout.dots.map_wgmma import map_wgmma
from blocknumba.gpu_layout.layouts.shared import offset_of, swizzled
from blocknumba.gpu_layout.spec import MAPPED
from blocknumba.tile_ir.ir.builder import Builder, constant_of
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import DTYPES, TileType, int32
from blocknumba.tile_ir.ir.verifier import verify
from blocknumba.tile_ir.text.parser import parse

WARPGROUP = replace(OPTIONS, num_warps=4)
TILES = {"BM": 64, "BN": 128, "BK": 64}
HEADS = {"BM": 64, "BN": 64, "D": 64}


def mapped(kernel, blocks=2, constants=TILES, types=F16, options=WARPGROUP):
    """The kernel with dots mapped, its programs partitioned over blocks."""
    tile = tile_of(kernel, types, {"BLOCKS": blocks, **constants})
    return map_wgmma(with_rank(tile, blocks), options)


def specialized(kernel, blocks=2, constants=TILES, types=F16, options=WARPGROUP):
    """The kernel after the pass, verified."""
    fn = specialize_warps(mapped(kernel, blocks, constants, types, options), options)
    verify(fn, MAPPED)
    return fn


def fetches(fn):
    """Per array how many blocks a fetch of it goes to."""
    names = dict(zip(fn.body.args, (parameter.argument for parameter in fn.parameters)))
    return {(names[op.operands[0]], op.attrs["blocks"]) for op in walk(fn.body)
            if op.opdef is tma_load}


# what differs among blocks ----------------------------------------------------------------------
def text_of(body):
    return parse("kernel k(\n  %n: int32 = value(n)\n) {\n  %rank = cta_rank {blocks=2} : int32\n"
                 f"  %one = constant {{value=1}} : int32\n{body}\n  return\n}}\n")


def names_that_differ(fn):
    return {value.hint for value in rank_dependent(fn)}


def test_what_is_made_of_the_rank_differs_among_blocks():
    fn = text_of("  %a = add %rank, %one : int32\n  %b = mul %a, %n : int32\n"
                 "  %c = add %n, %one : int32\n")

    assert names_that_differ(fn) == {"rank", "a", "b"}
    assert not control_flow_diverges(fn, rank_dependent(fn))


def test_what_a_loop_carries_differs_if_what_it_begins_with_or_goes_on_with_does():
    args = "%i: int32, %p: int32, %q: int32, %s: int32"
    fn = text_of(f"""
  %x, %y, %z = for %one, %n, %one, %one, %rank, %one : int32, int32, int32 ({args}) {{
    %t = add %s, %q : int32
    yield %p, %q, %t
  }}""")

    assert names_that_differ(fn) == {"rank", "y", "q", "z", "s", "t"}
    assert not control_flow_diverges(fn, rank_dependent(fn))


@pytest.mark.parametrize("body", [
    """
  %x = for %one, %rank, %one, %one : int32 (%i: int32, %p: int32) {
    yield %p
  }""", """
  %is = eq %rank, %one : bool
  %x = if %is : int32 {
    yield %one
  } else {
    yield %n
  }"""])
def test_control_flow_diverges_where_the_rank_decides(body):
    fn = text_of(body)

    assert "x" in names_that_differ(fn)
    assert control_flow_diverges(fn, rank_dependent(fn))


# shards -----------------------------------------------------------------------------------------
def starts(shard, rank):
    """Where the shard of a rank begins along each axis."""
    builder = Builder(folding=True)
    with builder.region():
        of_rank = builder.constant(rank, int32)
        found = [shard.emit_start(builder, of_rank, axis)
                 for axis in range(len(shard.tile.shape))]
        builder.emit(OPS["yield"])
    return [constant_of(value) for value in found]


@pytest.mark.parametrize(("shape", "minor_axis", "bits", "swizzle", "blocks", "shard"), [
    ((64, 128), 1, 16, 128, 2, (64, 64)),  # a panel each
    ((64, 256), 1, 16, 128, 2, (64, 128)),  # two panels each
    ((128, 64), 0, 16, 128, 2, (64, 64)),  # of a transposed tile too
    ((64, 64), 1, 16, 128, 2, (32, 64)),  # rows
    ((64, 128), 1, 16, 128, 4, (32, 64)),  # a panel of which two blocks bring the rows
    ((64, 64), 1, 16, 128, 8, (8, 64)),
    ((64, 32), 1, 16, 64, 2, (32, 32)),
    ((2, 32, 64), 2, 16, 128, 4, (1, 16, 64)),  # the outermost axis first
    ((128, 128), 1, 8, 128, 2, (64, 128)),
    ((64, 64), 1, 32, 128, 2, (64, 32)),
])
def test_shards_follow_each_other_in_the_buffer_and_lie_in_it_as_they_do_alone(
        shape, minor_axis, bits, swizzle, blocks, shard):
    dtype = {8: "float8_e5m2", 16: "float16", 32: "float32"}[bits]
    whole = TileType(DTYPES[dtype], shape, swizzled(shape, minor_axis, bits, swizzle))

    found = shard_of(whole, blocks)

    assert found.tile.shape == shard
    for rank in range(blocks):
        first = starts(found, rank)
        for index in np.ndindex(*[min(extent, 16) for extent in shard]):
            within = offset_of(found.tile.layout, dict(enumerate(index)))
            moved = {axis: own + start for axis, (own, start) in enumerate(zip(index, first))}
            assert offset_of(whole.layout, moved) == rank * found.tile.size + within


@pytest.mark.parametrize(("shape", "swizzle", "blocks"), [
    ((8, 64), 128, 2), ((16, 64), 128, 4), ((8, 128), 128, 4), ((64, 64), 0, 2)])
def test_a_tile_with_too_few_rows_for_all_blocks_is_not_divided(shape, swizzle, blocks):
    tile = TileType(DTYPES["float16"], shape, swizzled(shape, 1, 16, swizzle))

    assert "rows" in shard_of(tile, blocks)


# schedules --------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kernel", "constants", "blocks", "fetched"), [
    (row_blocks, TILES, 2, {("a", 1), ("b", 2)}),
    (row_blocks, TILES, 4, {("a", 1), ("b", 4)}),
    (column_blocks, TILES, 2, {("a", 2), ("b", 1)}),
    (separate_blocks, TILES, 2, {("a", 1), ("b", 1)}),
    (persistent_blocks, TILES, 2, {("a", 1), ("b", 2)}),
    (attention_blocks, HEADS, 2, {("q", 1), ("k", 2), ("v", 2)}),
])
@pytest.mark.parametrize("num_warps", [4, 8])
def test_what_does_not_depend_on_the_rank_is_fetched_together(
        kernel, constants, blocks, fetched, num_warps):
    types = F16 if len(fetched) == 2 else F16 + F16[:1]
    options = replace(OPTIONS, num_warps=num_warps)
    fn = specialized(kernel, blocks, constants | {"BM": 16 * num_warps}, types, options)

    assert fetches(fn) == fetched
    assert ring_problems(fn, num_warps) == []


@pytest.mark.parametrize(("constants", "features", "reason"), [
    ({}, OPTIONS.features - {"multicast"}, "the target does not copy to several blocks at once"),
    ({"BN": 64, "BK": 16}, OPTIONS.features, "4 shards of the tile would have fewer than 8 rows"),
])
def test_a_tile_that_cannot_be_divided_is_fetched_by_each_block(constants, features, reason):
    options = replace(WARPGROUP, features=features)
    fn = mapped(row_blocks, 4, TILES | constants, options=options)

    schedule = plan_schedule(fn, options)

    (undivided,) = schedule.undivided.values()
    assert undivided.startswith(reason)
    assert schedule.blocks == 1
    specialized_fn = specialize_warps(fn, options)
    assert fetches(specialized_fn) == {("a", 1), ("b", 1)}
    assert ring_problems(specialized_fn, 4) == []


def test_blocks_that_may_diverge_fetch_for_themselves():
    fn = mapped(uneven_blocks)

    schedule = plan_schedule(fn, WARPGROUP)

    assert set(schedule.undivided.values()) == {"the blocks may run different control flow"}


# the check of rings -----------------------------------------------------------------------------
def changed(fn, name, where=lambda op: True, **attrs):
    """A function in which the ops of a name have other attributes."""
    for op in walk(fn.body):
        if op.name == name and where(op):
            op.attrs = {**op.attrs, **attrs}
    return fn


def is_empty(op):
    return op.attrs["arrivals"] > 1


@pytest.mark.parametrize(("name", "where", "attrs", "problem"), [
    ("mbarrier_allocate", is_empty, {"arrivals": 4},
     "a slot that 2 blocks of 4 warps read is empty after 4 releases"),
    ("mbarrier_arrive", bool, {"blocks": 1}, "a slot that 2 blocks fill is released in 1"),
    ("warp_roles", bool, {"blocks": 1}, "a block may begin before the barriers of the others"),
    ("tma_load", lambda op: op.attrs["blocks"] > 1, {"blocks": 1}, "more bytes are expected"),
])
def test_the_check_of_rings_finds_blocks_that_do_not_wait_for_each_other(
        name, where, attrs, problem):
    fn = changed(specialized(row_blocks), name, where, **attrs)

    assert any(problem in text for text in ring_problems(fn, 4)), ring_problems(fn, 4)


@pytest.mark.parametrize(("name", "attrs", "problem"), [
    ("mbarrier_allocate", {"arrivals": 8}, "a slot that 1 blocks of 4 warps read is empty after 8"),
    ("mbarrier_arrive", {"blocks": 2}, "a slot that 1 blocks fill is released in 2"),
])
def test_rings_that_each_block_fills_for_itself_stay_within_it(name, attrs, problem):
    fn = specialized(separate_blocks)

    assert ring_problems(fn, 4) == []
    assert any(problem in text for text in ring_problems(
        changed(fn, name, lambda op: op.attrs.get("arrivals") != 1, **attrs), 4))


@pytest.mark.parametrize("last", [False, True])
def test_the_check_of_rings_finds_a_block_that_ends_before_the_others(last):
    fn = specialized(row_blocks)
    (roles,) = [op for op in fn.body.ops if op.opdef is warp_roles]
    consumer, producer = roles.regions
    done = [op for op in consumer.ops if op.name == "blocks_done"]
    consumer.ops = tuple(op for op in consumer.ops if op not in done)
    if last:  # it is there, and too early
        consumer.ops = (*done, *consumer.ops)

    assert ring_problems(fn, 4) == ["a block may end while others reach it"]
