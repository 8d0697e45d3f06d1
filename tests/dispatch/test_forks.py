"""A process that forks while other threads of it compile."""

import gc
import os
import threading
import time
import types

import numpy as np
import pytest

from blocknumba.dispatch.compile import kernel_code, pipeline
from blocknumba.dispatch.launch import forks
from blocknumba.dispatch.launch.forks import Compilations, Lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
SOURCE = """
import blocknumba as bn

@bn.jit
def triple(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = 3 * x[r]
"""
LIMIT_SECONDS = 20


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """Everything is compiled."""
    monkeypatch.setattr(kernel_code, "user_cache", lambda: None)


@pytest.fixture
def triple():
    module = types.ModuleType("user_program")
    exec(compile(SOURCE, "user_program.py", "exec"), module.__dict__)
    return module.triple


@pytest.fixture
def slow_typing(monkeypatch):
    """Typing that tells when it begins, and waits to be told to go on; in this process only."""
    begun, go_on, build, parent = threading.Event(), threading.Event(), pipeline.build, os.getpid()

    def wait_and_build(*arguments):
        begun.set()
        if os.getpid() == parent:
            go_on.wait(LIMIT_SECONDS)
        return build(*arguments)

    monkeypatch.setattr(pipeline, "build", wait_and_build)
    return types.SimpleNamespace(begun=begun, go_on=go_on)


def launch(kernel) -> list[float]:
    out = np.full(4, np.nan, np.float32)
    kernel[1](np.arange(4, dtype=np.float32), out, B=4, interpret=True)
    return out.tolist()


def succeeds_in_child(function) -> bool:
    """Whether function() is true in a child of a fork, before a limit of time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if function() else 2
        finally:
            os._exit(status)
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def test_a_fork_waits_for_a_compilation_and_the_child_launches(triple, slow_typing):
    thread = threading.Thread(target=launch, args=(triple,))
    thread.start()
    assert slow_typing.begun.wait(LIMIT_SECONDS)
    threading.Timer(0.1, slow_typing.go_on.set).start()

    assert succeeds_in_child(lambda: launch(triple) == [0, 3, 6, 9])

    thread.join(LIMIT_SECONDS)
    assert launch(triple) == [0, 3, 6, 9]


def test_a_child_compiles_what_another_thread_did_not_end(triple, slow_typing, monkeypatch):
    monkeypatch.setattr(forks, "MAX_WAIT_SECONDS", 0.05)
    thread = threading.Thread(target=launch, args=(triple,))
    thread.start()
    assert slow_typing.begun.wait(LIMIT_SECONDS)

    assert succeeds_in_child(lambda: launch(triple) == [0, 3, 6, 9] and gc.isenabled())

    slow_typing.go_on.set()
    thread.join(LIMIT_SECONDS)
    assert launch(triple) == [0, 3, 6, 9]


def test_a_thread_that_compiles_may_fork():
    compilations = Compilations()
    with compilations.running():
        compilations.before_fork()
        compilations.after_fork_in_parent()
        with compilations.running():
            pass

    with compilations.running():
        compilations.before_fork()
        compilations.after_fork_in_child()


def test_a_lock_that_this_thread_holds_is_its_own_after_a_fork():
    lock = Lock()
    with lock:
        lock.renew()

    with lock:
        pass
