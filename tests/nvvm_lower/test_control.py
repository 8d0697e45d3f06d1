"""Control flow against Python's: loops of every direction, carried values, nesting."""

import numpy as np
import pytest
from kernels import assembled, emulated, kernel, lowered

OUT = "%op: ptr<int64> = pointer(out) {}"
BOUNDS = """%start: {0} = value(start) {{}}
%stop: {0} = value(stop) {{}}
%step: {0} = value(step) {{}}"""


ROUNDS = ("%n, %sum, %last = for %start, %stop, %step, %zero, %zero, %zero : int64, int64, int64 "
          "(%i: {}, %n.1: int64, %sum.1: int64, %last.1: int64)")


def counting_kernel(dtype, bounds=BOUNDS, constants=""):
    """Stores the number of iterations, the sum of the indices, and the last index, as int64."""
    parameters = "\n".join(filter(None, (OUT, bounds.format(dtype))))
    return kernel(parameters, f"""
{constants}
%zero = constant {{value=0}} : int64
%one = constant {{value=1}} : int64
%two = constant {{value=2}} : int64
{ROUNDS.format(dtype)} {{
  %wide = cast %i : int64
  %n.2 = add %n.1, %one : int64
  %sum.2 = add %sum.1, %wide : int64
  yield %n.2, %sum.2, %wide
}}
store %op, %n
%op1 = offset %op, %one : ptr<int64>
store %op1, %sum
%op2 = offset %op, %two : ptr<int64>
store %op2, %last""")


def iterations(*bounds):
    """The values that counting_kernel stores, by Python."""
    found = list(range(*bounds))
    return [len(found), sum(found), found[-1] if found else 0]


RANGES = [(0, 5, 1), (5, 0, 1), (0, 0, 1), (3, 20, 4), (88, -1, -8), (5, 10, -3), (10, 5, 1),
          (0, 0, -1), (0, 1, 100), (1, 0, -100), (-7, 7, 3), (7, -7, -3)]
AT_THE_BOUNDS = [(2**31 - 5, 2**31 - 1, 2), (2**31 - 2, 2**31 - 1, 2**31 - 1),
                 (-2**31, 2**31 - 1, 2**30), (2**31 - 1, -2**31, -2**31),
                 (-2**31 + 3, -2**31, -2), (-2**31, 2**31 - 1, 2**31 - 1)]


@pytest.mark.parametrize("bounds", RANGES + AT_THE_BOUNDS, ids=str)
def test_a_for_of_run_time_bounds_runs_the_iterations_of_range(bounds):
    out = np.full(3, -1)

    emulated(counting_kernel("int32"), 1, out, *bounds)

    assert out.tolist() == iterations(*bounds)


@pytest.mark.parametrize("bounds", RANGES + AT_THE_BOUNDS, ids=str)
def test_a_for_of_constant_bounds_runs_the_iterations_of_range(bounds):
    out = np.full(3, -1)
    constants = "\n".join(f"%{name} = constant {{value={value}}} : int32"
                          for name, value in zip(("start", "stop", "step"), bounds))

    emulated(counting_kernel("int32", bounds="", constants=constants), 1, out)

    assert out.tolist() == iterations(*bounds)


@pytest.mark.parametrize("dtype, bounds", [
    ("int8", (-128, 127, 100)), ("uint8", (250, 255, 3)), ("int64", (2**40, 2**40 + 9, 4)),
    ("int16", (5, -5, -3)), ("uint64", (3, 1, 1)), ("uint32", (1, 2**32 - 1, 2**31))])
def test_a_for_counts_in_every_integer_dtype(dtype, bounds):
    out = np.full(3, -1)
    typed = [np.dtype(dtype).type(bound) for bound in bounds]

    emulated(counting_kernel(dtype), 1, out, *typed)

    assert out.tolist() == iterations(*bounds)


def test_a_for_carries_tiles():
    text = kernel("%op: ptr<float32> = pointer(out) {divisibility=16}\n%n: int32 = value(n) {}", """
%zero = constant {value=0} : int32
%one = constant {value=1} : int32
%index = arange {size=512, start=0} : tile<512xint32>
%first = cast %index : tile<512xfloat32>
%sum = for %zero, %n, %one, %first : tile<512xfloat32> (%i: int32, %x: tile<512xfloat32>) {
  %y = add %x, %x : tile<512xfloat32>
  yield %y
}
%os = splat %op : tile<512xptr<float32>>
%oq = offset %os, %index : tile<512xptr<float32>>
store %oq, %sum""")
    out = np.zeros(512, np.float32)

    emulated(text, 1, out, 3)

    np.testing.assert_array_equal(out, np.arange(512) * 8)


COLLATZ = kernel("%op: ptr<int32> = pointer(out) {}\n%n: int32 = value(n) {}", """
%one = constant {value=1} : int32
%two = constant {value=2} : int32
%three = constant {value=3} : int32
%zero = constant {value=0} : int32
%x, %steps = loop %n, %zero : int32, int32 (%x.1: int32, %steps.1: int32) {
  %low = and %x.1, %one : int32
  %is.odd = eq %low, %one : bool
  %next = if %is.odd : int32 {
    %tripled = mul %x.1, %three : int32
    %grown = add %tripled, %one : int32
    yield %grown
  } else {
    %half = floordiv %x.1, %two : int32
    yield %half
  }
  %steps.2 = add %steps.1, %one : int32
  %goes.on = ne %next, %one : bool
  continue_if %goes.on, %next, %steps.2
}
store %op, %steps""")


def test_a_loop_runs_until_its_condition_fails():
    out = np.zeros(1, np.int32)

    emulated(COLLATZ, 1, out, 27)

    assert out[0] == 111


def test_an_if_without_results_runs_one_side():
    text = kernel("%op: ptr<int32> = pointer(out) {}\n%n: int32 = value(n) {}", """
%zero = constant {value=0} : int32
%is.positive = gt %n, %zero : bool
if %is.positive {
  store %op, %n
  yield
} else {
  yield
}""")
    positive, negative = np.zeros(1, np.int32), np.zeros(1, np.int32)

    emulated(text, 1, positive, 5)
    emulated(text, 1, negative, -5)

    assert (positive[0], negative[0]) == (5, 0)


def test_nested_loops_keep_values_of_the_outer_ones():
    text = kernel("%op: ptr<int32> = pointer(out) {}\n%n: int32 = value(n) {}", """
%zero = constant {value=0} : int32
%one = constant {value=1} : int32
%total = for %zero, %n, %one, %zero : int32 (%i: int32, %sum: int32) {
  %inner = for %i, %n, %one, %sum : int32 (%j: int32, %s: int32) {
    %p = mul %i, %j : int32
    %s.1 = add %s, %p : int32
    yield %s.1
  }
  yield %inner
}
store %op, %total""")
    out = np.zeros(1, np.int32)

    emulated(text, 1, out, 7)

    assert out[0] == sum(i * j for i in range(7) for j in range(i, 7))


def test_a_big_loop_body_is_not_unrolled():
    text = kernel("%op: ptr<float32> = pointer(out) {divisibility=16}\n%n: int32 = value(n) {}", """
%zero = constant {value=0} : int32
%one = constant {value=1} : int32
%index = arange {size=4096, start=0} : tile<4096xint32>
%first = cast %index : tile<4096xfloat32>
%sum = for %zero, %n, %one, %first : tile<4096xfloat32> (%i: int32, %x: tile<4096xfloat32>) {
  %y = mul %x, %first : tile<4096xfloat32>
  %z = add %y, %x : tile<4096xfloat32>
  yield %z
}
%os = splat %op : tile<4096xptr<float32>>
%oq = offset %os, %index : tile<4096xptr<float32>>
store %oq, %sum""")

    ptx = assembled(text).ptx

    assert ptx.count("mul.rn.f32") == 4096 // 128


def squaring_kernel(hints):
    """A loop of one multiplication per iteration."""
    parameters = "%op: ptr<float32> = pointer(out) {}\n%n: int32 = value(n) {}\n" \
                 "%s: float32 = value(s)"
    return kernel(parameters, f"""
%zero = constant {{value=0}} : int32
%one = constant {{value=1}} : int32
%product = for %zero, %n, %one, %s{hints} : float32 (%i: int32, %x: float32) {{
  %y = mul %x, %x : float32
  yield %y
}}
store %op, %product""")


@pytest.mark.parametrize("iterations", [1, 2, 8])
def test_a_loop_is_unrolled_as_often_as_its_hint_says(iterations):
    ptx = assembled(squaring_kernel(f" {{unroll={iterations}}}")).ptx

    rest = iterations > 1  # what is left of the iterations is a loop of its own
    assert ptx.count("mul.rn.f32") == iterations + rest


@pytest.mark.parametrize("iterations", [1, 2, 8])
def test_an_unrolled_loop_makes_the_same_iterations(iterations):
    out = np.zeros(1, np.float32)

    emulated(squaring_kernel(f" {{unroll={iterations}}}"), 1, out, 3, 0.5)

    assert out[0] == 0.5**8


@pytest.mark.parametrize("op, is_unrolled", [
    ("dot %half, %half, %acc.1", False), ("add %acc.1, %acc.1", True)])
def test_a_loop_of_dots_is_not_unrolled_however_short(op, is_unrolled):
    tile = "tile<16x16xfloat32>"
    text = kernel("%op: ptr<float32> = pointer(out) {divisibility=16}\n%n: int32 = value(n) {}\n"
                  "%s: float32 = value(s) {}", f"""
%zero = constant {{value=0}} : int32
%one = constant {{value=1}} : int32
%a = splat %s : {tile}
%half = cast %a : tile<16x16xfloat16>
%acc = for %zero, %n, %one, %a : {tile} (%i: int32, %acc.1: {tile}) {{
  %acc.2 = {op} : {tile}
  yield %acc.2
}}
%index = arange {{start=0, size=256}} : tile<256xint32>
%os = splat %op : tile<256xptr<float32>>
%oq = offset %os, %index : tile<256xptr<float32>>
%flat = reshape %acc : tile<256xfloat32>
store %oq, %flat""")

    nvvm = lowered(text).nvvm_ir

    assert ("llvm.loop.unroll.disable" in nvvm) == (not is_unrolled)
