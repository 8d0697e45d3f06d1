"""Forks while other threads compile: a fork waits for them, and no lock stays held in the child.

Of a process that forks only the thread that asked goes on in the child.  What the others were
amid would stay as it was forever: locks of ours, those of an import, those of a compiler's
library.  So a fork waits until no other thread compiles, and none begins meanwhile.  It does not
wait without end; the child then makes our locks anew, and compiles what was half done itself.
"""

from __future__ import annotations

import gc
import logging  # noqa: F401  Numba needs it; what it does around forks must not begin amid one
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

MAX_WAIT_SECONDS = 10.0


class Lock:
    """A lock that its thread may take again; in the child of a fork only that thread holds it."""

    __slots__ = ("_lock", "__weakref__")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Forget a thread that is not there any more."""
        _renew(self)


_LOCKS: weakref.WeakSet = weakref.WeakSet()  # of what holds an RLock as _lock


def renew_in_children(holder: object) -> None:
    """Treat a lock of Numba's compilers as ours: in the child of a fork nobody else holds it.

    holder: has the lock, an RLock, as _lock; or it is made of such holders, as numba-cuda's is.
    """
    if hasattr(holder, "_lock"):
        _LOCKS.add(holder)
        return
    for part in vars(holder).values():
        renew_in_children(part)


def _renew(holder: Lock) -> None:
    if holder._lock.acquire(blocking=False):
        holder._lock.release()
    else:
        holder._lock = threading.RLock()


class Compilations:
    """The threads that compile at the moment, and a fork that may wait for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: dict[int, int] = {}  # compilations within each other, by their thread
        self._fork_waits = False
        self._collects_garbage = True  # where none runs: compilations turn it off

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within, this thread compiles, or imports what it has not needed before."""
        thread = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._fork_waits or thread in self._running)
            if not self._running:
                self._collects_garbage = gc.isenabled()
            self._running[thread] = self._running.get(thread, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._running[thread] -= 1
                if not self._running[thread]:
                    del self._running[thread]
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread compiles."""
        self._changed.acquire()
        self._fork_waits = True
        self._changed.wait_for(lambda: not self._others(), MAX_WAIT_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Let compilations begin again."""
        self._fork_waits = False
        self._changed.notify_all()
        self._changed.release()

    def after_fork_in_child(self) -> None:
        """Forget what other threads were amid."""
        others, self._changed, self._fork_waits = self._others(), threading.Condition(), False
        for thread in others:
            del self._running[thread]
        if others and self._collects_garbage:
            gc.enable()
        for holder in list(_LOCKS):
            _renew(holder)

    def _others(self) -> set[int]:
        return self._running.keys() - {threading.get_ident()}


COMPILATIONS = Compilations()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=COMPILATIONS.before_fork,
                        after_in_parent=COMPILATIONS.after_fork_in_parent,
                        after_in_child=COMPILATIONS.after_fork_in_child)
