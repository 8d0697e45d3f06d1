"""`bn.auto`: the value of a constant that is an extent of tiles, which the compiler chooses."""

from __future__ import annotations


class Auto:
    """`BM: bn.constexpr = bn.auto`, or `BM=bn.auto` in a launch: the compiler chooses BM.

    BM must be an extent of tiles: the kernel must be right for every power of two.  A grid that is
    a function sees the chosen value.

    Example:
    >>> @bn.jit
    ... def double(x, BLOCK: bn.constexpr = bn.auto):
    ...     r = bn.block(0, BLOCK)
    ...     x[r] = x[r] * 2
    >>> x = np.arange(5)
    >>> compiled = double[lambda a: bn.cdiv(x.size, a["BLOCK"])](x)
    >>> x
    array([0, 2, 4, 6, 8])
    """

    def __repr__(self) -> str:
        return "bn.auto"

    def __reduce__(self) -> str:
        return "auto"


auto = Auto()
