"""The order of programs follows memory; failures and results do not depend on it."""

from dataclasses import replace

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.cpu_lower.kernel import lower
from blocknumba.cpu_lower.plans.program_order import program_order
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import assemble
from blocknumba.dispatch.compile.ahead import specialized
from blocknumba.dispatch.compile.native import NativeCode, StopReason
from blocknumba.dispatch.compile.pipeline import tile_function
from blocknumba.dispatch.launch.native import NativeLauncher
from blocknumba.errors import UNKNOWN, BlockAssertionError
from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.text.parser import parse


def order_of(kernel, signature, **constants):
    """The order of a kernel's axes, the fastest first."""
    specialization, values = specialized(kernel, signature, constants, "sm_80", {})
    tile = tile_function(kernel.__wrapped__, replace(specialization, target=None), values, {})
    return program_order(tile, AffineExpressions(tile))


@bn.jit
def copy(x, out, B: bn.constexpr, FIRST: bn.constexpr = 0):
    r, c = bn.block(FIRST, B), bn.block(1 - FIRST, B)
    out[r, c] = x[r, c]


@bn.jit
def row_sums(x, out, heads, B: bn.constexpr):
    """Axis 1 counts two axes of x in one."""
    batch, head = bn.program_id(1) // heads, bn.program_id(1) % heads
    r = bn.block(0, B)
    out[batch, head, r] = x[batch, head, r]


@bn.jit(device="cpu")
def show(x, B: bn.constexpr):
    bn.device_print("", x[bn.program_id(0) * B, bn.program_id(1) * B])


CHECK = """kernel check(
  %x: ptr<int32> = pointer(x)
) {
  %i = program_id {axis=0} : int32
  %j = program_id {axis=1} : int32
  %k = program_id {axis=2} : int32
  %rows = constant {value=21} : int32
  %columns = constant {value=7} : int32
  %row = mul %i, %rows : int32
  %column = mul %j, %columns : int32
  %plane = add %row, %column : int32
  %index = add %plane, %k : int32
  %place = offset %x, %index : ptr<int32>
  %found = load %place : int32
  %one = constant {value=1} : int32
  %is_other = ne %found, %one : bool
  assert %is_other {message="one"}
  return
}"""


C, F = "f32[:,::1]:16, f32[:,::1]:16", "f32[::1,:]:16, f32[::1,:]:16"


@pytest.mark.parametrize("signature, first, fastest", [(C, 0, 1), (C, 1, 0), (F, 0, 0), (F, 1, 1)])
def test_the_axis_that_moves_by_the_smallest_stride_runs_fastest(signature, first, fastest):
    order = order_of(copy, signature, B=64, FIRST=first)
    assert order.index(fastest) < order.index(1 - fastest)


def test_a_quotient_of_a_program_id_moves_far():
    signature = "f32[:,:,::1]:16, f32[:,:,::1]:16, i32"
    order = order_of(row_sums, signature, B=64)
    assert order.index(0) < order.index(1)


def test_lines_of_prints_come_with_the_first_axis_fastest(capfd):
    x = np.arange(16, dtype=np.int32).reshape(4, 4)
    show[2, 2](x, B=2)
    values = [int(line.split()[-1]) for line in capfd.readouterr().out.splitlines()]
    assert values == [0, 8, 2, 10]


@pytest.mark.parametrize("place", [(0, 0, 0), (2, 1, 3), (4, 2, 6)])
def test_a_failure_names_its_program(place):
    x = np.zeros((5, 3, 7), np.int32)
    x[place] = 1
    fn = parse(CHECK)
    lowered = lower(fn, host())
    stops = [StopReason(f.kind, "one", (), UNKNOWN) for f in lowered.failures]
    code = NativeCode(lowered.llvm_ir, assemble(lowered.llvm_ir, host()), lowered.name,
                      lowered.parameters, tuple(stops), (), lowered.versions)

    assert program_order(fn, AffineExpressions(fn)) == (2, 1, 0)
    with pytest.raises(BlockAssertionError) as error:
        NativeLauncher("check", code).run_slots(x.shape, [x.ctypes.data])
    assert error.value.message == f"one: false in program {place}"


@pytest.mark.parametrize("order", "CF")
def test_every_program_of_a_grid_runs_once(order):
    generator = np.random.default_rng()
    x = np.asarray(generator.standard_normal((130, 75), np.float32), order=order)
    out = np.full_like(x, np.nan)
    copy[bn.cdiv(130, 32), bn.cdiv(75, 32)](x, out, B=32)
    np.testing.assert_array_equal(out, x)
