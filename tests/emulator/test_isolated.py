"""A call that fails does not fail the next ones."""

import os
import time

import pytest
from isolated import IsolatedCalls


def begin():
    """What a process does first."""
    os.environ["BEGUN"] = "yes"


def begun():
    return os.environ.get("BEGUN")


def fail(message):
    """As a driver call of a context that a fault has poisoned."""
    raise RuntimeError(message)


def lacking():
    """As the start of a machine without a GPU."""
    raise RuntimeError("no device")


@pytest.fixture
def calls():
    calls = IsolatedCalls(begin, limit_s=60)
    yield calls
    calls.close()


def test_calls_share_a_process_that_was_started_once(calls):
    first, second = calls(os.getpid), calls(os.getpid)

    assert first == second != os.getpid()
    assert calls(begun) == "yes"


def test_after_a_failure_there_is_a_new_process(calls):
    before = calls(os.getpid)

    with pytest.raises(RuntimeError, match="illegal instruction"):
        calls(fail, "illegal instruction")

    assert calls(os.getpid) != before


def test_a_start_that_fails_is_an_error_of_the_call():
    calls = IsolatedCalls(lacking, limit_s=60)

    with pytest.raises(RuntimeError, match="no device"):
        calls(os.getpid)


@pytest.mark.parametrize("function, argument", [(time.sleep, 60), (os._exit, 1)])
def test_a_process_that_hangs_or_dies_is_given_up(function, argument):
    calls = IsolatedCalls(begin, limit_s=3)

    with pytest.raises(RuntimeError, match="no answer within 3 s"):
        calls(function, argument)

    assert calls(begun) == "yes"
    calls.close()
