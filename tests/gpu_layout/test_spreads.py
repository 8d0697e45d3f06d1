"""Reductions of what is computed of tiles that are broadcast."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.assign_layouts import assign_layouts
from blocknumba.gpu_layout.placement.spreads import spreads
from blocknumba.tile_ir.text.parser import parse

ROWS = "register:1.2;lane:4..64;warp:128.256/dim1:2;dim0:7"  # of 128x4
FEW = "register:;lane:1..16;warp:0.0/dim0:5"  # of 32, which all warps hold


def spreads_of(shape, wide, layout):
    """Those of a tile that is broadcast from a shape to another."""
    sizes = "x".join(map(str, shape)), "x".join(map(str, wide))
    fn = parse(f"kernel k(\n) {{\n  %x = constant {{value=1.0}} : tile<{sizes[0]}xfloat32>\n"
               f"  %y = broadcast %x : tile<{sizes[1]}xfloat32>\n  return\n}}\n")
    x, y = (op.result for op in fn.body.ops[:2])
    own = LinearLayout.parse(layout)
    return [str(found) for found in spreads((y,), {x: own}.get)]


def test_an_axis_that_is_broadcast_lies_in_registers():
    own = ROWS.replace("dim1:2;", "dim2:2;dim1:0;")

    assert spreads_of((128, 1, 4), (128, 4, 4), own) == [
        "register:4.8.1.2;lane:16..256;warp:512.1024/dim2:2;dim1:2;dim0:7"]


def test_copies_in_warps_give_way_to_the_outermost_bits():
    own = FEW.replace("/", "/dim2:0;dim1:0;")

    in_registers, in_warps = spreads_of((32, 1, 1), (32, 4, 8), own)

    assert in_registers == "register:1..16;lane:32..512;warp:0.0/dim2:3;dim1:2;dim0:5"
    assert in_warps == "register:1..4;lane:32..512;warp:8.16/dim2:3;dim1:2;dim0:5"


def test_what_no_thread_could_hold_is_left_out():
    own = FEW.replace("/", "/dim1:0;")

    assert spreads_of((32, 1), (32, 1024), own) == []


@bn.jit
def ranks(x, out, N: bn.constexpr):
    """Of each four how many are greater than each."""
    i = bn.program_id(0) * N + bn.arange(N)[:, None]
    four = x[i, bn.arange(4)[None, :]]
    out[i, bn.arange(4)[None, :]] = bn.sum(
        bn.cast(four[:, None, :] > four[:, :, None], bn.int32), axis=2)


@bn.jit
def pulls(x, mass, out, n, M: bn.constexpr, N: bn.constexpr):
    """Sums over pairs, a tile of the second of them at a time."""
    i = bn.program_id(0) * M + bn.arange(M)
    mine, total = x[i], bn.zeros(M, bn.float32)
    for start in range(0, n, N):
        j = start + bn.arange(N)
        gap = x[j][None, :] - mine[:, None]
        total += bn.sum(mass[j][None, :] * gap / (gap * gap + 1), axis=1)
    out[i] = total


def launch(kernel, grid, *arguments, **constants):
    return emulated_gpu.launch(kernel, grid, arguments, {"num_warps": 4, **constants})


@pytest.mark.parametrize("count", [256, 250])
def test_ranks_of_a_row_need_nothing_of_other_threads(count):
    x = np.random.default_rng().standard_normal((count, 4)).astype(np.float32)
    out = np.full((count, 4), -77, np.int32)

    compiled = launch(ranks, 1, x, out, N=256)

    np.testing.assert_array_equal(out, (x[:, None, :] > x[:, :, None]).sum(2))
    assert "shfl" not in compiled.ptx and ".shared" not in compiled.ptx


@pytest.mark.parametrize("count", [128, 100])
def test_sums_over_pairs_add_within_threads(count):
    random = np.random.default_rng()
    x, mass = (random.standard_normal(count).astype(np.float32) for _ in range(2))
    out = np.full(count, np.nan, np.float32)

    compiled = launch(pulls, 2, x, mass, out, count, M=64, N=64)

    gap = x[None, :].astype(float) - x[:, None]
    terms = mass * gap / (gap * gap + 1)
    np.testing.assert_allclose(out, terms.sum(1), atol=1e-5 * np.abs(terms).sum(1).max())
    assert "shfl" not in compiled.ptx


def test_a_single_element_that_no_thread_is_asked_for_has_its_fallback():
    fn = parse("""kernel k(
  %xp: ptr<float64> = pointer(x)
  %outp: ptr<float64> = pointer(out)
) {
  %line = arange {start=0, size=128} : tile<128xint32>
  %all = splat %xp : tile<128xptr<float64>>
  %at = offset %all, %line : tile<128xptr<float64>>
  %x = load %at : tile<128xfloat64>
  %one = extract %x {starts=(41,), shape=(1,)} : tile<1xfloat64>
  %r = reshape %one : float64
  store %outp, %r
  return
}
""", LinearLayout.parse)

    fn = assign_layouts(fn, LayoutOptions(num_warps=8))

    (op,) = (op for op in fn.body.ops if op.name == "extract")
    assert str(op.result.type.layout) == "register:;lane:0.0.0.0.0;warp:0.0.0/dim0:0"
