"""The pool's native code, on functions that tell which programs they were given, and by whom."""

import ctypes
import os
import threading
import time

import numpy as np
import pytest

from blocknumba.cpu_lower.pool import WORTH_SHARING_S, Pool

RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.c_int64] * 2,
                       *[ctypes.c_int32] * 3)
LONG = 20 * WORTH_SHARING_S  # of a program
VERY_LONG = 20e-3  # so that threads wake meanwhile, however busy the machine is


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Four threads, whatever the machine has."""
    return Pool(4)


class Calls:
    """A function for the pool.  chunks: (first, stop, thread) of each call.

    seconds: that a program takes.  failing: programs that return their number.
    """

    def __init__(self, seconds: float, failing: tuple[int, ...] = ()):
        self.chunks: list[tuple[int, int, int]] = []
        self.cost = ctypes.c_double()
        self._seconds, self._failing = seconds, failing
        self._called = RUN(self._call)

    def _call(self, _arguments, first, stop, *_grid) -> int:
        self.chunks.append((first, stop, threading.get_ident()))
        if self._seconds:
            time.sleep(self._seconds * (stop - first))
        return next((program for program in range(first, stop) if program in self._failing), 0)

    def launch(self, pool: Pool, programs: int) -> int:
        """The status of a launch."""
        return pool.run(ctypes.cast(self._called, ctypes.c_void_p).value, 0, (programs, 1, 1),
                        self.cost)

    @property
    def programs(self) -> list[int]:
        """All programs that were run, in order."""
        return sorted(program for first, stop, _ in self.chunks for program in range(first, stop))

    @property
    def threads(self) -> set[int]:
        """The threads that ran some."""
        return {thread for _, _, thread in self.chunks}


@pytest.mark.parametrize("programs", [2, 3, 7, 64, 1000])
@pytest.mark.parametrize("launches", [1, 3])
def test_each_program_runs_once(pool, programs, launches):
    calls = Calls(LONG / programs)

    statuses = [calls.launch(pool, programs) for _ in range(launches)]

    assert statuses == [0] * launches
    assert calls.programs == sorted(list(range(programs)) * launches)


def test_a_launch_that_takes_long_is_shared_from_the_second_program_on(pool):
    calls, before = Calls(VERY_LONG), pool.shared

    calls.launch(pool, 4)

    assert pool.shared == before + 1
    assert len(calls.threads) > 1


def test_a_launch_that_takes_little_is_not_shared(pool):
    returns_at_once = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    cost, before = ctypes.c_double(1.0), pool.shared  # one tick a program

    pool.run(returns_at_once, 0, (8, 1, 1), cost)

    assert pool.shared == before


def test_the_calling_thread_begins_with_the_first_programs(pool):
    calls = Calls(LONG)
    for _ in range(3):
        calls.chunks.clear()
        calls.launch(pool, 64)

        assert next(first for first, _, thread in calls.chunks
                    if thread == threading.get_ident()) == 0


def test_the_first_failure_is_the_status_and_stops_the_others(pool):
    calls = Calls(LONG, failing=(40,))

    status = calls.launch(pool, 4000)

    assert status == 40
    assert len(calls.programs) < 4000


def test_a_thread_that_python_does_not_know_runs_all_of_its_launch(pool):
    """One of a parallel loop of Numba's, whose others are busy."""
    calls, before = Calls(LONG), pool.shared
    address = pool._struct.thread_state
    unknown = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: None)
    pool._struct.thread_state = ctypes.cast(unknown, ctypes.c_void_p).value
    try:
        calls.launch(pool, 16)
    finally:
        pool._struct.thread_state = address

    assert pool.shared == before
    assert calls.threads == {threading.get_ident()}


def test_launches_of_several_threads_at_once_run_all_of_their_programs(pool):
    launches = [Calls(LONG / 50) for _ in range(6)]
    threads = [threading.Thread(target=lambda calls=calls: [calls.launch(pool, 50)
                                                            for _ in range(5)])
               for calls in launches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for calls in launches:
        assert np.array_equal(np.bincount(calls.programs), np.full(50, 5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_child_of_a_fork_has_threads_of_its_own(pool):
    Calls(LONG).launch(pool, 8)
    child = os.fork()
    if child == 0:
        pool.forget_threads()  # as the pool of the process does
        calls = Calls(VERY_LONG)
        calls.launch(pool, 8)
        os._exit(0 if calls.programs == list(range(8)) and len(calls.threads) > 1 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
