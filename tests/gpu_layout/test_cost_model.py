"""The number of warps that a program gets when nobody says."""

from unittest import mock

import attention
import pytest

import blocknumba as bn
from blocknumba.dispatch.compile import pipeline
from blocknumba.gpu_layout.cost_model import default_num_warps, resident_threads
from blocknumba.gpu_layout.options import MIN_FEATURES
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.text.parser import parse


def kernel(size, loads=1, dtype="float32", reduces=False):
    """A kernel that loads tiles of a size, and reduces each or not."""
    lines = [f"  %v{i} = load %p : tile<{size}x{dtype}>" for i in range(loads)]
    lines += [f"  %r{i} = reduce %v{i} {{axis=0, kind=\"sum\"}} : {dtype}"
              for i in range(loads * reduces)]
    return parse("\n".join([
        "kernel k(", f"  %x: ptr<{dtype}> = pointer(x)", ") {",
        f"  %p = splat %x : tile<{size}xptr<{dtype}>>", *lines, "  return", "}", ""]))


@pytest.mark.parametrize("size, warps", [
    (1, 1), (256, 1), (512, 2), (1024, 4), (4096, 8), (8192, 8), (16384, 16), (65536, 16)])
def test_warps_grow_with_the_largest_tile(size, warps):
    assert default_num_warps(kernel(size), MIN_FEATURES) == warps


@pytest.mark.parametrize("size, warps", [
    (1, 1), (256, 1), (512, 2), (1024, 4), (4096, 4), (8192, 8), (16384, 16), (32768, 16)])
def test_few_warps_meet_in_a_reduction(size, warps):
    assert default_num_warps(kernel(size, reduces=True), MIN_FEATURES) == warps


@pytest.mark.parametrize("size, elementwise, reducing", [
    (512, 1, 1), (1024, 2, 1), (2048, 2, 1), (4096, 2, 2), (8192, 4, 4), (16384, 16, 16),
    (65536, 16, 16)])
def test_threads_hold_more_of_narrow_elements(size, elementwise, reducing):
    for dtype in ("float16", "int8"):
        assert default_num_warps(kernel(size, dtype=dtype), MIN_FEATURES) == elementwise
    narrow = kernel(size, dtype="float16", reduces=True)
    assert default_num_warps(narrow, MIN_FEATURES) == reducing


@bn.jit
def carrying(x, out, rows, N: bn.constexpr, CARRIED: bn.constexpr):
    c = bn.arange(N)
    first, second = bn.zeros((N,), bn.float32), bn.zeros((N,), bn.float32)
    for row in range(rows):
        values = x[row, c].astype(bn.float32)
        mean = bn.sum(values, 0)
        if CARRIED > 0:
            first += values - mean
        if CARRIED > 1:
            second += values * mean
    out[c] = first + second


@pytest.mark.parametrize("carried, warps", [(1, 16), (2, 16)])
def test_tiles_that_a_loop_carries_stay_in_registers(carried, warps):
    compiled = bn.compile(carrying, ("f16[:,::1]", "f32[::1]", "i32"),
                          {"N": 8192, "CARRIED": carried}, target="sm_90a")

    assert compiled.machine.threads == 32 * warps
    assert compiled.stats.spills == 0


@bn.jit
def sum_of_rows(x, starts, out, first, last, LOADED: bn.constexpr):
    part, r, c = bn.program_id(0), bn.arange(32), bn.arange(64)
    if LOADED:
        first, last = starts[part], starts[part + 1]
    total = bn.zeros((32, 64), bn.float32)
    for row in range(first, last, 32):
        total += bn.load(x + (row + r)[:, None] * 64 + c[None, :], (row + r < last)[:, None], 0)
    out[part, c] = bn.sum(total, 0)


@pytest.mark.parametrize("loaded, warps", [(False, 4), (True, 8)])
def test_programs_of_unequal_lengths_have_more_warps(loaded, warps):
    compiled = bn.compile(sum_of_rows, ("*fp32:16", "i32[::1]", "f32[:,::1]", "i32", "i32"),
                          {"LOADED": loaded}, target="sm_90a")

    assert compiled.machine.threads == 32 * warps


@bn.jit
def layernorm_of_a_row(x, w, b, out, N: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, N)
    row = x[i, c].to(bn.float32)
    centred = row - bn.sum(row) / N
    out[i, c] = centred * bn.rsqrt(bn.sum(centred * centred) / N) * w[c] + b[c]


@pytest.mark.parametrize("dtype, warps", [("f16", 4), ("f32", 8)])
def test_what_is_loaded_after_the_sums_is_packed(dtype, warps):
    row, vector = f"{dtype}[:,::1]:16", f"{dtype}[::1]:16"
    compiled = bn.compile(layernorm_of_a_row, (row, vector, vector, row), {"N": 8192},
                          target="sm_90a")

    assert compiled.machine.threads == 32 * warps
    assert compiled.stats.spills == 0


@bn.jit
def noise(x, out, seed, N: bn.constexpr):
    i, c = bn.program_id(0), bn.arange(N)
    out[i, c] = x[i, c] * bn.rand(seed, i * N + c)


@pytest.mark.parametrize("size, warps", [(1024, 4), (2048, 8), (8192, 16)])
def test_threads_compute_few_elements_that_take_many_ops(size, warps):
    compiled = bn.compile(noise, ("f16[:,::1]:16", "f16[:,::1]:16", "i32"), {"N": size},
                          target="sm_90a")

    assert compiled.machine.threads == 32 * warps


def test_windows_are_not_vectors():
    """Of nine loads of one tile's size."""
    assert default_num_warps(kernel(1024, 9, "float16"), MIN_FEATURES) == 4
    assert default_num_warps(kernel(1024, 3, "float16"), MIN_FEATURES) == 2


@pytest.mark.parametrize("rows, warps", [(16, 8), (4, 8), (2, 4)])
def test_warps_with_rows_of_their_own_meet_seldom(rows, warps):
    columns = 8192 // rows
    fn = parse("\n".join([
        "kernel k(", "  %x: ptr<float16> = pointer(x)", ") {",
        f"  %p = splat %x : tile<{rows}x{columns}xptr<float16>>",
        f"  %v = load %p : tile<{rows}x{columns}xfloat16>",
        f"  %w = cast %v : tile<{rows}x{columns}xfloat32>",
        f"  %r = reduce %w {{axis=1, kind=\"sum\"}} : tile<{rows}xfloat32>", "  return", "}", ""]))

    assert default_num_warps(fn, MIN_FEATURES) == warps


def sorting(size, kept, loaded):
    """A kernel that loads one tile, and sorts another or keeps its least elements."""
    return parse("\n".join([
        "kernel k(", "  %x: ptr<int32> = pointer(x)", ") {",
        f"  %p = splat %x : tile<{loaded}xptr<int32>>", f"  %v = load %p : tile<{loaded}xint32>",
        f"  %q = splat %x : tile<{size}xptr<int32>>", f"  %w = load %q : tile<{size}xint32>",
        f"  %s = sort %w {{axis=0, kept={kept}}} : tile<{kept}xint32>", "  return", "}", ""]))


@pytest.mark.parametrize("size, kept, warps", [
    (256, 256, 1), (1024, 1024, 2), (4096, 4096, 8), (16384, 16384, 16),
    (1024, 64, 1), (4096, 64, 2), (16384, 64, 8)])
def test_sorts_take_few_warps(size, kept, warps):
    assert default_num_warps(sorting(size, kept, size), MIN_FEATURES) == warps


def test_a_sort_beside_a_larger_tile_decides_nothing():
    assert default_num_warps(sorting(256, 256, 8192), MIN_FEATURES) == 8


def test_no_attempt_is_made_twice_with_as_many_registers():
    spilling = mock.Mock(return_value=mock.Mock(assembled=mock.Mock(spill_bytes=8)))
    with mock.patch.object(pipeline, "_machine_code", spilling):
        bn.compile(carrying, ("f16[:,::1]", "f32[::1]", "i32"), {"N": 4096, "CARRIED": 2},
                   target="sm_90a", num_warps=4)

    limits = [Target.parse("sm_90a").register_limit(warps, blocks)
              for _, _, warps, blocks, _ in (call.args for call in spilling.call_args_list)]
    assert len(limits) == len(set(limits)) > 1


def test_doubles_take_two_words():
    assert default_num_warps(kernel(4096, dtype="float64"), MIN_FEATURES) == 8


@pytest.mark.parametrize("loads, warps", [(1, 4), (2, 8), (3, 8), (24, 4)])
def test_a_thread_loads_a_vector_of_every_tile(loads, warps):
    assert default_num_warps(kernel(1024, loads), MIN_FEATURES) == warps


@pytest.mark.parametrize("loads, warps", [(1, 4), (2, 2), (3, 2), (24, 16)])
def test_threads_that_reduce_hold_a_part_of_every_tile(loads, warps):
    assert default_num_warps(kernel(1024, loads, reduces=True), MIN_FEATURES) == warps


@pytest.mark.parametrize("size, warps, threads", [
    (1024, 1, 1024), (2048, 1, 768), (4096, 1, 512), (8192, 8, 1024)])
def test_large_threads_get_more_registers(size, warps, threads):
    assert resident_threads(kernel(size), warps) == threads


@pytest.mark.parametrize("dtype, size, threads", [
    ("float16", 1024, 2048), ("float16", 4096, 1024), ("float32", 1024, 1024)])
def test_threads_with_few_narrow_elements_need_few_registers(dtype, size, threads):
    assert resident_threads(kernel(size, dtype=dtype), 4) == threads


@bn.jit
def passes(x, out, N: bn.constexpr, AGAIN: bn.constexpr):
    i, n = bn.program_id(0), x.shape[1]
    total = bn.zeros((N,), bn.float32)
    for c in bn.spans(n, N):
        total += x[i, c].to(bn.float32)
    mean = bn.sum(total) / n
    for c in bn.spans(n, N):
        out[i, c] = (x[i, c] if AGAIN else total) - mean


@pytest.mark.parametrize("dtype, size, again, warps", [
    ("f32", 2048, False, 4), ("f32", 2048, True, 16), ("f16", 4096, True, 4),
    ("f16", 32768, False, 16), ("f16", 32768, True, 32)])
def test_programs_that_read_a_row_twice_are_few(dtype, size, again, warps):
    compiled = bn.compile(passes, (f"{dtype}[:,::1]:16", "f32[:,::1]:16"),
                          {"N": size, "AGAIN": again}, target="sm_90a")

    assert compiled.machine.threads == 32 * warps


HOPPER = MIN_FEATURES | {"wgmma"}


def dot_kernel(shape, dtype="float16", depth=32, walks=False):
    """A kernel with a dot; shape: of its accumulator; walks: it stores one result after another."""
    extents = "x".join(map(str, shape[:-2]))
    extents = f"{extents}x" if extents else ""
    rows, columns = shape[-2:]
    made = f"dot %a, %b, %acc : tile<{extents}{rows}x{columns}xfloat32>"
    if walks:
        made = f"""%start = constant {{value=0}} : int32
  %stop = constant {{value=9}} : int32
  %step = constant {{value=1}} : int32
  for %start, %stop, %step (%i: int32) {{
    %d = {made}
    %pointers = splat %y : tile<{extents}{rows}x{columns}xptr<float32>>
    store %pointers, %d
    yield
  }}"""
    return parse(f"""kernel k(
  %x: ptr<{dtype}> = pointer(x)
  %y: ptr<float32> = pointer(y)
) {{
  %one = load %x : {dtype}
  %a = splat %one : tile<{extents}{rows}x{depth}x{dtype}>
  %b = splat %one : tile<{extents}{depth}x{columns}x{dtype}>
  %zero = constant {{value=0.0}} : float32
  %acc = splat %zero : tile<{extents}{rows}x{columns}xfloat32>
  {"" if walks else "%outside = "}{made}
  return
}}
""")


@pytest.mark.parametrize("shape, warps", [
    ((16, 16), 1), ((32, 16), 2), ((32, 32), 4), ((64, 64), 4), ((128, 64), 4),
    ((64, 256), 4), ((128, 256), 8), ((256, 128), 8), ((256, 256), 16), ((1, 1024), 4),
    ((16, 64, 64), 16)])
def test_a_warp_has_as_many_sums_as_leave_registers_for_the_operands(shape, warps):
    assert default_num_warps(dot_kernel(shape), HOPPER) == warps
    assert default_num_warps(dot_kernel(shape, "float32"), MIN_FEATURES) == warps


def test_one_warpgroup_makes_a_tile_of_sums_unless_a_program_makes_many_tiles():
    assert default_num_warps(dot_kernel((128, 128)), HOPPER) == 4
    assert default_num_warps(dot_kernel((128, 128), walks=True), HOPPER) == 8
    assert default_num_warps(dot_kernel((128, 128), "float32"), HOPPER) == 8


@pytest.mark.parametrize("shape, warps", [
    ((16, 16), 1), ((64, 64), 4), ((128, 128), 4), ((128, 256), 8), ((256, 256), 16)])
def test_warps_of_mma_have_64_by_64_sums(shape, warps):
    assert default_num_warps(dot_kernel(shape), MIN_FEATURES) == warps


@pytest.mark.parametrize("shape, walks, threads", [
    ((64, 64), True, 512), ((64, 64), False, 1024), ((64, 128), False, 512),
    ((128, 128), False, 256), ((128, 256), False, 256)])
def test_products_get_registers_for_their_operands(shape, walks, threads):
    fn = dot_kernel(shape, walks=walks)

    assert resident_threads(fn, default_num_warps(fn, HOPPER)) == threads


@bn.jit
def product(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


@pytest.mark.parametrize("D, rows, keys, warps", [
    (128, 128, 64, 4), (64, 128, 64, 4), (128, 64, 64, 4), (128, 128, 128, 8)])
def test_attention_has_one_warpgroup_where_that_has_the_registers(D, rows, keys, warps):
    compiled = bn.compile(attention.attention, ("f16[:,:,:,::1]:16",) * 4 + ("float",),
                          {"BM": rows, "BN": keys, "D": D, "CAUSAL": False}, target="sm_90a")

    assert f" {warps} warps" in str(compiled.stats)
    assert compiled.stats.spills == 0


@pytest.mark.parametrize("tile, copies", [
    ((128, 128, 32), 4), ((128, 128, 64), 6), ((128, 256, 64), 3), ((64, 64, 64), 6)])
def test_rings_leave_room_for_a_second_program_that_has_registers(tile, copies):
    compiled = bn.compile(product, ("f16[:,::1]:16",) * 3, dict(zip(("BM", "BN", "BK"), tile)),
                          target="sm_90a")

    assert {ring.copies for ring in compiled.stats.rings} == {copies}
