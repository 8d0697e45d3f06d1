"""The instructions, one table for each family and one of all."""

from __future__ import annotations

from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.instructions import (
    async_copy,
    atomic,
    barrier,
    cluster,
    control,
    convert,
    floating,
    integer,
    load_store,
    matrix,
    mbarrier,
    select,
    tensor_map,
    warp,
    warpgroup,
)
from blocknumba.emulator.values import FLOATS


def _by_type(name: str) -> Decoder:
    """The row of an instruction that exists for integers and for floating-point numbers."""
    for_integers, for_floats = integer.TABLE[name], floating.TABLE[name]

    def decode(site: Site) -> Step:
        scalar = site.opcode[-1].removesuffix("x2")
        return (for_floats if scalar in FLOATS else for_integers)(site)
    return decode


_BOTH = integer.TABLE.keys() & floating.TABLE.keys()

TABLE: dict[str, Decoder] = {
    **integer.TABLE, **floating.TABLE, **{name: _by_type(name) for name in _BOTH},
    **convert.TABLE, **select.TABLE, **load_store.TABLE, **control.TABLE, **warp.TABLE,
    **barrier.TABLE, **atomic.TABLE, **cluster.TABLE, **mbarrier.TABLE, **async_copy.TABLE,
    **matrix.TABLE, **warpgroup.TABLE, **tensor_map.TABLE,
}
