"""Threads that run programs of one launch, side by side with the thread that launches.

What they do is in `pool_code.py`; here they are started, and known to LLVM and ctypes.  The threads
are Python's, and are in native code for ever, where they hold no lock of Python's.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import time
from collections.abc import Callable

from blocknumba.cpu_lower.pool_code import (
    SHARE, TICKS, WORK, PartStruct, PoolStruct, WorkerStruct, pool_code,
)
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import Loaded, assemble_quickly

WORTH_SHARING_S = 15e-6  # several times what it takes to wake threads
IDLE_S = 20e-6  # for which threads look for more work before they sleep
_MEASURED_S = 500e-6  # of the clock
_SHARE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64,
                          *[ctypes.c_int32] * 3, ctypes.c_void_p)
_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_START = ctypes.CFUNCTYPE(None)


class Pool:
    """The threads of this process that wait for launches.

    threads: with the calling one.
    """

    def __init__(self, threads: int):
        self.threads = threads
        text = pool_code(host().triple)
        code = Loaded(assemble_quickly(text, host()), text)
        self.share: int = code.address(SHARE)
        self._run = _SHARE(self.share)
        self._work = _WORK(code.address(WORK))
        self._workers = (WorkerStruct * max(1, threads - 1))()
        self._parts = (PartStruct * threads)()
        self._start_called = _START(self._start)
        rate = _ticks_per_second(ctypes.CFUNCTYPE(ctypes.c_int64)(code.address(TICKS)))
        lock, python = _python_function("PyThread_allocate_lock", ctypes.c_void_p), _address_of
        for worker in self._workers:
            worker.lock = lock()
        self._struct = PoolStruct(
            worth=WORTH_SHARING_S * rate, idle=int(IDLE_S * rate),
            start=ctypes.cast(self._start_called, ctypes.c_void_p).value,
            workers=ctypes.addressof(self._workers), parts=ctypes.addressof(self._parts),
            acquire=python("PyThread_acquire_lock"), release=python("PyThread_release_lock"),
            give_way=_give_way(), thread_state=python("PyGILState_GetThisThreadState"))
        self.address: int = ctypes.addressof(self._struct)
        self._kept = code
        # threads are in the code and in the structures until the process ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.__dict__))

    @property
    def shared(self) -> int:
        """Number of launches that were shared among threads."""
        return self._struct.generation

    def run(self, function: int, arguments: int, grid: tuple[int, int, int],
            cost: ctypes.c_double) -> int:
        """Run all programs of a grid; the first status that is not 0, or 0.

        function, arguments: addresses, as of cpu_lower/kernel.py.
        cost: of a program of the kernel, which is kept there; 0 at first.
        While the pool works for another launch, the calling thread runs all of them.
        """
        x, y, z = grid
        return self._run(self.address, function, arguments, x * y * z, x, y, z,
                         ctypes.addressof(cost))

    def _start(self) -> None:
        """Start the workers; called by the first launch that is shared."""
        acquire = _python_function("PyThread_acquire_lock", ctypes.c_int, ctypes.c_void_p,
                                   ctypes.c_int)
        for number in range(self.threads - 1):
            acquire(self._workers[number].lock, 0)
            threading.Thread(target=self._work, args=(self.address, number), daemon=True,
                             name=f"blocknumba-{number + 1}").start()
            self._struct.started = number + 1

    def forget_threads(self) -> None:
        """In the child of a fork, where they are not: start anew."""
        struct, lock = self._struct, _python_function("PyThread_allocate_lock", ctypes.c_void_p)
        struct.generation = struct.state = struct.busy = struct.started = 0
        for worker in self._workers:
            worker.asleep, worker.lock = 0, lock()


def _python_function(name: str, result: type, *parameters: type) -> Callable:
    return ctypes.PYFUNCTYPE(result, *parameters)((name, ctypes.pythonapi))


def _address_of(name: str) -> int:
    """The address of a function of Python's."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def _give_way() -> int:
    """The address of the system's function that lets another thread run."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value


def _ticks_per_second(ticks: Callable[[], int]) -> float:
    """The rate of the processor's clock."""
    begin, first = time.perf_counter(), ticks()
    while (now := time.perf_counter()) - begin < _MEASURED_S:
        pass
    return (ticks() - first) / (now - begin)


@functools.cache
def pool(threads: int) -> Pool:
    """The pool of this process.  threads: with the calling one."""
    made = Pool(threads)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.forget_threads)
    return made
