"""Arrays in kernels: loads, stores and views are NumPy's, and edges need no masks."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import CPU, EMULATOR, Device
from launching import kernel_of, launch, op_names

import blocknumba as bn
from blocknumba.errors import BlockError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir import types
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.types import ArrayArgument, ScalarArgument
from blocknumba.tile_ir.ir.verifier import verify  # noqa: E402
from blocknumba.tile_ir.passes.lower_views import lower_views
from blocknumba.typing.frontend import build

RNG = np.random.default_rng(0)


def copy_block(x, out, B):
    r = bn.block(0, B)
    out[r] = x[r]


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 63, 64])
def test_edges_are_handled_by_the_shape(size):
    x, out = RNG.random(size, np.float32), np.zeros(size, np.float32)

    launch(copy_block, 4, {"B": 16}, x=x, out=out)

    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("view", [
    lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[3:4],
    lambda a: np.broadcast_to(a[0], a.shape)],
    ids=["rows", "columns", "backwards", "steps", "one row", "repeated"])
def test_any_strides_give_the_elements_of_the_view(view):
    x = view(RNG.random((10, 10), np.float32))
    out = np.zeros(x.shape, np.float32)

    def copy(x, out):
        r, c = bn.block(0, 8), bn.block(1, 8)
        out[r, c] = x[r, c]

    launch(copy, (2, 2), x=x, out=out)

    np.testing.assert_array_equal(out, x)


def test_a_span_before_the_array_reads_zeros():
    x, out = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)

    def shifted(x, out):
        r = bn.span(0, 8)
        out[r] = x[r - 3] + x[3 + r] * 100

    launch(shifted, x=x, out=out)

    padded = np.concatenate([np.zeros(3), x, np.zeros(3)])
    np.testing.assert_array_equal(out, padded[:8] + padded[6:14] * 100)


def test_a_write_outside_is_dropped():
    memory = np.zeros(24, np.float32)
    out = memory[8:16]

    def fill(out, start):
        out[bn.span(start, 8)] = 1.0

    launch(fill, out=out, start=-4)
    launch(fill, out=out, start=5)

    np.testing.assert_array_equal(memory, [0] * 8 + [1, 1, 1, 1, 0, 1, 1, 1] + [0] * 8)


@pytest.mark.parametrize("index", [
    lambda i, r, c: (i, r, c), lambda i, r, c: (r, i, c), lambda i, r, c: (r, c, i)])
def test_an_int_drops_its_axis(index):
    x, out = RNG.random((8, 8, 8), np.float32), np.zeros((8, 8), np.float32)

    def take(x, out, i, INDEX):
        r, c = bn.span(0, 8), bn.span(0, 8)
        out[r, c] = x[INDEX(i, r, c)]

    launch(take, x=x, out=out, i=5, constants={"INDEX": index})

    np.testing.assert_array_equal(out, x[index(5, slice(None), slice(None))])


GATHERS = [
    lambda r, c, s: (r, c, s), lambda r, c, s: (r[:, None], c[None, :], s),
    lambda r, c, s: (s, r, c), lambda r, c, s: (r, s, c), lambda r, c, s: (r[:, None], s, c),
    lambda r, c, s: (2, r, s), lambda r, c, s: (2, s, r), lambda r, c, s: (r, s, s),
    lambda r, c, s: (s, c[:, None], 1), lambda r, c, s: (r, 1, c), lambda r, c, s: (r, c, -1),
]


@pytest.mark.parametrize("index", GATHERS)
def test_int_tiles_gather_as_in_numpy(index):
    x = RNG.random((4, 4, 4), np.float32)
    rows, columns = (RNG.integers(0, 4, 4).astype(np.int32) for _ in range(2))
    expected = x[index(rows, columns, slice(None))]
    out = np.zeros(expected.shape, np.float32)

    def kernel(x, rows, columns, out, INDEX):
        s = bn.span(0, 4)
        tile = x[INDEX(rows[s], columns[s], s)]
        if out.ndim == 1:
            out[s] = tile
        elif out.ndim == 2:
            out[s, s] = tile
        else:
            out[s, s, s] = tile

    launch(kernel, x=x, rows=rows, columns=columns, out=out, constants={"INDEX": index})

    np.testing.assert_array_equal(out, expected)


def test_an_index_tile_out_of_bounds_reads_zero_and_writes_nothing():
    x, out = np.arange(1, 5, dtype=np.float32), np.full(4, -1, np.float32)
    where = np.array([-1, 3, 4, 0], np.int32)

    def gather(x, where, out):
        s = bn.span(0, 4)
        i = where[s]
        out[i] = x[i] + x[s]

    launch(gather, x=x, where=where, out=out)

    np.testing.assert_array_equal(out, [5, -1, -1, 6])


def test_a_run_time_negative_index_is_out_of_bounds_and_a_literal_one_counts_from_the_end():
    x, out = np.arange(1, 5, dtype=np.float32), np.zeros(4, np.float32)

    def ends(x, out, minus_one):
        out[0] = x[minus_one]
        out[1] = x[-1]
        out[-2] = x[-4]
        out[minus_one] = 9.0

    launch(ends, x=x, out=out, minus_one=-1)

    np.testing.assert_array_equal(out, [0, 4, 1, 0])


def test_slices_of_constant_length_are_spans():
    x = RNG.random((32, 32), np.float32)
    out = np.zeros((8, 8), np.float32)

    def kernel(x, out, m, i, B):
        out[:B, 0:B] = x[m : m + B, i * B : (i + 1) * B]

    launch(kernel, x=x, out=out, m=3, i=2, constants={"B": 8})

    np.testing.assert_array_equal(out, x[3:11, 16:24])


VIEWS = [
    lambda x, n: x[n], lambda x, n: x[n, n], lambda x, n: x[n, :, n], lambda x, n: x.T,
    lambda x, n: x.T[n].T, lambda x, n: x[..., n], lambda x, n: x[n:], lambda x, n: x[:n],
    lambda x, n: x[1:n], lambda x, n: x[-2:], lambda x, n: x[:-1],
    lambda x, n: x[::-1], lambda x, n: x[n:, ::-1, :-1], lambda x, n: x[n:n], lambda x, n: x[9:],
    lambda x, n: x[:, n:][n], lambda x, n: x[::2], lambda x, n: x[1::3, ::-2, n::4],
    lambda x, n: x[:3], lambda x, n: x[:4], lambda x, n: x[2:4, n:], lambda x, n: x[n:n + 3],
    lambda x, n: x[n:n + 2], lambda x, n: x[n:n + 2, :, 1:4], lambda x, n: x[:3, n, 0:5],
    lambda x, n: x[:8, n:n + 9],
    lambda x, n: x[n, ::4, n:n + 3:2], lambda x, n: x[4::9], lambda x, n: x[5::2],
    lambda x, n: x[::2].T[::-3, n], lambda x, n: x[::-1, ::2][n:, n],
]


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_views_are_those_of_numpy(number):
    x, view = RNG.random((5, 6, 7), np.float32), VIEWS[number]
    expected = view(x, 2)
    out = np.zeros(expected.shape, np.float32)

    def kernel(x, out, n, VIEW):
        v = VIEW(x, n)
        s = bn.span(0, 8)
        if v.ndim == 1:
            out[s] = v[s]
        elif v.ndim == 2:
            out[s, s] = v[s, s]
        else:
            out[s, s, s] = v[s, s, s]

    launch(kernel, x=x, out=out, n=2, constants={"VIEW": view})

    np.testing.assert_array_equal(out, expected)


def test_metadata_is_numpys():
    x, out = np.zeros((3, 5), np.float16), np.zeros(6, np.int32)

    def kernel(x, out):
        out[0] = x.shape[0]
        out[1] = x.shape[1]
        out[2] = x.size
        out[3] = x.strides[0]
        out[4] = x.ndim
        out[5] = x.dtype == bn.float16

    launch(kernel, x=x, out=out)

    np.testing.assert_array_equal(out, [3, 5, 15, 5, 2, 1])


def test_an_array_without_axes_is_read_and_written_with_an_empty_tuple():
    x, out = np.full((), 7, np.int32), np.zeros((), np.int32)

    def kernel(x, out):
        out[()] = x[()] + 1

    launch(kernel, x=x, out=out)

    assert out[()] == 8


def test_references_take_options():
    x, out = np.arange(6, dtype=np.float32), np.zeros(8, np.float32)

    def kernel(x, out):
        r = bn.span(0, 8)
        even = r.index % 2 == 0
        bn.store(out.at[r], bn.load(x.at[r], mask=even, other=-1.0), mask=r.index != 2)

    launch(kernel, x=x, out=out)

    np.testing.assert_array_equal(out, [0, -1, 0, -1, 4, -1, -1, -1])


def test_atomics_give_the_old_value():
    x, old = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)

    def kernel(x, old):
        r = bn.span(0, 4)
        old[r] = bn.atomic_add(x.at[r], 10)
        bn.atomic_max(x + 1, 100)
        bn.atomic_xchg(x.at[0], 5)

    launch(kernel, x=x, old=old)

    np.testing.assert_array_equal(old, [0, 1, 2, 3])
    np.testing.assert_array_equal(x, [5, 100, 12, 13])


def test_stored_values_are_converted_to_the_dtype_of_the_array():
    out = np.zeros((4, 4), np.int16)

    def kernel(out):
        r = bn.span(0, 4)
        out[0, r] = 2.75
        out[1, r] = r.index > 1
        out[2, r] = bn.full((4,), 3.5, bn.float32)
        out[r, 3] = r.index[:, None].ravel()

    launch(kernel, out=out)

    np.testing.assert_array_equal(out, [[2, 2, 2, 0], [0, 0, 1, 1], [3, 3, 3, 2], [0, 0, 0, 3]])


@pytest.mark.parametrize("loop", [
    lambda x, B: bn.spans(x.shape[0], B), lambda x, B: bn.grid_spans(x.shape[0], B)])
def test_loops_over_spans_see_every_element_once(loop):
    x, out = np.arange(37, dtype=np.int32), np.zeros(1, np.int32)

    def kernel(x, out, LOOP):
        total = bn.zeros((8,), bn.int32)
        for r in LOOP(x, 8):
            total += x[r]
        bn.atomic_add(out.at[0], bn.sum(total, axis=0))

    launch(kernel, 1, x=x, out=out, constants={"LOOP": loop})

    assert out[0] == x.sum()


@pytest.mark.parametrize("programs", [1, 3, 64])
def test_persistent_programs_share_all_tiles(programs):
    out = np.zeros((50, 30), np.int32)

    def kernel(out):
        for i, j in bn.persistent(out.shape, (8, 16), group=3):
            bn.atomic_add(out.at[i, j], 1)

    launch(kernel, programs, out=out)

    np.testing.assert_array_equal(out, np.ones((50, 30), np.int32))


def test_a_span_that_cannot_be_negative_has_no_lower_check():
    kernel = kernel_of(copy_block, constants={"B": 16}, x=np.zeros(8, np.float32),
                       out=np.zeros(8, np.float32))
    kernel = lower_views(kernel)

    assert "ge" not in op_names(kernel)
    assert op_names(kernel).count("lt") == 2


def test_positions_have_64_bits_when_an_array_needs_them():
    def kernel(x, out, i):
        r = bn.block(0, 8)
        out[r] = x[r, i] + x[3, r]

    long = ArrayArgument(types.float32, (None, 1), (None, None), 16, wide=True)
    short = ArrayArgument(types.float32, (1,), (None,), 16)
    fn = build(kernel, {"x": long, "out": short, "i": ScalarArgument(types.int32)})
    fn = lower_views(fn)
    verify(fn)

    offsets = [op.operands[1].type.dtype for op in walk(fn.body) if op.name == "offset"]
    assert offsets.count(types.int64) >= 4
    products = [op for op in walk(fn.body) if op.name == "mul"]
    assert all(op.result.type.dtype == types.int64 for op in products)

    x, out = RNG.random((8, 8), np.float32), np.zeros(8, np.float32)
    run(fn, (1, 1, 1), {"x": x, "out": out, "i": 2})
    np.testing.assert_array_equal(out, x[:, 2] + x[3])


def test_swapped_arrays_keep_their_strides():
    a = RNG.random((4, 4), np.float32)
    b = RNG.random((4, 8), np.float32)[:, ::2]
    out = np.zeros((2, 4, 4), np.float32)

    def kernel(a, b, out):
        s = bn.span(0, 4)
        for i in range(2):
            out[i, s, s] = a[s, s]
            a, b = b, a

    launch(kernel, a=a, b=b, out=out)

    np.testing.assert_array_equal(out, [a, b])


def test_element_ty_of_tritons_pointers_is_the_dtype_of_the_array():
    def convert(x, out):
        r = bn.span(0, 4)
        out[r] = (x[r] / 2).to(x.dtype.element_ty)

    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.float32)

    launch(convert, x=x, out=out)

    np.testing.assert_array_equal(out, x // 2)


@bn.jit
def swap_if_seven(x, out, i):
    out[0] = bn.atomic_cas(x.at[i], 7, 1)
    out[bn.span(1, 4)] = bn.atomic_cas(x.at[bn.span(2, 4)], 7, 2)
    out[5] = bn.atomic_cas(x, 7, 3, mask=i > 3)


@pytest.mark.parametrize("i", [0, 3, 5, -1])
def test_compare_and_swap_leaves_alone_what_is_outside_or_masked_off(i, device):
    x, out = np.full(5, 7, np.int32), np.full(6, -1, np.int32)
    expected, old = x.copy(), [0, 7, 7, 7, 0, 0]
    if 0 <= i < 5:
        old[0], expected[i] = 7, 1
    if i == 3:
        old[2] = 1
    if i > 3:
        old[5] = 7
    expected[2:] = [2 if v == 7 else v for v in expected[2:]]
    if i > 3:
        expected[0] = 3

    device.run(swap_if_seven, 1, x, out, i)

    assert (x.tolist(), out.tolist()) == (expected.tolist(), old)


SLICE_BOUNDS = np.arange(-11, 12)


def slices(x, bounds, out):
    a, b = bounds[bn.program_id(0)], bounds[bn.program_id(1)]
    part = x[a:b]
    out[bn.program_id(0), bn.program_id(1), 0] = part.shape[0]
    out[bn.program_id(0), bn.program_id(1), 1] = part[0]
    out[bn.program_id(0), bn.program_id(1), 2] = bn.sum(x[:a][b:][bn.span(0, 16)])


@pytest.mark.parametrize("kind", [CPU, EMULATOR])
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_run_time_bounds_of_slices_mean_what_they_mean_in_numpy(kind, dtype):
    bounds = SLICE_BOUNDS if kind == CPU else SLICE_BOUNDS[::4]
    x, out = np.arange(1, 9), np.full((len(bounds), len(bounds), 3), -7)

    Device(kind, num_warps=1).run(bn.jit(slices), out.shape[:2], x, bounds.astype(dtype), out)

    for i, a in enumerate(bounds):
        for j, b in enumerate(bounds):
            part = x[a:b]
            np.testing.assert_array_equal(
                out[i, j], [len(part), part[0] if len(part) else 0, x[:a][b:].sum()], f"{a}:{b}")


@bn.jit
def copied(x, out, LOAD: bn.constexpr, STORE: bn.constexpr):
    r = bn.span(0, 64)
    tile = bn.load(x.at[r], cache_modifier=LOAD)
    bn.store(out.at[r], tile, cache_modifier=STORE)
    p = bn.arange(0, 64)
    bn.store(out + 64 + p, bn.load(x + p, mask=p < 60, other=9, cache_modifier=LOAD), mask=p < 61,
             cache_modifier=STORE)


@pytest.mark.parametrize("load,store", [
    ("", ""), (".ca", ".wb"), (".cg", ".cg"), (".cs", ".cs"), (".cv", ".wt")])
def test_what_the_caches_are_told_changes_no_result(load, store, device):
    x, out = np.random.default_rng().random(64).astype(np.float32), np.full(128, 77, np.float32)

    device.run(copied, 1, x, out, load, store)

    assert out.tolist() == [*x, *x[:60], 9, 77, 77, 77]


@pytest.mark.parametrize("load,store,message", [
    (".wb", "", "load: cache_modifier must be one of ('', '.ca', '.cg', '.cs', '.cv'), got '.wb'"),
    ("", ".ca", "store: cache_modifier must be one of ('', '.wb', '.cg', '.cs', '.wt'), got '.ca'"),
])
def test_caches_are_told_what_they_know(load, store, message):
    x = np.zeros(64, np.float32)
    with pytest.raises(BlockError) as caught:
        copied[1](x, x, load, store, interpret=True)

    assert caught.value.message == message
