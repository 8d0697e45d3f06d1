"""Pipelined loops: what they compute, how many tiles are under way, and which loads stay."""

import re
from dataclasses import replace

import emulated_gpu
import numpy as np
import pytest
from pipelined_kernels import CASES, HOPPER_CASES, attention_like, matmul, row_sums, running
from tensor_core_kernels import tile_of

import blocknumba as bn

from blocknumba.emulator.errors import RaceError
from blocknumba.emulator.module import Module
from blocknumba.gpu_layout.async_copies.pipeline_loops import pipeline_loops
from blocknumba.gpu_layout.async_copies.pipelining import STAGES, LARGE_SHARED_STAGES, pipelining_of
from blocknumba.gpu_layout.dots.map_dots import map_dots
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.tile_ir.passes.pipeline import lower_accesses
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text

OPTIONS = LayoutOptions(arrays_are_disjoint=True)
PRODUCT = {"BM": 64, "BN": 64, "BK": 32}
F16 = ("f16[:,::1]:16",) * 2 + ("f32[:,::1]:16",)


def launches(cases):
    return [pytest.param(case, iterations, id=f"{case.kernel.__name__}-{iterations}")
            for case in cases for iterations in range(case.min_iterations, 6)]


def planned(kernel, types, constants, options=OPTIONS):
    """The pipelining of a kernel, with its dots mapped."""
    mapped = map_dots(tile_of(kernel, types, constants), options)
    return pipelining_of(lower_accesses(mapped), options)


def stages(plan):
    return [pipeline.stages for pipeline in plan.pipelines]


# what loops compute ------------------------------------------------------------------------------
@pytest.mark.parametrize("case, iterations", launches(CASES))
def test_a_pipelined_loop_computes_what_numpy_does(case, iterations):
    arguments, expected = case.arguments(iterations)

    compiled = emulated_gpu.launch(case.kernel, case.grid, arguments,
                                   {**case.constants, **case.options}, "sm_80")

    assert compiled.asm["gpu"].count("shared_allocate {copies=") == case.loads
    np.testing.assert_allclose(arguments[-1], expected, case.tolerance, case.tolerance)


@pytest.mark.parametrize("case, iterations", launches(HOPPER_CASES))
def test_the_tensor_cores_of_hopper_read_what_threads_copied(case, iterations):
    arguments, expected = case.arguments(iterations)

    compiled = emulated_gpu.launch(case.kernel, case.grid, arguments, case.constants, "sm_90a")

    code = compiled.asm["gpu"]
    overlapping = len(re.findall(r"wgmma_wait .*pending=1", code))
    # of an iteration, and of the copies of zeros beyond the last one
    assert code.count("async_copy_wait") == 1 + overlapping and " wgmma " in code
    np.testing.assert_allclose(arguments[-1], expected, case.tolerance, case.tolerance)


@bn.jit
def product_with_transposed(a, b, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    rows, columns, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(a.shape[1], BK):
        sums += a[rows, k] @ b[columns, k].T
    out[rows, columns] = sums


@pytest.mark.parametrize("depth, way", [(32, "asynchronous"), (64, "TMA")])
def test_threads_copy_short_rows_where_wgmma_of_iterations_overlaps(depth, way):
    generator = np.random.default_rng()
    a, b = (generator.standard_normal((size, 96)).astype(np.float16) for size in (64, 128))
    out = np.full((64, 128), np.nan, np.float32)

    compiled = emulated_gpu.launch(product_with_transposed, (1, 2), (a, b, out), {
        "BM": 64, "BN": 64, "BK": depth, "num_warps": 4})

    assert {load.way for load in compiled.stats.accesses if load.kind == "load"} == {way}
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.T.astype(np.float64), 1e-4, 1e-4)


def test_without_the_barrier_of_a_iteration_there_is_a_race(monkeypatch):
    (case,) = [case for case in CASES if case.options.get("num_stages") == 3]
    arguments, _ = case.arguments(5)
    wait = "cp.async.wait_group 1;"

    def without_barrier(compiled):
        before, after = compiled.asm["ptx"].split(wait)
        return Module.parse(before + wait + after.replace("bar.sync 0;", "", 1))

    monkeypatch.setattr(emulated_gpu, "_module", without_barrier)

    with pytest.raises(RaceError):
        emulated_gpu.launch(case.kernel, case.grid, arguments, {**case.constants, **case.options},
                            "sm_80")


def test_wgmma_is_waited_for_an_iteration_later_and_then_its_slot_is_filled():
    case = HOPPER_CASES[0]
    arguments, _ = case.arguments(5)

    compiled = emulated_gpu.launch(case.kernel, case.grid, arguments, case.constants, "sm_90a")

    loop = compiled.asm["gpu"].partition(" wgmma ")[2].partition(" yield ")[0]
    order = [word for word in ("wgmma_wait", "barrier", "async_copy ") if word in loop]
    assert sorted(order, key=loop.index) == ["wgmma_wait", "barrier", "async_copy "]
    assert "{pending=1}" in loop.partition("wgmma_wait")[2].partition("\n")[0]


def test_without_the_barrier_after_wgmma_there_is_a_race(monkeypatch):
    case = HOPPER_CASES[0]
    arguments, _ = case.arguments(5)
    wait = "wgmma.wait_group.sync.aligned 1;"
    two_warpgroups = {**case.constants, "BM": 128, "num_warps": 8}

    def without_barrier(compiled):
        before, after = compiled.asm["ptx"].split(wait)
        return Module.parse(before + wait + after.replace("bar.sync 0;", "", 1))

    monkeypatch.setattr(emulated_gpu, "_module", without_barrier)

    with pytest.raises(RaceError):
        emulated_gpu.launch(case.kernel, case.grid, arguments, two_warpgroups, "sm_90a")


# how many tiles are under way --------------------------------------------------------------------
@pytest.mark.parametrize("shared_bytes, expected",
                         [(99 * 1024, STAGES), (163 * 1024, LARGE_SHARED_STAGES)])
def test_dots_are_pipelined_by_default(shared_bytes, expected):
    plan = planned(matmul, F16, PRODUCT, replace(OPTIONS, shared_bytes=shared_bytes))

    assert stages(plan) == [expected]


def test_the_option_says_how_many_tiles_of_a_dot_are_under_way():
    assert stages(planned(matmul, F16, PRODUCT, replace(OPTIONS, num_stages=5))) == [5]


def test_a_loop_says_it_louder_than_the_option():
    types = ("f32[:,::1]:16", "f32[::1]:16")
    options = replace(OPTIONS, num_stages=5)

    assert stages(planned(row_sums, types, {"B": 512, "STAGES": 2}, options)) == [2]


def test_as_many_stages_as_fit():
    tiles = {"BM": 128, "BN": 256, "BK": 64}  # 48 KiB a stage

    plan = planned(matmul, F16, tiles, replace(OPTIONS, num_stages=4))

    assert stages(plan) == [2]


def test_an_inner_loop_is_pipelined_and_leaves_room_for_what_the_outer_one_holds():
    blocks = {"BM": 128, "BN": 64, "D": 128}  # 32 KiB for rows of q, 32 KiB a stage

    plan = planned(attention_like, ("f16[:,::1]:16",) * 3 + ("f32[:,::1]:16",), blocks)

    assert stages(plan) == [2]
    assert list(plan.reasons.values()) == ["a loop within its loop is pipelined"]


def test_conversions_find_room_beside_the_tiles_in_flight():
    options = replace(OPTIONS, shared_bytes=36 * 1024)

    laid_out = lay_out(tile_of(running, F16, PRODUCT), options, verify=True)

    assert laid_out.attrs["shared_bytes"] <= options.shared_bytes
    assert text(laid_out).count("copies=2") == 2


@bn.jit
def three_iterations(x, out, B: bn.constexpr):
    acc = bn.zeros((B,), bn.float32)
    for i in bn.range(0, 3, num_stages=6):
        acc += bn.load(x + (i * B + bn.arange(0, B)))
    bn.store(out + bn.arange(0, B), acc)


def test_no_more_stages_than_iterations():
    assert stages(planned(three_iterations, ("f32[::1]:16",) * 2, {"B": 512})) == [3]


@bn.jit
def plain_sum(x, out, B: bn.constexpr):
    acc = bn.zeros((B,), bn.float32)
    for piece in bn.spans(x.shape[0], B):
        acc += x[piece]
    out[0] = bn.sum(acc)


@pytest.mark.parametrize("num_stages, expected", [(None, []), (2, [2]), (1, [])])
def test_loops_without_dots_are_pipelined_where_the_option_says_so(num_stages, expected):
    plan = planned(plain_sum, ("f32[::1]:16",) * 2, {"B": 512},
                   replace(OPTIONS, num_stages=num_stages))

    assert stages(plan) == expected


def test_a_loop_that_stays_as_it_is_is_not_touched():
    fn = map_dots(tile_of(plain_sum, ("f32[::1]:16",) * 2, {"B": 512}), OPTIONS)

    assert pipeline_loops(fn, OPTIONS).body is fn.body


def test_a_pass_changes_nothing_it_was_given():
    fn = lower_accesses(map_dots(tile_of(matmul, F16, PRODUCT), OPTIONS))
    before = text(fn)

    pipeline_loops(fn, OPTIONS)

    assert text(fn) == before


# loads that stay as they are ---------------------------------------------------------------------
LOOP = """
kernel loop(
  %x: ptr<float16> = pointer(x) {divisibility=16}
  %y: ptr<int32> = pointer(y) {divisibility=16}
  %n: int32 = extent(x, 0) {minimum=0}
) {{
  %lanes = arange {{start=0, size=256}} : tile<256xint32>
  %xs = splat %x : tile<256xptr<float16>>
  %ys = splat %y : tile<256xptr<int32>>
  %yp = offset %ys, %lanes : tile<256xptr<int32>>
  %zeros = arange {{start=0, size=256}} : tile<256xint32>
  %true = constant {{value=True}} : bool
  %mask = splat %true : tile<256xbool>
  %other = constant {{value=-0.0}} : float16
  %others = splat %other : tile<256xfloat16>
  %from = constant {{value=0}} : int32
  %step = constant {{value=256}} : int32
  for %from, %n, %step (%i: int32) {{
    %is = splat %i : tile<256xint32>
    %at = add %is, %lanes : tile<256xint32>
    {body}
    yield
  }}
  return
}}
"""
LOAD = """%xp = offset %xs, %at : tile<256xptr<float16>>
    %a = load %xp : tile<256xfloat16>"""
STAGE = """
    %b = stage %a : tile<256xfloat16, offset:1..128/dim0:8>
    %c = shared_tile %b : tile<256xfloat16>
    print %c {prefix=""}"""
INDEXED = ("%index = load %y : int32\n    %first = mul %index, %step : int32\n    "
           "%firsts = splat %first : tile<256xint32>\n    "
           "%even = add %firsts, %lanes : tile<256xint32>\n    "
           + LOAD.replace("%xs, %at", "%xs, %even"))
REFUSED = {
    "it is volatile": LOAD.replace("load %xp", "load %xp {{volatile=True}}") + STAGE,
    "what is masked is not zero": LOAD.replace("load %xp", "load %xp, %mask, %others") + STAGE,
    "its threads would copy less than 4 bytes at a time":
        "%two = add %at, %at : tile<256xint32>\n    "
        + LOAD.replace("%xs, %at", "%xs, %two") + STAGE,
    "its address depends on loaded values": INDEXED + STAGE + "\n    store %yp, %at",
    "a check comes before it":
        "assert %true {{message=\"\"}}\n    " + LOAD + STAGE,
    "an atomic of the loop keeps it in order":
        LOAD + STAGE + "\n    %old = atomic_rmw %y, %i {{kind=\"add\"}} : int32",
    "a volatile load of the loop keeps it in order":
        "%flag = load %y {{volatile=True}} : int32\n    " + LOAD + STAGE,
    "x is written in the loop": LOAD + STAGE + "\n    store %xp, %c",
    "PTX of the loop may write it":
        LOAD + STAGE + "\n    %made = inline_asm %i {{assembly=\"\", constraints=\"=r,r\", "
        "dtypes=(\"int32\",), pure=False}} : int32",
}


def loop_with(body):
    return parse(LOOP.replace("{body}", body).replace("{{", "{").replace("}}", "}"),
                 LinearLayout.parse)


@pytest.mark.parametrize("reason, body", REFUSED.items(), ids=REFUSED)
def test_a_load_that_cannot_begin_early_says_why(reason, body):
    plan = pipelining_of(loop_with(body), OPTIONS)

    assert plan.pipelines == []
    assert list(plan.reasons.values()) == [reason]


def test_the_load_begins_early_where_none_of_that_is_so():
    plan = pipelining_of(loop_with(LOAD + STAGE), OPTIONS)

    assert stages(plan) == [STAGES] and plan.reasons == {}


def test_what_an_address_is_computed_from_is_loaded_early_too():
    plan = pipelining_of(loop_with(INDEXED + STAGE), OPTIONS)

    (pipeline,) = plan.pipelines
    assert [op.name for op in pipeline.addresses.ops].count("load") == 1


def test_other_arrays_may_be_written_in_the_loop():
    body = LOAD + STAGE + "\n    store %yp, %at"

    assert stages(pipelining_of(loop_with(body), OPTIONS)) == [STAGES]


def test_arrays_that_may_be_the_same_may_not():
    body = LOAD + STAGE + "\n    store %yp, %at"

    plan = pipelining_of(loop_with(body), replace(OPTIONS, arrays_are_disjoint=False))

    assert list(plan.reasons.values()) == ["arrays may share memory"]


def test_relaxed_atomics_on_other_arrays_may_come_in_any_order():
    body = LOAD + STAGE + """
    %old = atomic_rmw %y, %i {kind="add", semantics="relaxed"} : int32"""

    assert stages(pipelining_of(loop_with(body), OPTIONS)) == [STAGES]


def test_a_load_in_a_branch_stays_there():
    branch = LOAD + STAGE
    body = "if %true {\n    " + branch + "\n    yield\n    } else {\n    yield\n    }"

    plan = pipelining_of(loop_with(body), OPTIONS)

    assert list(plan.reasons.values()) == ["it is in a branch"]


def test_what_is_stored_from_shared_memory_is_no_operand_of_a_dot():
    body = LOAD + """
    %b = stage %a : tile<256xfloat16, offset:1..128/dim0:8>
    tma_store %x, %b, %i"""

    assert pipelining_of(loop_with(body), OPTIONS).pipelines == []


@bn.jit
def halving(a, b, out, n, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """Dots in a loop without a counter."""
    m, c = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    while n > 0:
        k = bn.span(n, BK)
        acc += a[m, k] @ b[k, c]
        n = n // 2
    out[m, c] = acc


def test_loops_that_do_not_count_stay_as_they_are():
    plan = planned(halving, (*F16, "i32"), PRODUCT)

    assert set(plan.reasons.values()) == {"its loop does not count"}


def test_two_stages_must_fit():
    plan = planned(matmul, F16, {"BM": 256, "BN": 256, "BK": 64})

    assert set(plan.reasons.values()) == {"two copies of its tile do not fit into shared memory"}


@pytest.mark.parametrize("change, reason", [
    ({"num_stages": 1}, "num_stages is 1"),
    ({"features": frozenset(("mma",))}, "the target has no asynchronous copies")])
def test_pipelining_can_be_turned_off_or_missing(change, reason):
    plan = planned(matmul, F16, PRODUCT, replace(OPTIONS, **change))

    assert plan.pipelines == [] and set(plan.reasons.values()) == {reason}
