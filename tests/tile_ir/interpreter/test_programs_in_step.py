"""Whole kernels on the interpreter: arguments, control flow, and the order of what happens."""

import io

import numpy as np
import pytest

from blocknumba.errors import BlockAssertionError, BlockTypeError, BlockValueError, LaunchError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.text.parser import parse

ADD = """kernel add(
  %x: ptr<float32> = pointer(x)
  %y: ptr<float32> = pointer(y)
  %out: ptr<float32> = pointer(out)
  %sx: int64 = stride(x, 0)
  %n: int64 = extent(out, 0)
) {
  %pid = program_id {axis=0} : int32
  %size = constant {value=8} : int32
  %first = mul %pid, %size : int32
  %r = arange {start=0, size=8} : tile<8xint32>
  %f = splat %first : tile<8xint32>
  %i = add %f, %r : tile<8xint32>
  %i64 = cast %i : tile<8xint64>
  %nn = splat %n : tile<8xint64>
  %m = lt %i64, %nn : tile<8xbool>
  %s = splat %sx : tile<8xint64>
  %ix = mul %i64, %s : tile<8xint64>
  %px = splat %x : tile<8xptr<float32>>
  %ax = offset %px, %ix : tile<8xptr<float32>>
  %a = load %ax, %m : tile<8xfloat32>
  %py = splat %y : tile<8xptr<float32>>
  %ay = offset %py, %i64 : tile<8xptr<float32>>
  %b = load %ay, %m : tile<8xfloat32>
  %c = add %a, %b : tile<8xfloat32>
  %po = splat %out : tile<8xptr<float32>>
  %ao = offset %po, %i64 : tile<8xptr<float32>>
  store %ao, %c, %m
  return
}"""


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 1000])
@pytest.mark.parametrize("step", [1, 3, -1, -2, 0])
def test_vectors_of_any_size_and_stride_add(size, step):
    memory = np.arange(3 * size + 1, dtype=np.float32)
    x = memory[:1].repeat(size) if not size else np.lib.stride_tricks.as_strided(
        memory[-1:] if step < 0 else memory, (size,), (4 * step,))
    y, out = np.linspace(0, 1, size, dtype=np.float32), np.full(size, -1, np.float32)

    run(parse(ADD), ((size + 7) // 8, 1, 1), {"x": x, "y": y, "out": out})

    np.testing.assert_array_equal(out, x + y)


def test_arguments_that_overlap_are_one_memory():
    memory = np.arange(9, dtype=np.float32)

    run(parse(ADD), (1, 1, 1), {"x": memory[:8], "y": memory[1:], "out": memory[1:]})

    np.testing.assert_array_equal(memory, [0, *(2 * i + 1 for i in range(8))])


@pytest.mark.parametrize("grid", [(0, 1, 1), (3, 0, 1), (1, 1, 0)])
def test_an_empty_grid_runs_nothing(grid):
    out = np.zeros(8, np.float32)

    run(parse(ADD), grid, {"x": out, "y": out + 1, "out": out})

    assert not out.any()


def test_an_array_of_another_dtype_is_refused():
    out = np.zeros(8, np.float32)
    with pytest.raises(BlockTypeError, match="^x: must be an array of float32, got float64$"):
        run(parse(ADD), (1, 1, 1), {"x": np.zeros(8), "y": out, "out": out})


def test_an_array_that_is_read_only_may_be_read_but_not_written():
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    run(parse(ADD), (1, 1, 1), {"x": x, "y": x, "out": out})
    np.testing.assert_array_equal(out, 2)

    with pytest.raises(BlockValueError, match="store: out is read-only"):
        run(parse(ADD), (1, 1, 1), {"x": out, "y": out, "out": x})


SCALAR = """kernel scalar(
  %v: {dtype} = value(v)
  %out: ptr<{dtype}> = pointer(out)
) {{
  store %out, %v
  return
}}"""


@pytest.mark.parametrize(("dtype", "value"), [
    ("int8", -128), ("uint8", 255), ("int16", 5), ("uint16", 65535), ("int32", -5),
    ("uint32", 2**32 - 1), ("int64", -2**63), ("uint64", 2**63 + 5), ("bool", True),
    ("float16", 42.0), ("float32", 0.1), ("float64", 0.1), ("bfloat16", -65536.0)])
def test_a_scalar_argument_arrives_exactly(dtype, value):
    fn = parse(SCALAR.format(dtype=dtype))
    out = np.zeros(1, fn.parameters and fn.body.args[0].type.dtype.numpy)

    run(fn, (1, 1, 1), {"v": value, "out": out})

    assert out[0] == np.array([value]).astype(out.dtype)[0]


def test_a_scalar_argument_that_does_not_fit_is_refused():
    with pytest.raises(BlockValueError, match="v: must fit int8, got 300"):
        run(parse(SCALAR.format(dtype="int8")), (1, 1, 1), {"v": 300, "out": np.zeros(1, np.int8)})


# control flow ---------------------------------------------------------------------------------

COLLATZ = """kernel collatz(
  %out: ptr<int32> = pointer(out)
) {
  %pid = program_id {axis=0} : int32
  %one = constant {value=1} : int32
  %two = constant {value=2} : int32
  %three = constant {value=3} : int32
  %zero = constant {value=0} : int32
  %start = add %pid, %one : int32
  %n, %count = loop %start, %zero : int32, int32 (%x: int32, %k: int32) {
    %done = le %x, %one : bool
    %next, %more = if %done : int32, int32 {
      yield %x, %k
    } else {
      %rest = mod %x, %two : int32
      %odd = eq %rest, %one : bool
      %y = if %odd : int32 {
        %t = mul %x, %three : int32
        %u = add %t, %one : int32
        yield %u
      } else {
        %h = floordiv %x, %two : int32
        yield %h
      }
      %l = add %k, %one : int32
      yield %y, %l
    }
    %go = gt %next, %one : bool
    continue_if %go, %next, %more
  }
  %p = offset %out, %pid : ptr<int32>
  store %p, %count
  return
}"""


def collatz(n):
    count = 0
    while n > 1:
        n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
    return count


def test_programs_diverge_in_loops_and_branches():
    out = np.zeros(300, np.int32)

    run(parse(COLLATZ), (300, 1, 1), {"out": out})

    assert out.tolist() == [collatz(i + 1) for i in range(300)]


RANGES = """kernel ranges(
  %start: ptr<{dtype}> = pointer(start)
  %stop: ptr<{dtype}> = pointer(stop)
  %step: ptr<{dtype}> = pointer(step)
  %count: ptr<int32> = pointer(count)
  %last: ptr<{dtype}> = pointer(last)
) {{
  %pid = program_id {{axis=0}} : int32
  %p0 = offset %start, %pid : ptr<{dtype}>
  %a = load %p0 : {dtype}
  %p1 = offset %stop, %pid : ptr<{dtype}>
  %b = load %p1 : {dtype}
  %p2 = offset %step, %pid : ptr<{dtype}>
  %c = load %p2 : {dtype}
  %zero = constant {{value=0}} : int32
  %one = constant {{value=1}} : int32
  %none = constant {{value=0}} : {dtype}
  %n, %l = for %a, %b, %c, %zero, %none : int32, {dtype} (%i: {dtype}, %k: int32, %x: {dtype}) {{
    %m = add %k, %one : int32
    yield %m, %i
  }}
  %p3 = offset %count, %pid : ptr<int32>
  store %p3, %n
  %p4 = offset %last, %pid : ptr<{dtype}>
  store %p4, %l
  return
}}"""


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_ranges_are_pythons_even_at_the_ends_of_the_dtype(dtype):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    ranges = [range(0, 5, 1), range(5, 0, 1), range(high - 3, high, 2), range(high - 3, high, 1),
              range(high, low, high), range(low, high, high), range(3, 3, 1)]
    if low < 0:
        ranges += [range(5, -5, -3), range(low + 3, low, -2), range(high, low, low),
                   range(0, low, low), range(-7, 7, 5)]
    bounds = {name: np.array([getattr(r, name) for r in ranges], dtype)
              for name in ("start", "stop", "step")}
    count, last = np.zeros(len(ranges), np.int32), np.zeros(len(ranges), dtype)

    run(parse(RANGES.format(dtype=dtype)), (len(ranges), 1, 1),
        {**bounds, "count": count, "last": last})

    assert count.tolist() == [len(r) for r in ranges]
    assert last.tolist() == [r[-1] if len(r) else 0 for r in ranges]


def test_a_range_whose_step_is_zero_is_an_error():
    arrays = {name: np.zeros(1, np.int32) for name in ("start", "stop", "step", "count", "last")}
    with pytest.raises(BlockValueError, match="range: step must not be 0"):
        run(parse(RANGES.format(dtype="int32")), (1, 1, 1), arrays)


IN_PLACE = """kernel reverse_twice(
  %x: ptr<int32> = pointer(x)
) {
  %r = arange {start=0, size=8} : tile<8xint32>
  %b = flip %r {axis=0} : tile<8xint32>
  %p = splat %x : tile<8xptr<int32>>
  %f = offset %p, %r : tile<8xptr<int32>>
  %g = offset %p, %b : tile<8xptr<int32>>
  %before = load %f : tile<8xint32>
  store %g, %before
  %after = load %f : tile<8xint32>
  %both = add %before, %after : tile<8xint32>
  store %f, %both
  return
}"""


def test_a_store_is_seen_by_later_loads_and_does_not_change_earlier_ones():
    x = np.arange(8, dtype=np.int32)

    run(parse(IN_PLACE), (1, 1, 1), {"x": x})

    np.testing.assert_array_equal(x, 7)


COUNTED = """kernel counted(
  %n: ptr<int32> = pointer(n)
) {
  %bound = load %n : int32
  %zero = constant {value=0} : int32
  %one = constant {value=1} : int32
  for %zero, %bound, %one (%i: int32) {
    %x = load %n : int32
    %y = add %x, %one : int32
    store %n, %y
    yield
  }
  return
}"""


def test_the_bound_of_a_range_is_read_once():
    n = np.array([5], np.int32)

    run(parse(COUNTED), (1, 1, 1), {"n": n})

    assert n[0] == 10


# waiting --------------------------------------------------------------------------------------

SPIN = """kernel spin(
  %lock: ptr<int32> = pointer(lock)
  %sum: ptr<int32> = pointer(sum)
) {
  %zero = constant {value=0} : int32
  %one = constant {value=1} : int32
  loop {
    %old = atomic_cas %lock, %zero, %one : int32
    %taken = ne %old, %zero : bool
    continue_if %taken
  }
  %a = load %sum : int32
  %b = add %a, %one : int32
  store %sum, %b
  %released = atomic_rmw %lock, %zero {kind="exchange"} : int32
  return
}"""


def test_a_spin_lock_lets_every_program_pass():
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)

    run(parse(SPIN), (64, 1, 1), {"lock": lock, "sum": total})

    assert total[0] == 64 and lock[0] == 0


def test_waiting_for_what_nobody_writes_is_an_error():
    lock, total = np.ones(1, np.int32), np.zeros(1, np.int32)
    with pytest.raises(LaunchError, match="waits for ever"):
        run(parse(SPIN), (4, 1, 1), {"lock": lock, "sum": total})


# printing and assertions ----------------------------------------------------------------------

PRINT = """kernel show(
  %x: ptr<{dtype}> = pointer(x)
) {{
  %r = arange {{start=0, size=2}} : tile<2xint32>
  %p = splat %x : tile<2xptr<{dtype}>>
  %a = offset %p, %r : tile<2xptr<{dtype}>>
  %v = load %a : tile<2x{dtype}>
  %i = program_id {{axis=0}} : int32
  print %v, %i {{prefix="v", hexadecimal={hexadecimal}}}
  print {{prefix="end"}}
  return
}}"""


def test_print_writes_one_line_per_element():
    output = io.StringIO()

    run(parse(PRINT.format(dtype="float32", hexadecimal=False)), (2, 1, 1),
        {"x": np.array([1.5, -2], np.float32)}, output=output)

    assert output.getvalue().splitlines() == [
        "pid (0, 0, 0) idx (0) v: (operand 0) 1.500000",
        "pid (0, 0, 0) idx (1) v: (operand 0) -2.000000",
        "pid (0, 0, 0) idx () v: (operand 1) 0",
        "pid (1, 0, 0) idx (0) v: (operand 0) 1.500000",
        "pid (1, 0, 0) idx (1) v: (operand 0) -2.000000",
        "pid (1, 0, 0) idx () v: (operand 1) 1",
        "pid (0, 0, 0) end",
        "pid (1, 0, 0) end"]


def test_hexadecimal_printing_shows_the_bits():
    output = io.StringIO()

    run(parse(PRINT.format(dtype="int16", hexadecimal=True)), (1, 1, 1),
        {"x": np.array([-1, 10], np.int16)}, output=output)

    assert [line.split()[-1] for line in output.getvalue().splitlines()[:3]] == [
        "0xffff", "0x000a", "0x00000000"]


ASSERT = """kernel check(
  %x: ptr<int32> = pointer(x)
) {
  %pid = program_id {axis=1} : int32
  %r = arange {start=0, size=4} : tile<4xint32>
  %p = splat %x : tile<4xptr<int32>>
  %a = offset %p, %r : tile<4xptr<int32>>
  %v = load %a : tile<4xint32>
  %i = splat %pid : tile<4xint32>
  %c = ne %v, %i : tile<4xbool>
  assert %c {message="v is not the program's"}
  return
}"""


def test_a_failing_assert_names_program_element_and_line():
    with pytest.raises(BlockAssertionError) as caught:
        run(parse(ASSERT), (1, 8, 1), {"x": np.array([9, 9, 5, 9], np.int32)})

    assert caught.value.message == ("v is not the program's: false in program (0, 5, 0), "
                                    "element (2,)")
    assert caught.value.loc.line == 11


def test_no_numpy_warning_reaches_the_user(recwarn):
    text = SCALAR.format(dtype="float32").replace(
        "  store", "  %d = div %v, %v : float32\n  store").replace("%out, %v", "%out, %d")
    out = np.zeros(1, np.float32)

    run(parse(text), (1, 1, 1), {"v": 0.0, "out": out})

    assert np.isnan(out[0]) and not recwarn.list
