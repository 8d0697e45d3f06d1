"""Comparisons, selections and moves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.cohort import Cohort
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.instructions.floating import flush
from blocknumba.emulator.syntax import Address, Group, Immediate, Register, Sink, Symbol
from blocknumba.emulator.values import FLOATS, dtype_of

Function = Callable[..., np.ndarray]

_INTEGER: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}


def _unordered(function: Function) -> Function:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


_FLOAT: dict[str, Function] = {
    **_INTEGER,
    "ne": lambda a, b: (a < b) | (a > b),
    "equ": _unordered(np.equal), "neu": np.not_equal, "ltu": _unordered(np.less),
    "leu": _unordered(np.less_equal), "gtu": _unordered(np.greater),
    "geu": _unordered(np.greater_equal),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)), "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}
_LOGIC: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(site: Site, type_: str) -> Function:
    table = _FLOAT if type_ in FLOATS else _INTEGER
    comparison = site.opcode[1]
    if comparison not in table:
        raise site.refuse("given the comparison {}, accepted {}", comparison, ", ".join(table))
    function = table[comparison]
    if type_ == "f32" and site.has("ftz"):
        return lambda a, b: function(flush(a), flush(b))
    return function


def set_predicate(site: Site) -> Step:
    """setp.cmp{.logic}.type p|q, a, b{, c}: p is (a cmp b) logic c, q its opposite likewise."""
    type_ = site.opcode[-1]
    function = _comparison(site, type_)
    write, write_opposite = site.write_pair(site.operands[0], "pred", "pred")
    left, right = site.read(site.operands[1], type_), site.read(site.operands[2], type_)
    if len(site.operands) == 3:
        def step(cohort: Cohort) -> None:
            result = function(left(cohort), right(cohort))
            write(cohort, result)
            write_opposite(cohort, ~result)
        return step
    logic = _LOGIC[next(modifier for modifier in site.opcode if modifier in _LOGIC)]
    other = site.read(site.operands[3], "pred")

    def step_with_logic(cohort: Cohort) -> None:
        result, extra = function(left(cohort), right(cohort)), other(cohort)
        write(cohort, logic(result, extra))
        write_opposite(cohort, logic(~result, extra))
    return step_with_logic


def set_number(site: Site) -> Step:
    """set.cmp.dtype.type d, a, b: all ones, or 1.0, where the comparison holds."""
    to, type_ = site.opcode[-2], site.opcode[-1]
    function = _comparison(site, type_)
    dtype = dtype_of(to)
    true = dtype.type(1.0) if to in FLOATS else ~dtype.type(0)
    return site.compute(lambda a, b: np.where(function(a, b), true, dtype.type(0)), to,
                        [type_, type_])


def select(site: Site) -> Step:
    """selp d, a, b, p: a where p holds, else b."""
    type_ = site.opcode[-1]
    return site.compute(lambda a, b, p: np.where(p, a, b), type_, [type_, type_, "pred"])


def select_by_sign(site: Site) -> Step:
    """slct d, a, b, c: a where c is not negative, else b."""
    type_, sign = site.opcode[-2], site.opcode[-1]
    return site.compute(lambda a, b, c: np.where(c >= 0, a, b), type_, [type_, type_, sign])


def move(site: Site) -> Step:
    """mov: a copy, an address, or the packing and unpacking of a register."""
    type_ = site.opcode[-1]
    target, source = site.operands
    if isinstance(source, Group):
        return _pack(site, source, type_)
    if isinstance(target, Group):
        return _unpack(site, target, type_)
    if isinstance(source, Register) and isinstance(target, Register):
        type_ = target.type if target.type == source.type else type_
    return site.compute(lambda value: value, type_, [type_])


def _pack(site: Site, source: Group, type_: str) -> Step:
    total = dtype_of(type_)
    width = total.itemsize // len(source.items)
    reads = [site.read(item, f"b{8 * width}") for item in source.items]
    write = site.write(site.operands[0], type_)

    def step(cohort: Cohort) -> None:
        result = np.zeros(1, total)
        for index, read in enumerate(reads):
            result = result | read(cohort).astype(total) << total.type(8 * width * index)
        write(cohort, result)
    return step


def _unpack(site: Site, target: Group, type_: str) -> Step:
    total = dtype_of(type_)
    width = total.itemsize // len(target.items)
    field = dtype_of(f"b{8 * width}")
    read = site.read(site.operands[1], type_)
    writes = [(8 * width * index, site.write(item, f"b{8 * width}"))
              for index, item in enumerate(target.items) if not isinstance(item, Sink)]

    def step(cohort: Cohort) -> None:
        value = read(cohort)
        for shift, write in writes:
            write(cohort, (value >> total.type(shift)).astype(field))
    return step


def convert_address(site: Site) -> Step:
    """cvta{.to}.space: between a generic address and one of a space."""
    to_space = site.opcode[1] == "to"
    space = site.opcode[2 if to_space else 1].split("::")[0]
    type_ = site.opcode[-1]
    source = site.operands[1]
    name = source.base if isinstance(source, Address) else source
    assert isinstance(name, Register | Symbol | Immediate)
    read = site.read(source, type_)
    write = site.write(site.operands[0], type_)
    signed = np.dtype(np.int64)

    def step(cohort: Cohort) -> None:
        window = cohort.launch.window_of(space)
        value = read(cohort).astype(signed)
        write(cohort, (value - window if to_space else value + window).astype(dtype_of(type_)))
    return step


def is_space(site: Site) -> Step:
    """isspacep: whether a generic address lies in a space."""
    space = site.opcode[1].split("::")[0]
    read = site.read(site.operands[1], "u64")
    write = site.write(site.operands[0], "pred")
    return lambda cohort: write(cohort, cohort.launch.is_in_space(read(cohort), space))


TABLE: dict[str, Decoder] = {
    "setp": set_predicate, "set": set_number, "selp": select, "slct": select_by_sign, "mov": move,
    "cvta": convert_address, "isspacep": is_space,
}
