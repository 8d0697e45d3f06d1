"""Sums and products under NumPy's names: ints are added in 64 bits, as NumPy adds them.

The functions of the language, bn.sum and the like, keep 32 bits, as Triton's do.
"""

from __future__ import annotations

from types import FunctionType

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.types import DType, int64, uint64
from blocknumba.typing.context import describe
from blocknumba.typing.function import BlockFunction, described
from blocknumba.typing.functions import reduce, scan, statistics
from blocknumba.typing.functions.reduce import as_tile


def _dtype(dtype: DType) -> DType | None:
    """The dtype in which NumPy adds elements of a dtype; None for their own."""
    if dtype.is_float:
        return None
    return uint64 if dtype.kind == "uint" else int64


def _require_no_out(name: str, out: object) -> None:
    require(out is None, "np.{}: given out={}, accepted none", name, describe(out),
            hint=f"a function gives a new tile: out = np.{name}(x)", error=BlockTypeError)


def _along(own: BlockFunction) -> BlockFunction:
    """A reduction with NumPy's parameters and dtypes.   own: the one of the language."""
    name = own.__name__

    def rule(context, a, axis=None, dtype=None, out=None, keepdims=False, *, keep_dims=False,
             initial=None, where=None):
        _require_no_out(name, out)
        tile = as_tile(context, name, a)
        return own.rule(context, tile, axis, dtype=dtype or _dtype(tile.type.dtype),
                        keepdims=keepdims or keep_dims, initial=initial, where=where)

    return described(rule, name, _doc(own))


def _up_to(own: BlockFunction) -> BlockFunction:
    """A cumulative function with NumPy's parameters and dtypes.   own: the one of the language."""
    name = own.__name__

    def rule(context, a, axis=None, dtype=None, out=None, *, reverse=False):
        _require_no_out(name, out)
        tile = as_tile(context, name, a)
        return own.rule(context, tile, axis, reverse, dtype or _dtype(tile.type.dtype))

    return described(rule, name, _doc(own))


def _doc(own: BlockFunction) -> str:
    summary = (own.__doc__ or "").partition("\n")[0]
    return (f"{summary}\n\nInts are added in 64 bits unless dtype says otherwise; the rest as of "
            f"bn.{own.__name__}.")


sum, prod, nansum, nanprod = map(_along, (
    reduce.sum, reduce.prod, statistics.nansum, statistics.nanprod))
cumsum, cumprod, nancumsum, nancumprod = map(_up_to, (
    scan.cumsum, scan.cumprod, statistics.nancumsum, statistics.nancumprod))


def methods(along: BlockFunction, up_to: BlockFunction) -> tuple[FunctionType, FunctionType]:
    """A ufunc's reduce and accumulate, which take the first axis where nobody says another."""

    def reduced(array, axis=0, *, keepdims=False):
        """The elements along an axis, put together."""
        return along(array, axis, keepdims=keepdims)

    def accumulated(array, axis=0):
        """The elements up to each along an axis, put together."""
        return up_to(array, axis)

    return reduced, accumulated
