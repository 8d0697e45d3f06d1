"""Atomics: every kind and dtype, once per element, and the old element everywhere."""

import numpy as np
import pytest
from kernels import assembled, emulated, kernel

from blocknumba.tile_ir.ir.types import DTYPES
from blocknumba.tile_ir.ops.memory import KINDS

COMBINE = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
           "or": np.bitwise_or, "xor": np.bitwise_xor, "exchange": lambda x, y: y}
CASES = [(kind, dtype.name) for kind, domain in KINDS.items() for dtype in sorted(domain, key=str)]


def scatter_kernel(kind, dtype, size, slots, attributes=""):
    """Each of size elements %v updates slot (i mod slots); the old elements are stored."""
    return kernel(f"""%tp: ptr<{dtype}> = pointer(t) {{}}
%vp: ptr<{dtype}> = pointer(v) {{}}
%op: ptr<{dtype}> = pointer(out) {{}}""", f"""
%i = arange {{size={size}, start=0}} : tile<{size}xint32>
%c = constant {{value={slots}}} : int32
%cs = splat %c : tile<{size}xint32>
%slot = mod %i, %cs : tile<{size}xint32>
%vs = splat %vp : tile<{size}xptr<{dtype}>>
%vq = offset %vs, %i : tile<{size}xptr<{dtype}>>
%v = load %vq : tile<{size}x{dtype}>
%ts = splat %tp : tile<{size}xptr<{dtype}>>
%tq = offset %ts, %slot : tile<{size}xptr<{dtype}>>
%old = atomic_rmw %tq, %v {{kind="{kind}"{attributes}}} : tile<{size}x{dtype}>
%os = splat %op : tile<{size}xptr<{dtype}>>
%oq = offset %os, %i : tile<{size}xptr<{dtype}>>
store %oq, %old""")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("kind, dtype", CASES)
def test_every_element_is_combined_once(kind, dtype, target):
    size, slots = 64, 64 if kind == "exchange" else 7
    values = np.random.default_rng(0).integers(0, 8, size).astype(DTYPES[dtype].numpy)
    found, old = np.ones(slots, values.dtype), np.zeros(size, values.dtype)
    wanted = found.copy()
    for i, value in enumerate(values):
        wanted[i % slots] = COMBINE[kind](wanted[i % slots], value)

    emulated(scatter_kernel(kind, dtype, size, slots), 1, found, values, old, target=target)

    np.testing.assert_array_equal(found, wanted)
    if kind == "exchange":
        assert (old == 1).all()


def test_an_unused_result_makes_a_reduction():
    text = scatter_kernel("add", "float32", 128, 7, ', semantics="relaxed"').replace(
        "store %oq, %old", "store %oq, %v")

    ptx = assembled(text).ptx

    assert "red.relaxed.gpu.global.add.f32" in ptx
    assert "atom." not in ptx


@pytest.mark.parametrize("semantics, fences", [("relaxed", 0), ("acquire", 1), ("release", 1),
                                               ("acq_rel", 2)])
def test_an_order_costs_fences(semantics, fences):
    text = scatter_kernel("add", "int32", 128, 7, f', semantics="{semantics}", scope="sys"')

    assert assembled(text).ptx.count("fence.acq_rel.sys") == fences


SLOT = kernel("""%cp: ptr<int32> = pointer(counter) {}
%op: ptr<int32> = pointer(out) {divisibility=16}""", """
%one = constant {value=1} : int32
%eight = constant {value=8} : int32
%slot = atomic_rmw %cp, %one {kind="add"} : int32
%first = mul %slot, %eight : int32
%row = offset %op, %first : ptr<int32>
%i = arange {size=8, start=0} : tile<8xint32>
%rows = splat %row : tile<8xptr<int32>>
%q = offset %rows, %i : tile<8xptr<int32>>
%id = program_id {axis=0} : int32
%ids = splat %id : tile<8xint32>
store %q, %ids""")


@pytest.mark.parametrize("num_warps", [1, 4])
def test_every_thread_gets_the_old_value_of_a_scalar(num_warps):
    counter, out = np.zeros(1, np.int32), np.full((16, 8), -1, np.int32)

    emulated(SLOT, 16, counter, out, num_warps=num_warps)

    assert counter[0] == 16
    assert (out == out[:, :1]).all()
    assert sorted(out[:, 0]) == list(range(16))


@pytest.mark.parametrize("num_warps", [1, 4])
def test_copies_of_an_element_get_its_old_value(num_warps):
    text = kernel("""%tp: ptr<int32> = pointer(t) {}
%op: ptr<int32> = pointer(out) {}""", """
%i = arange {size=2, start=0} : tile<2xint32>
%ts = splat %tp : tile<2xptr<int32>>
%tq = offset %ts, %i : tile<2xptr<int32>>
%one = constant {value=1} : int32
%ones = splat %one : tile<2xint32>
%old = atomic_rmw %tq, %ones {kind="add"} : tile<2xint32>
%column = reshape %old : tile<2x1xint32>
%wide = broadcast %column : tile<2x64xint32>
%flat = reshape %wide : tile<128xint32>
%j = arange {size=128, start=0} : tile<128xint32>
%os = splat %op : tile<128xptr<int32>>
%oq = offset %os, %j : tile<128xptr<int32>>
store %oq, %flat""")
    table, out = np.int32([10, 20]), np.zeros(128, np.int32)

    emulated(text, 1, table, out, num_warps=num_warps)

    assert table.tolist() == [11, 21]
    assert out.tolist() == [10] * 64 + [20] * 64


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "float16", "bfloat16",
                                   "uint16"])
def test_compare_and_swap_replaces_equals_and_tells_the_old_value(dtype):
    text = kernel(f"""%tp: ptr<{dtype}> = pointer(t) {{}}
%op: ptr<{dtype}> = pointer(out) {{}}""", f"""
%i = arange {{size=8, start=0}} : tile<8xint32>
%ts = splat %tp : tile<8xptr<{dtype}>>
%tq = offset %ts, %i : tile<8xptr<{dtype}>>
%one = constant {{value=1}} : {dtype}
%two = constant {{value=2}} : {dtype}
%ones = splat %one : tile<8x{dtype}>
%twos = splat %two : tile<8x{dtype}>
%old = atomic_cas %tq, %ones, %twos : tile<8x{dtype}>
%os = splat %op : tile<8xptr<{dtype}>>
%oq = offset %os, %i : tile<8xptr<{dtype}>>
store %oq, %old""")
    table = np.array([1, 0, 1, 3] * 2).astype(DTYPES[dtype].numpy)
    before, old = table.copy(), np.zeros_like(table)

    emulated(text, 1, table, old)

    np.testing.assert_array_equal(old, before)
    np.testing.assert_array_equal(table, np.where(before == 1, 2, before).astype(table.dtype))


def test_masked_elements_are_not_touched():
    text = kernel("%tp: ptr<int32> = pointer(t) {}\n%n: int32 = extent(t, 0) {}", """
%i = arange {size=64, start=0} : tile<64xint32>
%ns = splat %n : tile<64xint32>
%mask = lt %i, %ns : tile<64xbool>
%ts = splat %tp : tile<64xptr<int32>>
%tq = offset %ts, %i : tile<64xptr<int32>>
%old = atomic_rmw %tq, %i, %mask {kind="add"} : tile<64xint32>""")
    table = np.ones(40, np.int32)

    emulated(text, 1, table, 33)

    np.testing.assert_array_equal(table, 1 + np.where(np.arange(40) < 33, np.arange(40), 0))
