"""Barriers order what they should, and their misuse and deadlocks are found."""

import numpy as np
import pytest
from ptx import run

from blocknumba.emulator import DeadlockError, RaceError, SynchronizationError

_SHARED = ".shared .align 16 .b8 buffer[4096];\n"
# Each thread writes its own word and reads the one at the other end of the block.
_WRITE = "mov.u32 %r2, buffer; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.b32 [%r3], %r1;"
_READ = """mov.u32 %r4, %ntid.x; sub.u32 %r5, %r4, %r1; mad.lo.u32 %r6, %r5, 4, %r2;
    ld.shared.b32 %r7, [%r6+-4]; mad.wide.u32 %rd9, %r1, 4, %rd1; st.global.b32 [%rd9], %r7;"""
_WARP = "shr.u32 %r10, %r1, 5;"


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_barrier_orders_writes_before_reads(seed):
    output = np.zeros(128, np.int32)
    run(f"{_WRITE} bar.sync 0; {_READ}", output, block=128, variables=_SHARED, seed=seed)
    assert output.tolist() == list(range(127, -1, -1))


def test_a_removed_barrier_is_a_race():
    with pytest.raises(RaceError, match="reads shared byte.*st.shared.b32.*nothing orders"):
        run(f"{_WRITE} {_READ}", np.zeros(128, np.int32), block=128, variables=_SHARED)


def test_a_missing_barrier_before_the_next_write_is_a_race():
    with pytest.raises(RaceError, match="may still be reading"):
        run(f"{_WRITE} bar.sync 0; {_READ} {_WRITE}", np.zeros(128, np.int32), block=128,
            variables=_SHARED)


def test_one_warp_needs_no_barrier():
    output = np.zeros(32, np.int32)
    run(f"{_WRITE} {_READ}", output, block=32, variables=_SHARED)
    assert output[0] == 31


def test_writing_the_same_value_twice_is_no_race():
    run("mov.u32 %r2, buffer; st.shared.b32 [%r2], 7;", block=128, variables=_SHARED)


def test_writing_different_values_is_a_race():
    with pytest.raises(RaceError):
        run(f"{_WARP} mov.u32 %r2, buffer; st.shared.b32 [%r2], %r10;", block=128,
            variables=_SHARED)


def test_a_named_barrier_orders_only_its_participants():
    body = f"""{_WARP} setp.ge.u32 %p1, %r10, 2; @%p1 bra OTHERS;
        {_WRITE} bar.sync 1, 64; bra READ;
        OTHERS: {_WRITE} bar.sync 2, 64; bra READ;
        READ: xor.b32 %r5, %r1, DISTANCE; mad.lo.u32 %r6, %r5, 4, %r2; ld.shared.b32 %r7, [%r6];"""
    run(body.replace("DISTANCE", "32"), block=128, variables=_SHARED)
    with pytest.raises(RaceError):
        run(body.replace("DISTANCE", "64"), block=128, variables=_SHARED, uninitialized=False)


def test_arrive_does_not_wait_and_orders_one_way():
    body = f"""{_WARP} mov.u32 %r2, buffer; setp.eq.u32 %p1, %r10, 0; @%p1 bra PRODUCE;
        bar.sync 3, 64; ld.shared.b32 %r7, [%r2]; mad.wide.u32 %rd9, %r1, 4, %rd1;
        st.global.b32 [%rd9], %r7; exit;
        PRODUCE: mov.b32 %r8, 5; st.shared.b32 [%r2], %r8; bar.arrive 3, 64;"""
    output = np.zeros(64, np.int32)
    run(body, output, block=64, variables=_SHARED)
    assert output[32:].tolist() == [5] * 32


def test_a_reducing_barrier_counts_all_threads():
    output = np.zeros(128, np.int32)
    run("""setp.lt.u32 %p1, %r1, 77; bar.red.popc.u32 %r2, 0, %p1;
        mad.wide.u32 %rd9, %r1, 4, %rd1; st.global.b32 [%rd9], %r2;""", output, block=128)
    assert set(output) == {77}


def test_a_deadlock_names_every_warp_and_its_line():
    with pytest.raises(DeadlockError) as caught:
        run(f"{_WARP} setp.eq.u32 %p1, %r10, 0; @%p1 bra A; bar.sync 1, 96; bra D;\n"
            "A: bar.sync 2, 64;\nD:", block=96)
    text = str(caught.value)
    assert "all 3 warps" in text and "warp 0 at PTX line" in text
    assert "waits for barrier 2, 32 of 64 threads there" in text
    assert "waits for barrier 1, 64 of 96 threads there" in text


def test_too_many_threads_at_a_barrier_are_found():
    with pytest.raises(SynchronizationError, match="96 threads at barrier 1, which is for 64"):
        run("bar.arrive 1, 64;", block=96)


@pytest.mark.parametrize("barrier, message", [
    ("bar.sync 16;", "barrier 16, accepted 0 to 15"),
    ("bar.sync 1, 48;", "48 threads, accepted a multiple"),
    ("setp.lt.u32 %p1, %r1, 8; @%p1 bra D; bar.sync 0; D: nanosleep.u32 1;", "24 of the 32"),
])
def test_misuse_of_a_barrier_is_found(barrier, message):
    with pytest.raises(SynchronizationError, match=message):
        run(barrier, block=32)


def test_warps_that_disagree_about_a_barrier_are_found():
    with pytest.raises(SynchronizationError, match="given 96 threads.*other warps say 64"):
        run(f"{_WARP} setp.eq.u32 %p1, %r10, 2; selp.b32 %r3, 64, 96, %p1; bar.arrive 1, %r3;",
            block=96)


def test_threads_that_ended_are_not_waited_for():
    output = np.zeros(128, np.int32)
    run(f"""{_WARP} setp.eq.u32 %p1, %r10, 3; @%p1 exit; bar.sync 0;
        mad.wide.u32 %rd9, %r1, 4, %rd1; st.global.b32 [%rd9], 1;""".replace(", 1;", ", %r4;"),
        output, block=128, seed=5)
    assert output[:96].all()


def test_atomics_on_shared_memory_do_not_race_with_each_other():
    output = np.zeros(1, np.int32)
    run(f"""mov.u32 %r2, buffer; setp.eq.u32 %p1, %r1, 0; mov.b32 %r3, 0;
        @%p1 st.shared.b32 [%r2], %r3; bar.sync 0; red.shared.add.u32 [%r2], 1; bar.sync 0;
        ld.shared.b32 %r4, [%r2]; @%p1 st.global.b32 [%rd1], %r4;""", output, block=256,
        variables=_SHARED)
    assert output[0] == 256
