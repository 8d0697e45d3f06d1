"""Calls in a child process, which is replaced when a call fails: CUDA does not outlive a fault."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.pool import Pool


class IsolatedCalls:
    """Calls of functions, in one process as long as they succeed.

    start: called first in each process.
    limit_s: how long a call may take.
    """

    def __init__(self, start: Callable[[], None], limit_s: float):
        self._start, self._limit_s = start, limit_s
        self._pool: Pool | None = None

    def __call__(self, function: Callable[..., object], *arguments: object) -> object:
        """What function(*arguments) returns; all of them must be importable or picklable.

        Errors: RuntimeError when it raises one, when its process ends or when it takes too long.
        """
        try:
            if self._pool is None:
                self._pool = multiprocessing.get_context("spawn").Pool(1)
                self._pool.apply_async(self._start).get(self._limit_s)
            return self._pool.apply_async(function, arguments).get(self._limit_s)
        except multiprocessing.TimeoutError:
            self.close()
            raise RuntimeError(f"no answer within {self._limit_s} s") from None
        except RuntimeError:
            self.close()
            raise

    def close(self) -> None:
        """End the process, even one that is stuck."""
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()
            self._pool = None
