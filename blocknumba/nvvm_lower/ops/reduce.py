"""Code of reductions within each warp: in registers, then by shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.ops import finish_arg_reduce, partial_arg_reduce, partial_reduce
from blocknumba.gpu_layout.placement.reductions import ReductionPlan, reduction_plan
from blocknumba.nvvm_lower.elements import is_narrow, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1, I32
from blocknumba.nvvm_lower.ops.elementwise import element_code
from blocknumba.nvvm_lower.services.address import coordinates
from blocknumba.nvvm_lower.services.narrow_floats import narrow, widen
from blocknumba.nvvm_lower.services.shared_memory import from_lane_xor
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType, float32, int32
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce

T = TypeVar("T")

COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "fmax": "fmax",
           "fmin": "fmin", "and": "and", "or": "or", "xor": "xor"}


def reduced(emitter: Emitter, dtype: DType, x: Registers, layout: LinearLayout, axis: int,
            kind: str) -> Registers:
    """The combination of the registers and lanes of each group of the plan."""
    wide = float32 if is_narrow(dtype) else dtype
    if wide != dtype:
        x = [widen(emitter, dtype, value) for value in x]
    function = element_code(COMBINE[kind], wide)

    def combine(a: str, b: str) -> str:
        return function(emitter, wide, a, b)

    plan = reduction_plan(layout, axis)
    result = []
    for group in plan.groups:
        value = _tree([x[register] for register in group], combine)
        for mask in plan.lane_masks:
            value = combine(value, from_lane_xor(emitter, wide, value, mask))
        result.append(value if wide == dtype else narrow(emitter, dtype, value))
    return result


def arg_reduced(emitter: Emitter, dtype: DType, x: Registers, indices: Registers,
                layout: LinearLayout, axis: int, kind: str) -> tuple[Registers, Registers]:
    """Per group of the plan the best value and its index, an int32."""
    best = _Best(emitter, dtype, kind)
    plan: ReductionPlan = reduction_plan(layout, axis)
    values, found = [], []
    for group in plan.groups:
        pairs = [(x[register], indices[register]) for register in group]
        value, index = _tree(pairs, best.of_pair)
        for mask in plan.lane_masks:
            other = (from_lane_xor(emitter, dtype, value, mask),
                     from_lane_xor(emitter, int32, index, mask))
            value, index = best.of_pair((value, index), other)
        values.append(value)
        found.append(index)
    return values, found


def _tree(values: list[T], combine: Callable[[T, T], T]) -> T:
    """Combine neighbours until one is left: short chains of dependence, small rounding errors."""
    while len(values) > 1:
        paired = [combine(a, b) for a, b in zip(values[::2], values[1::2])]
        values = paired + values[len(paired) * 2:]
    return values[0]


class _Best:
    """The better of two (value, index) pairs: a NaN beats a number, a lower index an equal."""

    def __init__(self, emitter: Emitter, dtype: DType, kind: str):
        self._emitter, self._dtype = emitter, dtype
        self._compared = float32 if is_narrow(dtype) else dtype
        self._beats = "gt" if kind == "max" else "lt"

    def of_pair(self, first: tuple[str, str], second: tuple[str, str]) -> tuple[str, str]:
        body = self._emitter.body
        better = self._second_is_better(first, second)
        return (body.select(better, register_type(self._dtype), second[0], first[0]),
                body.select(better, I32, second[1], first[1]))

    def _second_is_better(self, first: tuple[str, str], second: tuple[str, str]) -> str:
        body, dtype = self._emitter.body, self._compared
        a, b = (widen(self._emitter, self._dtype, value) if dtype != self._dtype else value
                for value in (first[0], second[0]))
        is_lower = body.compare("icmp ult", I32, second[1], first[1])
        wins = element_code(self._beats, dtype)(self._emitter, dtype, b, a)
        equal = element_code("eq", dtype)(self._emitter, dtype, b, a)
        if dtype.is_float:
            type_ = register_type(dtype)
            a_is_nan, b_is_nan = (body.compare("fcmp uno", type_, v, v) for v in (a, b))
            a_is_number = body.binary("xor", I1, a_is_nan, "true")
            wins = body.binary("or", I1, wins, body.binary("and", I1, b_is_nan, a_is_number))
            both = body.binary("and", I1, a_is_nan, b_is_nan)
            equal = body.binary("or", I1, equal, both)
        return body.binary("or", I1, wins, body.binary("and", I1, equal, is_lower))


@code(reduce, partial_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    type_ = op.x.type
    return reduced(emitter, type_.dtype, x, type_.layout, op.attrs["axis"], op.attrs["kind"])


@code(partial_arg_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> tuple[Registers, Registers]:
    type_, axis = op.x.type, op.attrs["axis"]
    indices = coordinates(emitter.body, emitter.threads, type_.layout, axis)
    return arg_reduced(emitter, type_.dtype, x, indices, type_.layout, axis, op.attrs["kind"])


@code(arg_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    type_, axis = op.x.type, op.attrs["axis"]
    indices = coordinates(emitter.body, emitter.threads, type_.layout, axis)
    return arg_reduced(emitter, type_.dtype, x, indices, type_.layout, axis, op.attrs["kind"])[1]


@code(finish_arg_reduce)
def _(emitter: Emitter, op: Op, values: Registers, indices: Registers) -> Registers:
    type_ = op.values.type
    return arg_reduced(emitter, type_.dtype, values, indices, type_.layout, op.attrs["axis"],
                       op.attrs["kind"])[1]
