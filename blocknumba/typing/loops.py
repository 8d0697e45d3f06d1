"""Loops that are unrolled while a kernel is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from blocknumba.errors import require


class static_range:  # noqa: N801 - spelled as range is
    """range(start, stop, step) whose loop is unrolled, its variable a compile-time constant.

    Errors: bounds that are not compile-time ints.

    Example:
    >>> @bn.jit
    ... def first(xs, out):
    ...     for i in bn.static_range(len(xs)):
    ...         out[i] = xs[i][0]
    >>> out = np.zeros(2)
    >>> _ = first[1]((np.ones(3), np.ones(5) * 2), out)
    >>> out
    array([1., 2.])
    """

    __compile_time__ = True

    def __init__(self, start: int, stop: int | None = None, step: int | None = None):
        bounds = (0, start) if stop is None else (start, stop)
        bounds = bounds if step is None else (*bounds, step)
        require(all(isinstance(bound, int) for bound in bounds),
                "static_range: given {!r}, accepted ints", bounds)
        self.over = range(*bounds)

    def __iter__(self) -> Iterator[int]:
        return iter(self.over)
