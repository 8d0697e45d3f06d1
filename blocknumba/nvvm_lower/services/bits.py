"""Counting bits of 32- and 64-bit integers."""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import memory_type
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.tile_ir.types import DType


def population_count(emitter: Emitter, dtype: DType, x: str) -> str:
    """How many bits are set."""
    return _call(emitter, dtype, "ctpop", x)


def leading_zeros(emitter: Emitter, dtype: DType, x: str) -> str:
    """How many zero bits precede the highest set one; all of them for 0."""
    return _call(emitter, dtype, "ctlz", x, "i1 false")


def first_set(emitter: Emitter, dtype: DType, x: str) -> str:
    """1 + the index of the lowest set bit, or 0."""
    body, type_ = emitter.body, memory_type(dtype)
    place = body.binary("add", type_, _call(emitter, dtype, "cttz", x, "i1 false"), "1")
    return body.select(body.compare("icmp eq", type_, x, "0"), type_, "0", place)


def _call(emitter: Emitter, dtype: DType, name: str, x: str, *more: str) -> str:
    type_ = memory_type(dtype)
    return emitter.body.call(type_, f"llvm.{name}.{type_}", f"{type_} {x}", *more,
                             words="nounwind readnone")
