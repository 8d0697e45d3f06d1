"""Launches of native code on the CPU: memory order, masks, loops, threads, failures, prints."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.cpu_lower.kernel import lower
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import assemble
from blocknumba.dispatch.compile.native import NativeCode, StopReason
from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.launch.native import NativeLauncher
from blocknumba.errors import UNKNOWN, BlockAssertionError, BlockTypeError
from blocknumba.tile_ir.text.parser import parse


@bn.jit
def shift(x, n, BLOCK: bn.constexpr):
    i = bn.arange(0, BLOCK)
    inside = i < n
    bn.store(x + i + 1, bn.load(x + i, inside), inside)


@bn.jit
def copy_rows(x, out, n, BLOCK: bn.constexpr):
    total = bn.zeros((BLOCK,), bn.float32)
    for start in range(0, n, BLOCK):
        i = start + bn.arange(0, BLOCK)
        total += bn.load(x + bn.program_id(0) * n + i, i < n)
    bn.store(out + bn.program_id(0), bn.sum(total, 0))


CHECK = """kernel check(
  %limit: int32 = value(limit)
) {
  %i = arange {start=0, size=16} : tile<16xint32>
  %p = program_id {axis=0} : int32
  %n = constant {value=16} : int32
  %first = mul %p, %n : int32
  %firsts = splat %first : tile<16xint32>
  %index = add %firsts, %i : tile<16xint32>
  %limits = splat %limit : tile<16xint32>
  %inside = lt %index, %limits : tile<16xbool>
  assert %inside {message="too far"}
  return
}"""


@bn.jit
def show(x, BLOCK: bn.constexpr):
    bn.device_print("x", bn.load(x + bn.program_id(0) * BLOCK + bn.arange(0, BLOCK)))


@bn.jit
def swap(x, out, n, BLOCK: bn.constexpr):
    i = bn.arange(0, BLOCK)
    a, b = bn.load(x + i), bn.load(x + BLOCK + i)
    for _ in range(n):
        a, b = b, a + b
    bn.store(out + i, a)
    bn.store(out + BLOCK + i, b)


def native(kernel, *arguments, grid=1, **keywords):
    """Launch natively, whatever devices there are."""
    compiled = kernel[grid](*arguments, device="cpu", **keywords)
    assert "native" in compiled.asm
    return compiled


@pytest.mark.parametrize("n", [1, 7, 63, 64])
def test_a_store_does_not_change_what_the_same_nest_still_loads(n):
    x = np.arange(65, dtype=np.float32)
    expected = np.concatenate([x[:1], x[:n], x[n + 1:]])

    native(shift, x, n, BLOCK=64)

    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 200, 1000])
def test_both_versions_of_a_loop_give_the_sum(n):
    x = np.random.default_rng(n).integers(-99, 99, (37, n)).astype(np.float32)
    out = np.full(37, np.nan, np.float32)

    native(copy_rows, x, out, n, BLOCK=64, grid=37)

    assert out.tolist() == x.sum(axis=1).tolist()


def test_tiles_that_a_loop_exchanges_are_exchanged():
    x = np.random.default_rng(0).integers(0, 9, (2, 32))
    out = np.zeros_like(x)
    a, b = x

    native(swap, x, out, 5, BLOCK=32)

    for _ in range(5):
        a, b = b, a + b
    assert out.tolist() == [a.tolist(), b.tolist()]


def test_a_failed_assertion_names_program_and_element():
    lowered = lower(parse(CHECK), host())
    stops = [StopReason(f.kind, "too far", (16,), UNKNOWN) for f in lowered.failures]
    code = NativeCode(lowered.llvm_ir, assemble(lowered.llvm_ir, host()), lowered.name,
                      lowered.parameters, tuple(stops), (), lowered.versions)

    with pytest.raises(BlockAssertionError) as error:
        NativeLauncher("check", code).run_slots((4, 1, 1), [21])

    assert error.value.message == "too far: false in program (1, 0, 0), element (5,)"


def test_prints_come_in_the_order_of_programs(capsys):
    native(show, np.arange(8, dtype=np.int32), BLOCK=2, grid=4)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pid (0, 0, 0) idx (0) x: 0"
    assert [line.rpartition(" ")[2] for line in lines] == list("01234567")


def test_stats_tell_of_versions_and_masks():
    compiled = native(copy_rows, np.ones((2, 99), np.float32), np.zeros(2, np.float32), 99,
                      BLOCK=64, grid=2)

    stats = compiled.stats
    assert stats.versions == 1
    assert stats.masked >= 1 and stats.vector_loads >= 1
    assert stats.gathers == 0


@bn.jit
def neighbours(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[r, c] = x[r + -1, c] + x[r + 1, c] + x[r, c + -1] + x[r, c + 1]


@pytest.mark.parametrize("shape", [(1, 1), (3, 33), (16, 64), (41, 200)])
def test_neighbours_are_loaded_without_masks_where_the_first_and_the_last_are_inside(shape):
    padded = np.zeros((shape[0] + 2, shape[1] + 2), np.float32)
    x = padded[1:-1, 1:-1]
    x[...] = np.random.default_rng().integers(-99, 99, shape)  # whose sums are exact
    expected = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    padded[0] = padded[-1] = padded[:, 0] = padded[:, -1] = np.nan  # beyond the array
    out = np.full(shape, np.nan, np.float32)

    grid = bn.cdiv(shape[0], 4), bn.cdiv(shape[1], 32)
    stats = native(neighbours, x, out, ROWS=4, COLUMNS=32, grid=grid).stats

    np.testing.assert_array_equal(out, expected)
    assert stats.versions == 1 and stats.vector_loads >= 4


def test_debug_runs_in_the_interpreter():
    compiled = copy_rows[1](np.ones(4, np.float32), np.zeros(1, np.float32), 4, BLOCK=4,
                            device="cpu", debug=True)

    assert "native" not in compiled.asm


def test_another_device_is_an_error():
    with pytest.raises(BlockTypeError, match="device: given 'gpu', accepted \"cpu\" or None"):
        Options(device="gpu")
