"""Errors that debug=True finds."""

import numpy as np
import pytest

import blocknumba as bn

from blocknumba.errors import BlockAssertionError, BlockIndexError, BlockNameError, RaceError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.text.parser import parse

WRITE = """kernel write(
  %out: ptr<int32> = pointer(out)
  %step: int32 = value(step)
) {
  %pid = program_id {axis=0} : int32
  %first = mul %pid, %step : int32
  %row = offset %out, %first : ptr<int32>
  %r = arange {start=0, size=4} : tile<4xint32>
  %p = splat %row : tile<4xptr<int32>>
  %a = offset %p, %r : tile<4xptr<int32>>
  %v = splat %pid : tile<4xint32>
  store %a, %v
  return
}"""


def test_two_programs_that_write_one_element_are_a_race():
    with pytest.raises(RaceError) as caught:
        run(parse(WRITE), (4, 1, 1), {"out": np.zeros((8, 2), np.int32), "step": 3}, debug=True)

    assert caught.value.message == (
        "store: program (0, 0, 0) writes element (1, 1) of out, which program (1, 0, 0) writes in "
        "line 12; nothing orders the two")
    assert caught.value.loc.line == 12


def test_all_programs_that_write_the_same_elements_are_a_race():
    with pytest.raises(RaceError, match=r"writes element \(0,\) of out"):
        run(parse(WRITE), (2, 1, 1), {"out": np.zeros(4, np.int32), "step": 0}, debug=True)


def test_one_program_may_write_an_element_twice():
    text = WRITE.replace("  return", "  store %a, %v\n  return")
    out = np.zeros(16, np.int32)

    run(parse(text), (4, 1, 1), {"out": out, "step": 4}, debug=True)

    np.testing.assert_array_equal(out, np.repeat(range(4), 4))


def test_a_write_to_a_gap_of_a_strided_array_is_outside_it():
    memory = np.zeros((4, 8), np.int32)
    with pytest.raises(BlockIndexError, match=r"store: index \(0, 2\) is outside out of shape"):
        run(parse(WRITE), (1, 1, 1), {"out": memory[:, :2], "step": 4}, debug=True)


CHECK = """kernel check(
  %x: ptr<int32> = pointer(x)
  %n: int32 = extent(x, 1)
) {
  %pid = program_id {axis=0} : int32
  %r = arange {start=0, size=4} : tile<4xint32>
  %i = splat %pid : tile<4xint32>
  %k = add %i, %r : tile<4xint32>
  %e = splat %n : tile<4xint32>
  %three = constant {value=3} : int32
  %t = splat %three : tile<4xint32>
  %m = lt %r, %t : tile<4xbool>
  check_index %k, %e, %m {array="x", axis=1}
  return
}"""


def test_an_index_outside_its_axis_is_named_with_the_array():
    with pytest.raises(BlockIndexError) as caught:
        run(parse(CHECK), (9, 1, 1), {"x": np.zeros((2, 7), np.int32)}, debug=True)

    assert caught.value.message == ("x: index 7 is outside axis 1 of shape (2, 7), "
                                    "in program (5, 0, 0), element (2,) of the tile")


def test_indices_are_not_checked_where_masked_or_without_debug():
    run(parse(CHECK), (5, 1, 1), {"x": np.zeros((2, 7), np.int32)}, debug=True)
    run(parse(CHECK), (9, 1, 1), {"x": np.zeros((2, 7), np.int32)})


ASSUME = """kernel assumption(
  %n: int32 = value(n)
) {
  %four = constant {value=4} : int32
  %rest = mod %n, %four : int32
  %zero = constant {value=0} : int32
  %c = eq %rest, %zero : bool
  assume %c
  return
}"""


def test_a_false_assumption_is_found():
    run(parse(ASSUME), (1, 1, 1), {"n": 8}, debug=True)
    with pytest.raises(BlockAssertionError, match=r"assume: false in program \(0, 0, 0\)"):
        run(parse(ASSUME), (1, 1, 1), {"n": 6}, debug=True)


LACKING = """kernel lacking(
  %out: ptr<int32> = pointer(out)
  %n: int32 = value(n)
) {
  %p = program_id {axis=0} : int32
  %c = lt %p, %n : bool
  %x = if %c : int32 {
    yield %p
  } else {
    %u = undefined : int32
    yield %u
  }
  %three = constant {value=3} : int32
  %y = add %x, %three : int32
  %d = lt %p, %three : bool
  if %d {
    %a = offset %out, %p : ptr<int32>
    store %a, %y
    yield
  } else {
    yield
  }
  return
}"""


def test_a_value_that_a_program_lacks_is_found_where_it_is_used():
    with pytest.raises(BlockNameError) as caught:
        run(parse(LACKING), (8, 1, 1), {"out": np.zeros(8, np.int32), "n": 2}, debug=True)

    assert caught.value.message == ("y: a value is used that program (2, 0, 0) has not been given")
    assert caught.value.loc.line == 18


@pytest.mark.parametrize("n", [3, 5])
def test_a_value_may_be_lacking_where_it_is_not_used(n):
    out = np.zeros(8, np.int32)

    run(parse(LACKING), (8, 1, 1), {"out": out, "n": n}, debug=True)

    assert out.tolist() == [3, 4, 5, 0, 0, 0, 0, 0]


@bn.jit
def touch(x, out, limit, n):
    i = bn.arange(0, 16)
    out[bn.span(0, 16)] = bn.load(x.at[i], mask=i < limit)
    bn.store(x.at[i], 1, mask=i < limit)
    bn.atomic_add(x.at[n], 1, mask=n < limit)
    bn.atomic_cas(x.at[n], 1, 2, mask=n < limit)


@pytest.mark.parametrize("n", [7, 20, 2**31 - 1])
def test_an_index_that_a_mask_leaves_out_may_be_outside(n, device):
    x, out = np.full(8, 5, np.int32), np.full(16, -1, np.int32)

    device.run(touch, 1, x, out, 8, n, debug=True)

    assert out.tolist() == [5] * 8 + [0] * 8
    assert x.tolist() == [1] * 7 + [2 if n == 7 else 1]


@pytest.mark.parametrize("limit, n", [(9, 0), (8, -1)])
def test_an_index_that_a_mask_lets_through_may_not(limit, n):
    with pytest.raises(BlockIndexError, match="x: index (8|-1) is outside axis 0"):
        touch[1](np.zeros(8, np.int32), np.zeros(16, np.int32), limit, n, debug=True,
                 interpret=True)


@bn.jit
def rows(x, index, out, count):
    r, c = bn.span(0, 4), bn.span(0, 8)
    out[r, c] = bn.load(x.at[index[r], c], mask=(r.index < count)[:, None])


def test_a_row_index_is_checked_where_an_element_of_the_row_is_let_through():
    x, out = np.arange(40, dtype=np.int32).reshape(5, 8), np.zeros((4, 8), np.int32)
    index = np.array([4, 3, 9, 9], np.int32)

    rows[1](x, index, out, 2, debug=True, interpret=True)
    assert out[:, 0].tolist() == [32, 24, 0, 0]
    with pytest.raises(BlockIndexError, match=r"x: index 9 is outside axis 0 .* element \(2, 0\)"):
        rows[1](x, index, out, 3, debug=True, interpret=True)


@bn.jit
def store_at(x, n):
    x[n] = 1


@pytest.mark.parametrize("n", [2**63, 2**64 - 8])
def test_an_index_is_shown_as_it_was_given(n):
    with pytest.raises(BlockIndexError, match=f"x: index {n} is outside axis 0"):
        store_at[1](np.zeros(8, np.int32), np.uint64(n), debug=True, interpret=True)
