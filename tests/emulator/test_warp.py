"""Lanes of a warp exchange values."""

import numpy as np
import pytest
from ptx import evaluate, run

from blocknumba.emulator import SynchronizationError

_LANES = np.arange(32, dtype=np.uint32)


@pytest.mark.parametrize("mode, operand, control, source", [
    ("idx", 5, 31, lambda lane: 5), ("idx", 5, 0x1800 | 31, lambda lane: lane & 24 | 5),
    ("up", 3, 0, lambda lane: lane - 3 if lane >= 3 else lane),
    ("down", 4, 31, lambda lane: lane + 4 if lane < 28 else lane),
    ("down", 4, 0x1000 | 31, lambda lane: lane + 4 if lane % 16 < 12 else lane),
    ("bfly", 6, 31, lambda lane: lane ^ 6),
])
def test_a_shuffle_reads_the_lane_that_the_manual_says(mode, operand, control, source):
    result = evaluate(f"shfl.sync.{mode}.b32 $0, $1, {operand}, {control}, -1;", np.uint32,
                      _LANES * 10)
    assert result.tolist() == [10 * source(lane) for lane in range(32)]


def test_a_shuffle_says_which_lanes_were_in_range():
    result = evaluate("{ .reg .pred q; shfl.sync.up.b32 $0|q, $1, 8, 0, -1; "
                      "selp.b32 $0, 1, 0, q; }", np.uint32, _LANES)
    assert result.tolist() == [0] * 8 + [1] * 24


@pytest.mark.parametrize("mode, expected", [("any", 1), ("all", 0), ("uni", 0)])
def test_votes_combine_a_predicate(mode, expected):
    result = evaluate(f"{{ .reg .pred q; setp.lt.u32 q, $1, 4; vote.sync.{mode}.pred q, q, -1; "
                      "selp.b32 $0, 1, 0, q; }", np.uint32, _LANES)
    assert result.tolist() == [expected] * 32


def test_a_ballot_has_a_bit_for_each_lane():
    result = evaluate("{ .reg .pred q; setp.lt.u32 q, $1, 4; vote.sync.ballot.b32 $0, q, -1; }",
                      np.uint32, _LANES)
    assert set(result) == {15}


@pytest.mark.parametrize("opcode, expected", [
    ("add.u32", 496), ("max.s32", 31), ("min.u32", 0), ("or.b32", 31), ("xor.b32", 0),
    ("and.b32", 0)])
def test_redux_combines_a_warp(opcode, expected):
    assert set(evaluate(f"redux.sync.{opcode} $0, $1, -1;", np.uint32, _LANES)) == {expected}


def test_match_finds_lanes_of_equal_value():
    result = evaluate("match.any.sync.b32 $0, $1, -1;", np.uint32, _LANES % 4)
    assert result.tolist() == [0x11111111 << lane % 4 for lane in range(32)]


def test_one_lane_is_elected():
    result = evaluate("{ .reg .pred q; elect.sync _|q, -1; selp.b32 $0, 1, 0, q; }", np.uint32,
                      _LANES)
    assert result.tolist() == [1] + [0] * 31


def test_a_member_mask_must_name_the_lanes_that_are_there():
    with pytest.raises(SynchronizationError, match="0xffffffff.*0x0000ffff"):
        run("""setp.ge.u32 %p1, %r1, 16; @%p1 bra D;
            shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; D:""")


def test_warps_shuffle_apart():
    values = np.arange(96, dtype=np.uint32)
    result = evaluate("shfl.sync.idx.b32 $0, $1, 0, 31, -1;", np.uint32, values)
    assert result.tolist() == [lane // 32 * 32 for lane in range(96)]
