"""Lanes diverge at branches and reconverge; functions are called and return."""

import numpy as np
import pytest
from ptx import module, run

from blocknumba.emulator import EmulatorError, Module, TrapError, UnknownInstructionError
from blocknumba.emulator.control_flow import EXIT, reconvergence_points

_STORE = "mad.wide.u32 %rd9, %r1, 4, %rd1; st.global.b32 [%rd9], %r2;"


@pytest.mark.parametrize("successors, expected", [
    ([[1], [EXIT]], [1, EXIT]),
    ([[1, 2], [3], [3], [EXIT]], [3, 3, 3, EXIT]),
    ([[1], [2, 1], [EXIT]], [1, 2, EXIT]),
    ([[1, 3], [2], [EXIT], [EXIT]], [EXIT, 2, EXIT, EXIT]),
    ([[1, 4], [2, 3], [3], [4], [EXIT]], [4, 3, 3, 4, EXIT]),
], ids=["line", "diamond", "loop", "two ends", "nested"])
def test_lanes_reconverge_at_the_immediate_post_dominator(successors, expected):
    assert reconvergence_points(successors) == expected


def test_lanes_that_diverge_reconverge():
    output = np.zeros(64, np.int32)
    run(f"""and.b32 %r3, %r1, 1; setp.eq.s32 %p1, %r3, 0;
        @%p1 bra EVEN; mov.b32 %r2, 100; bra JOIN;
        EVEN: mov.b32 %r2, 200;
        JOIN: activemask.b32 %r4; popc.b32 %r4, %r4; add.s32 %r2, %r2, %r4; {_STORE}""",
        output, block=64)
    assert output.tolist() == [232, 132] * 32


def test_each_lane_runs_its_own_number_of_iterations():
    output = np.zeros(96, np.int32)
    run(f"""mov.b32 %r2, 0; mov.b32 %r3, 0; rem.u32 %r4, %r1, 7;
        AGAIN: setp.ge.s32 %p1, %r3, %r4; @%p1 bra DONE;
        add.s32 %r2, %r2, %r1; add.s32 %r3, %r3, 1; bra AGAIN;
        DONE: {_STORE}""", output, block=96)
    assert output.tolist() == [thread * (thread % 7) for thread in range(96)]


def test_a_branch_inside_a_divergent_loop_reconverges_within_its_iteration():
    output = np.zeros(32, np.int32)
    run(f"""mov.b32 %r2, 0; mov.b32 %r3, 0;
        AGAIN: and.b32 %r4, %r3, 1; setp.eq.s32 %p2, %r4, 0; @%p2 bra SKIP;
        add.s32 %r2, %r2, 10;
        SKIP: add.s32 %r2, %r2, 1; add.s32 %r3, %r3, 1;
        setp.le.s32 %p1, %r3, %r1; @%p1 bra AGAIN; {_STORE}""", output)
    assert output.tolist() == [t + 1 + 10 * ((t + 1) // 2) for t in range(32)]


def test_a_thread_that_exits_leaves_the_others_alone():
    output = np.zeros(64, np.int32)
    run(f"""mov.b32 %r2, 5; and.b32 %r3, %r1, 3; setp.eq.s32 %p1, %r3, 0; @%p1 exit;
        bar.sync 0; {_STORE}""", output, block=64)
    assert output.tolist() == [0, 5, 5, 5] * 16


def test_a_guard_keeps_the_old_value_where_it_does_not_hold():
    output = np.zeros(32, np.int32)
    run(f"mov.b32 %r2, 1; setp.lt.u32 %p1, %r1, 5; @%p1 mov.b32 %r2, 7; {_STORE}", output)
    assert output.tolist() == [7] * 5 + [1] * 27


_FUNCTION = """.visible .func (.param .b32 out) triple(.param .b32 a)
{ .reg .b32 %r<8>; .reg .pred %p<2>; ld.param.b32 %r1, [a];
  setp.gt.s32 %p1, %r1, 20; @%p1 bra BIG;
  mul.lo.s32 %r2, %r1, 3; st.param.b32 [out], %r2; ret;
  BIG: mov.b32 %r2, -1; st.param.b32 [out], %r2; ret; }
"""


def test_a_function_returns_to_all_its_callers():
    output = np.zeros(32, np.int32)
    run(f"""mov.b32 %r2, %r1; setp.lt.u32 %p1, %r1, 3; @%p1 bra DONE;
        {{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1;
        call.uni (y), triple, (x); ld.param.b32 %r2, [y]; }}
        DONE: {_STORE}""", output, variables=_FUNCTION)
    assert output.tolist() == [t if t < 3 else 3 * t if t <= 20 else -1 for t in range(32)]


def test_trap_names_the_thread_and_the_line():
    with pytest.raises(TrapError, match=r"thread \(7, 0, 0\) of block \(0, 0, 0\)") as caught:
        run("setp.eq.u32 %p1, %r1, 7; @%p1 trap;")
    assert "trap" in caught.value.instruction and caught.value.ptx_line > 0


def test_an_endless_loop_is_an_error():
    with pytest.raises(EmulatorError, match="limit"):
        run("L: bra L;", instruction_limit=1000)


def test_an_unknown_instruction_is_an_error_only_where_it_is_reached():
    text = module("setp.eq.u32 %p1, %r1, 99; @%p1 bra L; bra D; L: frobnicate.b32 %r2, %r3; D:")
    found = Module.parse(text)
    found.launch("k", 1, 32, [np.zeros(1)])
    assert found.unknown_instructions() == [
        "frobnicate.b32: not an instruction that the emulator knows"]


def test_reaching_an_unknown_instruction_names_it():
    with pytest.raises(UnknownInstructionError, match="frobnicate"):
        run("frobnicate.b32 %r2, %r3;")


def test_blocks_and_threads_have_their_indices():
    output = np.zeros((2, 3, 2, 4, 3), np.int32)
    text = module("""
        mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y;
        mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y; mov.u32 %r7, %nctaid.x;
        mad.lo.u32 %r8, %r4, %r7, %r3; mad.lo.u32 %r9, %r8, %r6, %r2; mad.lo.u32 %r9, %r9, %r5, %r1;
        mul.lo.u32 %r10, %r9, 3; mad.wide.u32 %rd9, %r10, 4, %rd1;
        st.global.b32 [%rd9], %r8; st.global.b32 [%rd9+4], %r2; st.global.b32 [%rd9+8], %r1;""")
    Module.parse(text).launch("k", (3, 2), (4, 2), [output], resident_blocks=2)
    for by, bx, ty, tx in np.ndindex(2, 3, 2, 4):
        assert output[by, bx, ty, tx].tolist() == [by * 3 + bx, ty, tx]


def test_a_table_of_labels_sends_each_lane_to_its_own_branch():
    output = np.zeros(32, np.int32)
    run(f"""rem.u32 %r3, %r1, 3; brx.idx %r3, TABLE;
        TABLE: .branchtargets ONE, TWO, THREE;
        ONE: mov.b32 %r2, 10; bra JOIN;
        TWO: mov.b32 %r2, 20; bra JOIN;
        THREE: mov.b32 %r2, 30;
        JOIN: add.s32 %r2, %r2, 1; {_STORE}""", output)
    assert output.tolist() == [11 + 10 * (thread % 3) for thread in range(32)]
