"""Threads that run programs of one launch: chunks of a range, handed out one after the other.

Native code releases the GIL, so threads of Python do. The calling thread works too, and begins
alone: only a launch that takes longer than waking others wakes them.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable

Run = Callable[[int, int], int]  # (first program, stop) -> status

WORTH_WAKING_S = 100e-6  # of work that is left
FIRST_PART = 32  # of the programs, which the calling thread runs alone
CHUNKS = 8  # of each thread
STOPPED = 1 << 62


class Job:
    """The programs of one launch that several threads run."""

    def __init__(self, run: Run, first: int, stop: int, chunk: int):
        self._run, self._next, self._stop, self._chunk = run, first, stop, chunk
        self._lock = threading.Lock()
        self._running, self._closed = 0, False
        self._done = threading.Event()
        self.status = 0

    def work(self) -> None:
        """Run chunks until none is left; a status that is not 0 stops all threads."""
        with self._lock:
            if self._closed:
                return
            self._running += 1
        while (first := self._taken()) is not None:
            status = self._run(first, min(first + self._chunk, self._stop))
            if status:
                with self._lock:
                    self.status, self._next = self.status or status, STOPPED
        with self._lock:
            self._running -= 1
            if self._closed and not self._running:
                self._done.set()

    def finish(self) -> int:
        """Wait for the threads that began; the status."""
        with self._lock:
            self._closed = True
            if not self._running:
                return self.status
        self._done.wait()
        return self.status

    def _taken(self) -> int | None:
        with self._lock:
            first = self._next
            if first >= self._stop:
                return None
            self._next += self._chunk
            return first


class Pool:
    """Threads that wait for jobs.

    threads: with the calling one.
    """

    def __init__(self, threads: int):
        self.threads = threads
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._is_free = threading.Lock()
        self._started = False

    def run(self, run: Run, programs: int) -> int:
        """Run programs 0 to programs - 1; the first status that is not 0, or 0.

        While the pool works for another launch, the calling thread runs all of them.
        """
        if programs == 1 or self.threads == 1:
            return run(0, programs)
        first = -(-programs // FIRST_PART)
        begin = time.perf_counter()
        status = run(0, first)
        spent = time.perf_counter() - begin
        if status or first == programs:
            return status
        if spent * (programs - first) / first < WORTH_WAKING_S or not self._is_free.acquire(False):
            return run(first, programs)
        try:
            return self._shared(run, first, programs)
        finally:
            self._is_free.release()

    def _shared(self, run: Run, first: int, programs: int) -> int:
        helpers = min(self.threads - 1, programs - first - 1)
        job = Job(run, first, programs,
                  max(1, (programs - first) // (CHUNKS * self.threads)))
        self._start()
        for _ in range(helpers):
            self._jobs.put(job)
        job.work()
        return job.finish()

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        for number in range(1, self.threads):
            threading.Thread(target=self._wait, name=f"blocknumba-{number}", daemon=True).start()

    def _wait(self) -> None:
        while True:
            self._jobs.get().work()


_POOLS: dict[int, Pool] = {}  # by the process: threads do not survive a fork


def pool(threads: int) -> Pool:
    """The pool of this process.  threads: if it is made now."""
    found = _POOLS.get(os.getpid())
    if found is None:
        found = _POOLS[os.getpid()] = Pool(threads)
    return found
