"""Coalesced layouts of accesses, and the cost of other layouts."""

import pytest

from blocknumba.gpu_layout.layouts.registers import blocked, reshape, transpose
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.coalescing import Accesses
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.text.parser import parse

OPTIONS = LayoutOptions(num_warps=4)


def accesses_of(count, dtype, divisibility, index="%i"):
    """(accesses, the load, the store) of a kernel that reads and writes a run of elements."""
    fn = parse(f"""
kernel copy(
  %x: ptr<{dtype}> = pointer(x) {{divisibility={divisibility}}}
  %s: int32 = stride(x, 0) {{divisibility=2}}
) {{
  %i = arange {{start=0, size={count}}} : tile<{count}xint32>
  %ss = splat %s : tile<{count}xint32>
  %strided = mul %i, %ss : tile<{count}xint32>
  %xs = splat %x : tile<{count}xptr<{dtype}>>
  %xp = offset %xs, {index} : tile<{count}xptr<{dtype}>>
  %a = load %xp : tile<{count}x{dtype}>
  store %xp, %a
  return
}}
""")
    load, store = (op for op in walk(fn.body) if op.name in ("load", "store"))
    return Accesses(fn, OPTIONS), load, store


@pytest.mark.parametrize(
    ("dtype", "divisibility", "vector"),
    [
        ("float32", 16, 4),
        ("float16", 16, 8),
        ("int8", 16, 16),
        ("float64", 16, 2),
        ("float32", 8, 2),
        ("float32", 4, 1),
        ("int8", 1, 1),
    ],
)
def test_a_vector_is_16_bytes_or_what_the_address_is_a_multiple_of(dtype, divisibility, vector):
    accesses, load, _ = accesses_of(4096, dtype, divisibility)

    assert accesses.layout(load) == blocked((4096,), (0,), vector, 4)


def test_all_threads_take_part_before_vectors_grow():
    accesses, load, _ = accesses_of(256, "float32", 16)

    assert accesses.layout(load) == blocked((256,), (0,), 2, 4)


def test_elements_with_an_unknown_stride_are_not_vectors():
    accesses, load, _ = accesses_of(1024, "float32", 16, "%strided")

    assert accesses.layout(load) == blocked((1024,), (0,), 1, 4)
    assert accesses.is_scattered(load)


def test_the_coalesced_layout_costs_least():
    accesses, load, _ = accesses_of(4096, "float32", 16)
    coalesced = blocked((4096,), (0,), 4, 4)
    scalar = blocked((4096,), (0,), 1, 4)
    strided = reshape(transpose(blocked((64, 64), (1, 0), 1, 4), (1, 0)), (4096,))

    assert accesses.slots(load, coalesced) < accesses.slots(load, scalar)
    assert accesses.slots(load, scalar) < accesses.slots(load, strided)


def test_a_store_costs_more_than_a_load():
    accesses, load, store = accesses_of(4096, "float32", 16)
    layout = accesses.layout(load)

    assert accesses.slots(load, layout) < accesses.slots(store, layout)


def test_lanes_run_along_the_axis_that_is_likely_nearest():
    fn = parse("""
kernel pixels(
  %x: ptr<float16> = pointer(x) {divisibility=16}
  %w: int32 = value(w) {divisibility=8}
  %far: int32 = value(far) {divisibility=16}
) {
  %i = arange {start=0, size=128} : tile<128xint32>
  %ws = splat %w : tile<128xint32>
  %q = floordiv %i, %ws : tile<128xint32>
  %r = mod %i, %ws : tile<128xint32>
  %row = mul %q, %ws : tile<128xint32>
  %place = add %row, %r : tile<128xint32>
  %pc = reshape %place : tile<128x1xint32>
  %pixels = broadcast %pc : tile<128x32xint32>
  %j = arange {start=0, size=32} : tile<32xint32>
  %fars = splat %far : tile<32xint32>
  %channel = mul %j, %fars : tile<32xint32>
  %cr = reshape %channel : tile<1x32xint32>
  %channels = broadcast %cr : tile<128x32xint32>
  %at = add %pixels, %channels : tile<128x32xint32>
  %xs = splat %x : tile<128x32xptr<float16>>
  %xp = offset %xs, %at : tile<128x32xptr<float16>>
  %a = load %xp : tile<128x32xfloat16>
  store %xp, %a
  return
}
""")
    load = next(op for op in walk(fn.body) if op.name == "load")
    accesses = Accesses(fn, OPTIONS)
    along_pixels, along_channels = (blocked((128, 32), order, 1, 4) for order in ((0, 1), (1, 0)))

    assert accesses.layout(load) == along_pixels
    assert not accesses.is_scattered(load)
    assert accesses.slots(load, along_pixels) < accesses.slots(load, along_channels) / 4


def test_neighbours_are_stored_by_neighbouring_lanes_where_places_are_loaded():
    fn = parse("""
kernel kept(
  %x: ptr<int32> = pointer(x) {divisibility=16}
  %places: ptr<int32> = pointer(places) {divisibility=16}
) {
  %i = arange {start=0, size=1024} : tile<1024xint32>
  %ps = splat %places : tile<1024xptr<int32>>
  %pp = offset %ps, %i : tile<1024xptr<int32>>
  %place = load %pp : tile<1024xint32>
  %xs = splat %x : tile<1024xptr<int32>>
  %there = offset %xs, %place : tile<1024xptr<int32>>
  store %there, %i
  %a = load %there : tile<1024xint32>
  store %pp, %a
  return
}
""")
    accesses = Accesses(fn, OPTIONS)
    _, scatter, gather, copy = (op for op in walk(fn.body) if op.name in ("load", "store"))

    assert accesses.layout(scatter) == blocked((1024,), (0,), 1, 4)
    assert accesses.slots(scatter, blocked((1024,), (0,), 1, 4)) < accesses.slots(
        scatter, blocked((1024,), (0,), 4, 4))
    assert accesses.layout(copy) == blocked((1024,), (0,), 4, 4)
    assert accesses.is_scattered(gather)
